//! Handler traits, one a file of `tools/`: what a maintainer implements.

use crate::tokens::{camel, doc, ident};
use cloudphone_spec::model::{Contract, Domain, Effect, Tool};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

pub(crate) fn emit(contract: &Contract, rt: &syn::Path) -> TokenStream {
    let traits = contract.domains.iter().map(|domain| handlers(domain, rt));
    let commands: Vec<&Tool> = contract.tools().filter(|tool| tool.task().is_some()).collect();
    let command = (!commands.is_empty()).then(|| {
        let variants = commands.iter().map(|tool| {
            let (variant, args, text) =
                (camel(&tool.name), format_ident!("{}Args", camel(&tool.name)), doc(&tool.summary));
            quote!(#text #variant(#args))
        });
        let names: Vec<_> = commands.iter().map(|tool| camel(&tool.name)).collect();
        let wire: Vec<_> = commands.iter().map(|tool| &tool.name).collect();
        quote! {
            /// A write that a handler found sound, to be carried out as a task.
            #[derive(Clone, Debug, PartialEq)]
            pub enum Command { #(#variants,)* }

            impl Command {
                /// Takes one back from the name of its tool and the arguments that were written down.
                #[must_use]
                pub fn read(tool: &str, arguments: &str) -> ::core::option::Option<Self> {
                    match tool {
                        #(#wire => #rt::tasks::read(arguments).map(Self::#names),)*
                        _ => ::core::option::Option::None,
                    }
                }
            }

            impl #rt::tasks::Command for Command {
                fn tool(&self) -> &'static str {
                    match self { #(Self::#names(_) => #wire,)* }
                }
                fn arguments(&self) -> #rt::tasks::Written {
                    match self { #(Self::#names(args) => #rt::tasks::written(args),)* }
                }
            }
        }
    });
    quote!(#command #(#traits)*)
}

/// The trait of a file of `tools/`.
pub(crate) fn trait_name(domain: &Domain) -> Ident {
    format_ident!("{}Tools", camel(&domain.name))
}

fn handlers(domain: &Domain, rt: &syn::Path) -> TokenStream {
    let name = trait_name(domain);
    let mut resources: Vec<_> = domain.tools.iter().filter_map(|tool| Some(&tool.target.as_ref()?.resource)).collect();
    resources.sort_unstable_by_key(|resource| &resource.name);
    resources.dedup_by_key(|resource| &resource.name);
    let resources = resources.into_iter().map(|resource| {
        let (id, capability) = (ident(&resource.id.name), format_ident!("{}Capability", camel(&resource.name)));
        quote!(#rt::handler::Resource<#id, Capability = #capability>)
    });
    let methods = domain.tools.iter().map(|tool| method(tool, rt));
    let text = doc(&format!("The tools of `tools/{}.toml`.", domain.name));
    let message = format!("`{{Self}}` has no handlers for the tools of `tools/{}.toml`", domain.name);
    let label = format!("write `impl {name} for {{Self}}` in `phones/tools/{}.rs`", domain.name);
    quote! {
        #text
        #[diagnostic::on_unimplemented(message = #message, label = #label)]
        pub trait #name: #(#resources +)* ::core::marker::Send + ::core::marker::Sync + 'static {
            #(#methods)*
        }
    }
}

fn method(tool: &Tool, rt: &syn::Path) -> TokenStream {
    let name = ident(&tool.name);
    let text = doc(&format!("{}\n\nSpec: `{}`", tool.summary, tool.source));
    let (args, error) = (format_ident!("{}Args", camel(&tool.name)), format_ident!("{}Error", camel(&tool.name)));
    let target = tool.target.as_ref().map(|target| {
        let (name, id) = (ident(&target.resource.name), ident(&target.resource.id.name));
        quote!(#name: &#rt::handler::Target<<Self as #rt::handler::Resource<#id>>::View>,)
    });
    let result = match tool.effect {
        Effect::Task(_) => quote!(Command),
        Effect::Read | Effect::Issue => {
            let result = ident(&tool.result.name);
            quote!(#rt::reply::Reply<#result>)
        }
    };
    quote! {
        #text
        fn #name(
            &self,
            call: &#rt::handler::Call<'_>,
            #target
            args: #args,
        ) -> impl ::core::future::Future<Output = ::core::result::Result<#result, #error>> + ::core::marker::Send;
    }
}
