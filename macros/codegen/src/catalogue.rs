//! Emits the catalogue: the whole contract as static data.

use crate::errors;
use crate::tokens::{args_name, camel, ident, number, option};
use crate::words::{self, advice};
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use toolwarrant_reader::model::{
    BodySpec, Contract, EffectSpec, Http, Phrases, PolicySpec, ResourceSpec, ServiceSpec, State, TargetSpec, TaskSpec,
    ToolHints, ToolSpec, ToolsetSpec,
};
use toolwarrant_reader::{OUTCOME_UNKNOWN, ROLES, description, input_schema, instructions, output_schema, schema_text};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let ServiceSpec {
        name,
        title,
        version,
        doc,
        served,
        follows: _,
        requests_per_minute,
        poll_interval_seconds,
        hold_seconds,
        wait_seconds: _,
    } = &contract.service;
    let served = served.iter().map(|revision| ident(&format!("V{}", revision.replace('-', "_"))));
    let doc = advice(contract, doc);
    let instructions = instructions(contract);
    let instructions = instructions.iter().map(|paragraph| words::of(paragraph));
    let [requests, interval, hold] =
        [requests_per_minute, poll_interval_seconds, hold_seconds].map(|limit| number(*limit));
    let roles = roles(contract);
    let states = contract.states.iter().map(|State { name, brief: _, meaning, next_step, reported }| {
        let next_step = advice(contract, next_step);
        let reported = reported.iter().map(|(name, text)| {
            let (report, advice) = (camel(name), advice(contract, text));
            quote!((rt::tasks::UpstreamReport::#report, #advice))
        });
        quote!(rt::catalogue::StateDef {
            name: #name,
            meaning: #meaning,
            next_step: #next_step,
            reported: &[#(#reported),*],
        })
    });
    let probes = contract.probes.iter().map(|probe| {
        let name = &probe.name;
        let [unread, timeout, success] =
            [&probe.unread, &probe.timeout, &probe.success].map(|text| advice(contract, text));
        quote!(rt::catalogue::ProbeDef { name: #name, unread: #unread, timeout: #timeout, success: #success })
    });
    let followed = followed_tool(contract);
    let commands = contract.tools().filter(|tool| tool.task().is_some()).map(command);
    let phrases = phrases(contract);
    let toolsets = contract.toolsets.iter().map(|toolset| {
        let ToolsetSpec { name, doc, index: _, list: _, list_with_outputs: _ } = &**toolset;
        quote!(rt::catalogue::ToolsetDef { name: #name, doc: #doc })
    });
    let resources = contract.resources.iter().map(|spec| resource(contract, spec));
    quote! {
        use rt::advice::{Advice, Sentence};

        /// The whole contract as data.
        pub static CATALOGUE: rt::catalogue::Catalogue = rt::catalogue::Catalogue {
            service: rt::catalogue::ServiceDef {
                name: #name,
                title: #title,
                version: #version,
                doc: #doc,
                instructions: &[#(#instructions),*],
                served: &[#(rt::revision::Revision::#served),*],
                requests_per_minute: #requests,
                poll_interval_seconds: #interval,
                hold_seconds: #hold,
            },
            permissions: &PERMISSIONS,
            toolsets: &[#(#toolsets),*],
            resources: &[#(#resources),*],
            tools: &tools::ALL,
            commands: &[#(#commands),*],
            followed: #followed,
            roles: rt::catalogue::Roles { #roles },
            states: &[#(#states),*],
            probes: &[#(#probes),*],
            phrases: rt::catalogue::PhraseDefs { #phrases },
            openapi: OPENAPI,
            contract: CONTRACT,
        };
    }
}

fn resource(contract: &Contract, spec: &ResourceSpec) -> TokenStream {
    let ResourceSpec { name, doc, id, states, unreadable, capabilities, find } = spec;
    let (id, find) = (ident(&id.name), advice(contract, find));
    let [states, capabilities] = [states, capabilities].map(|members| members.iter().map(|member| &member.name));
    let unreadable = option(unreadable.as_ref());
    quote!(rt::catalogue::ResourceDef {
        name: #name,
        doc: #doc,
        ids: <#id as rt::args::StringType>::RULE,
        states: &[#(#states),*],
        unreadable: #unreadable,
        capabilities: &[#(#capabilities),*],
        find: #find,
    })
}

fn followed_tool(contract: &Contract) -> TokenStream {
    let reads = |tool: &ToolSpec| matches!(tool.effect, EffectSpec::ReadTask);
    let index = contract.tools().position(reads).filter(|_| contract.service.follows);
    option(index.map(|index| {
        let index = Literal::usize_unsuffixed(index);
        quote!(&tools::ALL[#index])
    }))
}

fn phrases(contract: &Contract) -> TokenStream {
    let Phrases { followed, under_way, same_write, other_write, lost_task, curable, .. } = &contract.phrases;
    let [followed, under_way, same_write, other_write, lost_task, curable] =
        [followed, under_way, same_write, other_write, lost_task, curable].map(|text| advice(contract, text));
    quote! {
        followed: #followed,
        under_way: #under_way,
        same_write: #same_write,
        other_write: #other_write,
        lost_task: #lost_task,
        curable: #curable,
    }
}

fn roles(contract: &Contract) -> TokenStream {
    let roles = ROLES.iter().filter_map(|role| {
        let (field, error) = (ident(role), contract.role(role).map(|error| errors::name(error)));
        if *role == OUTCOME_UNKNOWN {
            let error = option(error.map(|error| quote!(&errors::#error)));
            return Some(quote!(#field: #error,));
        }
        error.map(|error| quote!(#field: &errors::#error,))
    });
    roles.collect()
}

fn command(tool: &ToolSpec) -> TokenStream {
    let (name, args) = (&tool.name, args_name(tool));
    quote!(rt::catalogue::CommandDef { tool: #name, judge: rt::args::judge_stored::<#args> })
}

pub(crate) fn tools(contract: &Contract) -> TokenStream {
    let tools = contract.tools().enumerate().map(|(index, tool)| self::tool(contract, index, tool));
    let count = Literal::usize_unsuffixed(contract.tools().count());
    quote! {
        /// The tools as data.
        mod tools {
            use super::rt::catalogue::*;
            use super::{Permission, PERMISSIONS, errors, rt};

            pub(super) static ALL: [ToolDef; #count] = [#(#tools),*];
        }
    }
}

fn tool(contract: &Contract, index: usize, tool: &ToolSpec) -> TokenStream {
    let ToolSpec { name, title, permission, target, http, errors, .. } = tool;
    let (index, args_type, permission) = (Literal::usize_unsuffixed(index), args_name(tool), camel(&permission.name));
    let description = description(contract, tool);
    let target = option(target.as_ref().map(|TargetSpec { resource, arg, requires }| {
        let (resource, requires) = (&resource.name, option(requires.as_ref()));
        quote!(TargetDef { resource: #resource, arg: #arg, requires: #requires })
    }));
    let errors = errors.iter().map(|error| errors::name(error));
    let http = option(http.as_ref().map(|Http { method, path }| quote!(HttpDef { method: #method, path: #path })));
    let secrets = tool.args.iter().filter(|argument| argument.secret).map(|argument| &argument.name);
    let [input, output] = [input_schema(tool), output_schema(tool)].map(|schema| schema_text(&schema));
    let task = option(tool.task().map(|TaskSpec { select: _, cases, usually_ends: _ }| {
        let cases = cases.iter().map(|(value, policy)| {
            let policy = self::policy(policy);
            quote!((#value, #policy))
        });
        quote!(TaskDef { cases: &[#(#cases),*] })
    }));
    let hints = match &tool.effect {
        EffectSpec::Read | EffectSpec::ReadTask => quote!(READ),
        EffectSpec::Issue => quote!(ISSUE),
        EffectSpec::Act(ToolHints { destructive, idempotent, open_world, read_only: _ }) => {
            quote!(act(#destructive, #idempotent, #open_world))
        }
        EffectSpec::Task(_) => {
            let idempotent = tool.hints().idempotent;
            quote!(task(#idempotent))
        }
    };
    let body = option(
        tool.body
            .as_ref()
            .map(|BodySpec { field, is_picture }| quote!(BodyDef { field: #field, is_picture: #is_picture })),
    );
    let toolset = option(tool.toolset.as_ref().map(|toolset| Literal::usize_unsuffixed(toolset.index)));
    let right = Literal::u64_unsuffixed(1 << tool.right);
    let acts = matches!(tool.effect, EffectSpec::Act(_));
    quote! {
        ToolDef {
            index: #index,
            name: #name,
            title: #title,
            description: #description,
            hints: ToolHints::#hints,
            acts: #acts,
            permission: &PERMISSIONS[Permission::#permission as usize],
            toolset: #toolset,
            right: PermissionSet(#right),
            target: #target,
            errors: &[#(&errors::#errors),*],
            http: #http,
            judge: rt::args::judge::<super::#args_type>,
            secrets: &[#(#secrets),*],
            input_schema: #input,
            output_schema: #output,
            body: #body,
            task: #task,
        }
    }
}

fn policy(PolicySpec { probe, idempotent, settle_seconds, deadline_seconds }: &PolicySpec) -> TokenStream {
    let baseline = probe.as_ref().is_some_and(|probe| probe.baseline);
    let probe = option(probe.as_ref().map(|probe| &probe.name));
    let [settle, deadline] = [settle_seconds, deadline_seconds].map(|seconds| number(*seconds));
    quote! {
        PolicyDef {
            probe: #probe,
            baseline: #baseline,
            idempotent: #idempotent,
            settle_seconds: #settle,
            deadline_seconds: #deadline,
        }
    }
}
