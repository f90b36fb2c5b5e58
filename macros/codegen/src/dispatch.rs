//! Emits the dispatch: the path from the name of a tool through the pipeline to its handler.

use crate::handlers::trait_name;
use crate::tokens::{args_name, camel, handler_domains, ident, member};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use toolwarrant_reader::model::{Contract, Domain, EffectSpec, TargetSpec, TaskSpec, ToolSpec};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let all: Vec<(&Domain, &ToolSpec)> =
        contract.domains.iter().flat_map(|domain| domain.tools.iter().map(move |tool| (domain, tool))).collect();
    let tools = all.iter().map(|(domain, tool)| self::tool(domain, tool));
    let arms = all.iter().map(|(_, tool)| {
        let (name, marker) = (&tool.name, marker(tool));
        quote!(#name => rt::pipeline::run::<H, call::#marker>(&self.0, call, raw).await,)
    });
    let traits: Vec<_> = handler_domains(contract).map(|(domain, _)| trait_name(domain)).collect();
    let bounds = quote!(#(#traits +)* Send + Sync + 'static);
    let without_tasks = contract.tools().all(|tool| tool.task().is_none());
    let without_tasks = without_tasks.then(|| quote!(impl<H: #bounds> rt::pipeline::MakesNoTasks for Contract<H> {}));
    quote! {
        /// Handlers with the checks of the contract in front of them.
        #[derive(Debug)]
        pub struct Contract<H>(pub std::sync::Arc<H>);

        #without_tasks

        impl<H: #bounds> rt::pipeline::Handlers for Contract<H> {
            const CATALOGUE: &'static rt::catalogue::Catalogue = &CATALOGUE;

            async fn dispatch<'a>(
                &'a self,
                call: &'a rt::handler::Call<'a>,
                raw: &'a str,
            ) -> Result<rt::reply::Answer, rt::failure::Failure> {
                match call.tool.name {
                    #(#arms)*
                    _ => Err(rt::pipeline::no_route(call)),
                }
            }
        }

        /// The steps of each tool in the pipeline.
        mod call {
            use super::*;
            use rt::failure::Failure;
            use rt::handler::Call;
            use rt::pipeline::{Outcome, ToolSteps};
            #(#tools)*
        }
    }
}

fn tool(domain: &Domain, tool: &ToolSpec) -> TokenStream {
    let (marker, args) = (marker(tool), args_name(tool));
    let (proof, target, require) = match &tool.target {
        Some(TargetSpec { resource, arg, requires }) => {
            let (id, arg) = (ident(&resource.id.name), member(arg));
            let capability = requires.as_ref().map_or_else(
                || quote!(None),
                |name| {
                    let (kind, variant) = (format_ident!("{}Capability", camel(&resource.name)), camel(name));
                    quote!(Some(#kind::#variant))
                },
            );
            (
                quote!(rt::handler::Target<<H as rt::handler::Resource<super::#id>>::View>),
                Some(quote! {
                    fn target(args: &#args) -> Option<&str> {
                        Some(args.#arg.as_str())
                    }
                }),
                quote!(rt::pipeline::require(handlers, call, &args.#arg, #capability).await),
            )
        }
        None => (quote!(()), None, quote!(Ok(()))),
    };
    let used = |name: &str, used: bool| if used { ident(name) } else { format_ident!("_{name}") };
    let (targeted, handled) = (tool.target.is_some(), !matches!(tool.effect, EffectSpec::ReadTask));
    let [h1, c1, a1] = ["handlers", "call", "args"].map(|name| used(name, targeted));
    let (h2, p2) = (used("handlers", handled), used("proof", targeted));
    let bound = if handled { trait_name(domain) } else { ident("Sync") };
    let (plan, outcome) = outcome(domain, tool);
    quote! {
        #[derive(Debug)]
        pub(super) struct #marker;

        impl<H: #bound> ToolSteps<H> for #marker {
            type Args = #args;
            type Proof = #proof;

            #target
            #plan

            async fn require<'a>(#h1: &'a H, #c1: &'a Call<'a>, #a1: &'a #args) -> Result<Self::Proof, Failure> {
                #require
            }

            async fn invoke<'a>(#h2: &'a H, call: &'a Call<'a>, #p2: &'a Self::Proof, args: #args) -> Result<Outcome, Failure> {
                #outcome
            }
        }
    }
}

/// Uses an ending that no name has which the module `call` imports.
fn marker(tool: &ToolSpec) -> Ident {
    format_ident!("{}Tool", camel(&tool.name))
}

fn outcome(domain: &Domain, tool: &ToolSpec) -> (Option<TokenStream>, TokenStream) {
    let (method, handlers, args) = (member(&tool.name), trait_name(domain), args_name(tool));
    let proof = tool.target.is_some().then(|| quote!(proof,));
    match &tool.effect {
        EffectSpec::ReadTask => (
            None,
            quote!(rt::reading::outcome(call, args.task_id.as_str(), args.wait_seconds.map(WaitSeconds::get)).await),
        ),
        EffectSpec::Read | EffectSpec::Act(_) | EffectSpec::Issue => {
            (None, quote!(Outcome::answer(call, #handlers::#method(handlers, call, #proof args).await?)))
        }
        EffectSpec::Task(TaskSpec { select, .. }) => {
            let case = select.as_ref().map_or_else(
                || quote!(""),
                |select| {
                    let select = member(select);
                    quote!(args.#select.as_str())
                },
            );
            let plan = quote! {
                fn task<'a>(tool: &'static rt::catalogue::ToolDef, args: &'a #args) -> Option<rt::tasks::Plan<'a>> {
                    let key = args.idempotency_key.as_ref().map(IdempotencyKey::as_str);
                    rt::tasks::plan(tool, #case, key, args)
                }
            };
            (Some(plan), quote!(Outcome::command(call, &#handlers::#method(handlers, call, #proof args).await?)))
        }
    }
}
