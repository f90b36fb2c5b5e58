//! The dispatch: from a tool's position to its handler, through the pipeline.

use super::handlers::trait_name;
use crate::tokens::{camel, ident};
use cloudphone_spec::model::{Contract, Domain, Effect, Task, Tool};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

pub(crate) fn emit(contract: &Contract, rt: &syn::Path) -> TokenStream {
    let all = contract.domains.iter().flat_map(|domain| domain.tools.iter().map(move |tool| (domain, tool)));
    let tools = all.clone().enumerate().map(|(n, (domain, tool))| self::tool(n, domain, tool, rt));
    let arms = all.enumerate().map(|(n, (_, tool))| {
        let marker = camel(&tool.name);
        quote!(#n => #rt::pipeline::run::<H, call::#marker>(&self.0, call, raw).await,)
    });
    let traits = contract.domains.iter().map(trait_name);
    quote! {
        /// Handlers, behind the checks of the contract.
        #[derive(Clone, Debug)]
        pub struct Contract<H>(pub H);

        impl<H> #rt::pipeline::Handlers for Contract<H>
        where
            H: #(#traits +)* ::core::marker::Send + ::core::marker::Sync + 'static,
        {
            const CATALOGUE: &'static #rt::catalogue::Catalogue = &CATALOGUE;

            async fn dispatch<'a>(
                &'a self,
                call: &'a #rt::handler::Call<'a>,
                raw: &'a str,
            ) -> ::core::result::Result<#rt::reply::Answer, #rt::failure::Failure> {
                match call.tool.index {
                    #(#arms)*
                    _ => ::core::result::Result::Err(#rt::pipeline::unrouted(call)),
                }
            }
        }

        /// The tools, as the pipeline runs them.
        mod call {
            use super::*;
            #(#tools)*
        }
    }
}

fn tool(index: usize, domain: &Domain, tool: &Tool, rt: &syn::Path) -> TokenStream {
    let (marker, method, handlers) = (camel(&tool.name), ident(&tool.name), trait_name(domain));
    let args = format_ident!("{}Args", marker);
    let (proof, target, require, passed) = match &tool.target {
        Some(target) => {
            let (id, arg) = (ident(&target.resource.id.name), ident(&target.arg));
            let capability = match &target.requires {
                Some(name) => {
                    let (kind, variant) = (format_ident!("{}Capability", camel(&target.resource.name)), camel(name));
                    quote!(::core::option::Option::Some(#kind::#variant))
                }
                None => quote!(::core::option::Option::None),
            };
            (
                quote!(#rt::handler::Target<<H as #rt::handler::Resource<super::#id>>::View>),
                Some(quote! {
                    fn target(args: &#args) -> ::core::option::Option<&str> {
                        ::core::option::Option::Some(args.#arg.as_str())
                    }
                }),
                quote!(#rt::pipeline::require(handlers, call, &args.#arg, #capability).await),
                Some(quote!(proof,)),
            )
        }
        None => (quote!(()), None, quote!(::core::result::Result::Ok(())), None),
    };
    let (task, outcome) = match &tool.effect {
        Effect::Read | Effect::Issue => (
            None,
            quote! {
                let reply = #handlers::#method(handlers, call, #passed args).await?;
                #rt::pipeline::Outcome::answer(call, reply)
            },
        ),
        Effect::Task(task) => (
            Some(plan(index, task, &args, rt)),
            quote! {
                let command = #handlers::#method(handlers, call, #passed args).await?;
                #rt::pipeline::Outcome::command(call, &command)
            },
        ),
    };
    quote! {
        #[derive(Debug)]
        pub(super) struct #marker;

        impl<H: #handlers> #rt::pipeline::Tool<H> for #marker {
            type Args = #args;
            type Proof = #proof;

            #target
            #task

            async fn require<'a>(
                handlers: &'a H,
                call: &'a #rt::handler::Call<'a>,
                args: &'a #args,
            ) -> ::core::result::Result<Self::Proof, #rt::failure::Failure> {
                #require
            }

            async fn invoke<'a>(
                handlers: &'a H,
                call: &'a #rt::handler::Call<'a>,
                proof: &'a Self::Proof,
                args: #args,
            ) -> ::core::result::Result<#rt::pipeline::Outcome, #rt::failure::Failure> {
                #outcome
            }
        }
    }
}

fn plan(index: usize, task: &Task, args: &Ident, rt: &syn::Path) -> TokenStream {
    let case = match &task.select {
        Some(select) => {
            let select = ident(select);
            quote!(args.#select.as_str())
        }
        None => quote!(""),
    };
    let key = quote!(args.idempotency_key.as_ref().map(IdempotencyKey::as_str));
    quote! {
        fn task(args: &#args) -> ::core::option::Option<#rt::tasks::Plan<'_>> {
            #rt::tasks::plan(&TOOLS[#index], #case, #key, args)
        }
    }
}
