//! Emits the handler traits that a maintainer implements, one for each file of `tools/`.

use crate::tokens::{args_name, camel, doc, handler_domains, ident, member};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use toolwarrant_reader::model::{Contract, Domain, EffectSpec, ToolSpec};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let traits = handler_domains(contract).map(|(domain, tools)| handlers(domain, &tools));
    let command = command(contract);
    quote!(#command #(#traits)*)
}

fn command(contract: &Contract) -> Option<TokenStream> {
    let tools: Vec<&ToolSpec> = contract.tools().filter(|tool| tool.task().is_some()).collect();
    let (docs, args) = (tools.iter().map(|tool| doc(&tool.summary)), tools.iter().map(|tool| args_name(tool)));
    let names: Vec<_> = tools.iter().map(|tool| camel(&tool.name)).collect();
    let wire: Vec<_> = tools.iter().map(|tool| &tool.name).collect();
    (!tools.is_empty()).then(|| {
        quote! {
            /// A write that a handler has accepted, to be carried out as a task.
            #[derive(Clone, Debug, PartialEq)]
            pub enum Command { #(#docs #names(#args),)* }

            impl Command {
                /// Restores a command from the name of its tool and the stored arguments.
                #[must_use]
                pub fn read(tool: &str, arguments: &str) -> Option<Self> {
                    match tool {
                        #(#wire => rt::tasks::read(arguments).map(Self::#names),)*
                        _ => None,
                    }
                }
            }

            impl rt::tasks::WriteCommand for Command {
                fn tool(&self) -> &'static str {
                    match self { #(Self::#names(_) => #wire,)* }
                }
                fn arguments(&self) -> rt::tasks::SerializedArgs {
                    match self { #(Self::#names(args) => rt::tasks::serialize_args(args),)* }
                }
            }
        }
    })
}

pub(crate) fn trait_name(domain: &Domain) -> Ident {
    format_ident!("{}Tools", camel(&domain.name))
}

fn handlers(domain: &Domain, tools: &[&ToolSpec]) -> TokenStream {
    let name = trait_name(domain);
    let mut resources: Vec<_> = tools.iter().filter_map(|tool| Some(&tool.target.as_ref()?.resource)).collect();
    resources.sort_unstable_by_key(|resource| &resource.name);
    resources.dedup_by_key(|resource| &resource.name);
    let resources = resources.into_iter().map(|resource| {
        let (id, capability) = (ident(&resource.id.name), format_ident!("{}Capability", camel(&resource.name)));
        quote!(rt::handler::Resource<#id, Capability = #capability>)
    });
    let methods = tools.iter().map(|tool| method(tool));
    let text = doc(&format!("The tools of `tools/{}.toml`.", domain.name));
    let message = format!("`{{Self}}` has no handlers for the tools of `tools/{}.toml`", domain.name);
    let label = format!("write `impl {name} for {{Self}}`");
    quote! {
        #text
        #[diagnostic::on_unimplemented(message = #message, label = #label)]
        pub trait #name: #(#resources +)* Send + Sync + 'static {
            #(#methods)*
        }
    }
}

fn method(tool: &ToolSpec) -> TokenStream {
    let name = member(&tool.name);
    let text = doc(&format!("{}\n\nSpec: `{}`", tool.summary, tool.source));
    let (args, error) = (args_name(tool), format_ident!("{}Error", camel(&tool.name)));
    let target = tool.target.as_ref().map(|target| {
        let (name, id) = (ident(&target.resource.name), ident(&target.resource.id.name));
        quote!(#name: &rt::handler::Target<<Self as rt::handler::Resource<#id>>::View>,)
    });
    let result = match tool.effect {
        EffectSpec::Task(_) => quote!(Command),
        EffectSpec::Read | EffectSpec::ReadTask | EffectSpec::Act(_) | EffectSpec::Issue => {
            let result = ident(&tool.result.name);
            quote!(rt::reply::Reply<#result>)
        }
    };
    quote! {
        #text
        fn #name(
            &self,
            call: &rt::handler::Call<'_>,
            #target
            args: #args,
        ) -> impl core::future::Future<Output = Result<#result, #error>> + Send;
    }
}
