//! Arguments: one struct a tool, read by name from what a client sent.

use super::types::schema;
use crate::tokens::{camel, doc, field_ty, ident};
use cloudphone_spec::input_schema;
use cloudphone_spec::model::{Contract, Field, Kind, Tool, Type};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use serde_json::Value;

pub(crate) fn emit(contract: &Contract, rt: &syn::Path) -> TokenStream {
    let structs = contract.tools().map(|tool| arguments(tool, rt));
    quote!(#(#structs)*)
}

fn arguments(tool: &Tool, rt: &syn::Path) -> TokenStream {
    let name = format_ident!("{}Args", camel(&tool.name));
    let text = doc(&format!("The arguments of `{}`.", tool.name));
    let names: Vec<_> = tool.args.iter().map(|field| ident(&field.name)).collect();
    let fields = tool.args.iter().map(|field| {
        let (name, text, ty) = (ident(&field.name), doc(&field.doc), field_ty(field, rt));
        let skip = (tool.task().is_some() && field.name == "idempotency_key").then(|| quote!(#[serde(skip)]));
        quote!(#text #skip pub #name: #ty)
    });
    // Hygienic: an argument may be called the same.
    let from = Ident::new(if tool.args.is_empty() { "_from" } else { "from" }, Span::mixed_site());
    let reads = tool.args.iter().map(|field| read(&from, field));
    let schema = schema(&name.to_string(), &input_schema(tool).to_string(), rt);
    let serde = quote!(#rt::generated::serde).to_string();
    let serialize =
        tool.task().is_some().then(|| quote!(#[derive(#rt::generated::serde::Serialize)] #[serde(crate = #serde)]));
    quote! {
        #text
        #[derive(Clone, Debug, PartialEq)]
        #serialize
        pub struct #name { #(#fields,)* }

        impl #rt::args::Arguments for #name {
            fn read(#from: &mut #rt::args::Reader<'_>) -> ::core::option::Option<Self> {
                #(let #names = #reads;)*
                ::core::option::Option::Some(Self { #(#names: #names?,)* })
            }
        }
        #schema
    }
}

fn read(from: &Ident, field: &Field) -> TokenStream {
    let name = &field.name;
    match &field.default {
        Some(default) => {
            let default = literal(&field.ty, default);
            quote!(#from.optional(#name).map(|given| given.unwrap_or_else(|| #default)))
        }
        None if field.optional => quote!(#from.optional(#name)),
        None => quote!(#from.required(#name)),
    }
}

/// A default, which fits its type, as an expression.
fn literal(ty: &Type, value: &Value) -> TokenStream {
    match (ty, value) {
        (Type::Named(named), value) => {
            let name = ident(&named.name);
            match (&named.kind, value) {
                (Kind::Enum(_), Value::String(text)) => {
                    let variant = camel(text);
                    quote!(#name::#variant)
                }
                (_, Value::String(text)) => quote!(#name(#text.into())),
                (_, value) => {
                    let number = value.as_i64();
                    quote!(#name(#number))
                }
            }
        }
        (Type::List(inner), Value::Array(items)) => {
            let items = items.iter().map(|item| literal(inner, item));
            quote!(::std::vec![#(#items),*])
        }
        (_, Value::String(text)) => quote!(#text.to_owned()),
        (_, Value::Bool(flag)) => quote!(#flag),
        (_, value) => {
            let number = value.as_i64();
            quote!(#number)
        }
    }
}
