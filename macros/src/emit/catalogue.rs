//! The catalogue: the whole contract as static data.

use super::errors::row;
use crate::tokens::{camel, ident};
use cloudphone_spec::model::{Contract, Effect, Hints, Service, State, Target, Terms, Tool};
use cloudphone_spec::{ROLES, description, instructions, output_schema};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

pub(crate) fn emit(contract: &Contract, rt: &syn::Path) -> TokenStream {
    let Service { name, title: _, version, doc: _, served, accepted, requests_per_minute, poll_interval_seconds } =
        &contract.service;
    let instructions = instructions(contract);
    let tools = contract.tools().enumerate().map(|(n, tool)| self::tool(contract, n, tool, rt));
    let count = contract.tools().count();
    let roles = ROLES.iter().filter_map(|role| {
        let (field, row) = (ident(role), row(contract, contract.role(role)?));
        Some(quote!(#field: #row))
    });
    let states = contract.states.iter().map(|State { name, meaning, next_step }| {
        quote!(#rt::catalogue::StateDef { name: #name, meaning: #meaning, next_step: #next_step })
    });
    quote! {
        /// The whole contract as data.
        pub static CATALOGUE: #rt::catalogue::Catalogue = #rt::catalogue::Catalogue {
            service: #rt::catalogue::Service {
                name: #name,
                version: #version,
                instructions: #instructions,
                served: &[#(#served),*],
                accepted: &[#(#accepted),*],
                requests_per_minute: #requests_per_minute,
                poll_interval_seconds: #poll_interval_seconds,
            },
            permissions: &PERMISSIONS,
            tools: &TOOLS,
            errors: &ERRORS,
            roles: #rt::catalogue::Roles { #(#roles,)* },
            states: &[#(#states),*],
        };

        static TOOLS: [#rt::catalogue::ToolDef; #count] = [#(#tools),*];
    }
}

fn tool(contract: &Contract, index: usize, tool: &Tool, rt: &syn::Path) -> TokenStream {
    let Tool { name, title, source, permission, target, effect, http, args, result, errors, .. } = tool;
    let description = description(contract, tool);
    let permission = contract.permissions.iter().position(|known| known.name == permission.name);
    let target = option(target.as_ref().map(|Target { resource, arg, requires }| {
        let (resource, requires) = (&resource.name, option(requires.as_ref().map(|requires| quote!(#requires))));
        quote!(#rt::catalogue::TargetDef { resource: #resource, arg: #arg, requires: #requires })
    }));
    let args_type = format_ident!("{}Args", camel(name));
    let (method, path) = (&http.method, &http.path);
    let args = args.iter().map(|field| {
        let (name, secret) = (&field.name, field.secret);
        quote!(#rt::catalogue::ArgDef { name: #name, secret: #secret })
    });
    let errors = errors.iter().map(|error| row(contract, error));
    let (effect, task, output) = match effect {
        Effect::Read | Effect::Issue => {
            let result = ident(&result.name);
            let effect = if matches!(effect, Effect::Read) { quote!(Read) } else { quote!(Issue) };
            let schema = quote!(|| <#result as #rt::generated::schemars::JsonSchema>::json_schema(&mut ::core::default::Default::default()));
            (effect, option(None), schema)
        }
        Effect::Task(task) => {
            let select = option(task.select.as_ref().map(|select| quote!(#select)));
            let cases = task.cases.iter().map(|(value, terms)| {
                let terms = self::terms(terms, rt);
                quote!((#value, #terms))
            });
            let task = quote!(#rt::catalogue::TaskDef { select: #select, cases: &[#(#cases),*] });
            let schema = output_schema(tool).to_string();
            (quote!(Task), option(Some(task)), quote!(|| #rt::generated::schema(#schema)))
        }
    };
    let Hints { read_only, destructive, idempotent } = tool.hints();
    quote! {
        #rt::catalogue::ToolDef {
            index: #index,
            name: #name,
            title: #title,
            source: #source,
            description: #description,
            effect: #rt::catalogue::Effect::#effect,
            hints: #rt::catalogue::Hints { read_only: #read_only, destructive: #destructive, idempotent: #idempotent },
            permission: &PERMISSIONS[#permission],
            target: #target,
            args: &[#(#args),*],
            errors: &[#(#errors),*],
            http: #rt::catalogue::HttpDef { method: #method, path: #path },
            judge: #rt::args::judge::<#args_type>,
            input_schema: || <#args_type as #rt::generated::schemars::JsonSchema>::json_schema(&mut ::core::default::Default::default()),
            output_schema: #output,
            task: #task,
        }
    }
}

fn terms(Terms { probe, idempotent, settle_seconds, deadline_seconds }: &Terms, rt: &syn::Path) -> TokenStream {
    let baseline = probe.as_ref().is_some_and(|probe| probe.baseline);
    let probe = option(probe.as_ref().map(|probe| {
        let name = &probe.name;
        quote!(#name)
    }));
    quote! {
        #rt::catalogue::Terms {
            probe: #probe,
            baseline: #baseline,
            idempotent: #idempotent,
            settle_seconds: #settle_seconds,
            deadline_seconds: #deadline_seconds,
        }
    }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
