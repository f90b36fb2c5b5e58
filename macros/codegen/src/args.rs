//! Emits the arguments: one struct for each tool, which reads the client's values by name.

use crate::tokens::{args_name, camel, doc, field_ty, ident, member, number, rename, shout, size};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use serde_json::Value;
use toolwarrant_reader::model::{Contract, Field, Kind, ToolSpec, Type};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let structs = contract.tools().map(arguments);
    quote!(#(#structs)*)
}

fn arguments(tool: &ToolSpec) -> TokenStream {
    let name = args_name(tool);
    let text = doc(&format!("The arguments of `{}`.", tool.name));
    let fields = tool.args.iter().map(|field| {
        let (name, text, ty) = (member(&field.name), doc(&field.doc), field_ty(field));
        let is_key = field.name == "idempotency_key";
        let form = if is_key { Some(quote!(#[serde(skip)])) } else { rename(&field.name) };
        let absent = field.nullable.then(|| quote!(#[serde(skip_serializing_if = "Option::is_none")]));
        let form = tool.task().map(|_| quote!(#form #absent));
        quote!(#text #form pub #name: #ty)
    });
    let derives = match tool.task() {
        Some(_) => quote! {
            #[derive(Clone, Debug, PartialEq, rt::generated::serde::Serialize)]
            #[serde(crate = "rt::generated::serde")]
        },
        None => quote!(#[derive(Clone, Debug, PartialEq)]),
    };
    let former = tool.args.iter().flat_map(|field| {
        let present = &field.name;
        field.formerly.iter().map(move |former| quote!((#former, #present)))
    });
    let former: Vec<_> = former.collect();
    let former =
        (!former.is_empty()).then(|| quote!(const FORMER: &'static [(&'static str, &'static str)] = &[#(#former),*];));
    let nullable: Vec<_> = tool.args.iter().filter(|field| field.nullable).map(|field| &field.name).collect();
    let nullable = (!nullable.is_empty()).then(|| quote!(const NULLABLE: &'static [&'static str] = &[#(#nullable),*];));
    let reads = reads(&name, &tool.args, Some(quote!(#former #nullable)));
    let constants = (!tool.args.is_empty()).then(|| {
        let constants = tool.args.iter().map(|field| {
            let (wire, constant) = (&field.name, shout(&field.name));
            let text = doc(&format!("The argument `{wire}` on the wire."));
            quote!(#text pub const #constant: &'static str = #wire;)
        });
        quote!(impl #name { #(#constants)* })
    });
    quote! {
        #text
        #derives
        pub struct #name { #(#fields,)* }

        #constants

        #reads
    }
}

/// Implements the reading of an object by the names of its members.
pub(crate) fn reads(object: &Ident, fields: &[Field], constants: Option<TokenStream>) -> TokenStream {
    let names: Vec<_> = fields.iter().map(|field| member(&field.name)).collect();
    // The identifier is hygienic, because an argument may have the same name.
    let from = Ident::new(if fields.is_empty() { "_from" } else { "from" }, Span::mixed_site());
    let reads = fields.iter().map(|field| read(&from, field));
    quote! {
        impl rt::args::Arguments for #object {
            #constants

            fn read(#from: &mut rt::args::Reader<'_>) -> Option<Self> {
                #(let #names = #reads;)*
                Some(Self { #(#names: #names?,)* })
            }
        }
    }
}

/// Reads all fields before it reports a missing one, so that a refusal names every mistake.
fn read(from: &Ident, field: &Field) -> TokenStream {
    let (name, nullable, optional) = (&field.name, field.nullable, field.optional);
    let way = if nullable {
        "nullable"
    } else if optional {
        "optional"
    } else {
        "require"
    };
    let given = match field.max_items.map(size) {
        Some(max) => {
            let way = format_ident!("{way}_list");
            quote!(#from.#way::<_, #max>(#name))
        }
        None => {
            let way = ident(way);
            quote!(#from.#way(#name))
        }
    };
    match &field.default {
        Some(default) => {
            let default = literal(&field.ty, default);
            quote!(#given.map(|given| given.unwrap_or_else(|| #default)))
        }
        None => given,
    }
}

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
                (Kind::Number { .. }, value) => {
                    let number = Literal::f64_unsuffixed(value.as_f64().unwrap_or_default());
                    quote!(#name(#number))
                }
                (_, value) => {
                    let number = number(value.as_i64().unwrap_or_default());
                    quote!(#name(#number))
                }
            }
        }
        (Type::List(inner), Value::Array(items)) => {
            let items = items.iter().map(|item| literal(inner, item));
            quote!(vec![#(#items),*])
        }
        (_, Value::String(text)) => quote!(#text.to_owned()),
        (_, Value::Bool(flag)) => quote!(#flag),
        (_, value) => {
            let number = number(value.as_i64().unwrap_or_default());
            quote!(#number)
        }
    }
}
