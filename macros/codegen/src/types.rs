//! Emits the named types.

use crate::args;
use crate::tokens::{camel, doc, field_ty, ident, member, number, rename, size, ty};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote};
use std::sync::Arc;
use toolwarrant_reader::model::{Contract, Field, Kind, Member, NamedType, StringSpec, Type};
use toolwarrant_reader::{RUNTIME_TYPES, describe_values};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let types = contract.types.iter().map(|ty| define_type(contract, ty));
    quote!(#(#types)*)
}

fn define_type(contract: &Contract, named: &Arc<NamedType>) -> TokenStream {
    let NamedType { name, doc: text, kind } = &**named;
    if RUNTIME_TYPES.contains(&name.as_str()) {
        let name = ident(name);
        return quote!(pub use rt::tasks::#name;);
    }
    let is_argument = contract.is_argument(name);
    let (id, text, allowed) = (ident(name), doc(text), describe_values(&Type::Named(Arc::clone(named))));
    match kind {
        Kind::String(rule) => string(named, rule, None),
        Kind::Text(max) => {
            let rule = StringSpec { min: 0, max: *max, prefix: String::new(), charset: Vec::new() };
            string(
                named,
                &rule,
                Some(quote!(
                    const IS_TEXT: bool = true;
                )),
            )
        }
        Kind::Integer { min, max } => {
            let (min, max) = (number(*min), number(*max));
            quote! {
                #text
                #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
                pub struct #id(i64);
                rt::generated::integer!(#id, #min..=#max, #allowed);
            }
        }
        Kind::Number { min, max } => {
            let bound =
                |bound: Option<f64>, none| bound.map_or(none, |bound| Literal::f64_unsuffixed(bound).to_token_stream());
            let (min, max) = (bound(*min, quote!(f64::NEG_INFINITY)), bound(*max, quote!(f64::INFINITY)));
            quote! {
                #text
                #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
                pub struct #id(f64);
                rt::generated::number!(#id, #min..=#max, #allowed);
            }
        }
        Kind::Enum(members) => enumeration(name, &named.doc, members),
        Kind::Object(fields) => {
            let object = object(name, &named.doc, fields, is_argument);
            // An object counts for itself.
            let is_value = contract.types.iter().any(|ty| {
                matches!(&ty.kind, Kind::Map { values, .. } if values.as_named().is_some_and(|ty| ty.name == *name))
            });
            let counts = is_value.then(|| quote!(impl rt::text::Altered for #id {}));
            quote!(#object #counts)
        }
        // A result has maps and JSON of others, whose types the framework has.
        Kind::Map { .. } | Kind::Json(_) if !is_argument => TokenStream::new(),
        Kind::Map { values, max_items } => {
            let (values, max) = (ty(values), size(*max_items));
            quote!(#text pub type #id = rt::args::FreeMap<#values, #max>;)
        }
        Kind::Json(max) => {
            let max = size(*max);
            quote!(#text pub type #id = rt::args::FreeJson<#max>;)
        }
    }
}

fn string(
    ty: &Arc<NamedType>,
    StringSpec { min, max, prefix, charset }: &StringSpec,
    is_text: Option<TokenStream>,
) -> TokenStream {
    let (name, text, allowed) = (ident(&ty.name), doc(&ty.doc), describe_values(&Type::Named(Arc::clone(ty))));
    let [min, max] = [min, max].map(|length| Literal::usize_unsuffixed(*length));
    let charset = charset.iter().map(|(from, to)| {
        let [from, to] = [from, to].map(|c| Literal::byte_character(*c as u8));
        quote!((#from, #to))
    });
    quote! {
        #text
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct #name(std::sync::Arc<str>);
        rt::generated::string!(#name);

        impl rt::args::StringType for #name {
            const RULE: rt::args::StringRule =
                rt::args::StringRule { min: #min, max: #max, prefix: #prefix, charset: &[#(#charset),*] };
            const ALLOWED: &'static str = #allowed;
            #is_text
        }
    }
}

fn enumeration(name: &str, text: &str, members: &[Member]) -> TokenStream {
    let (name, text) = (ident(name), doc(text));
    let variants: Vec<_> = members.iter().map(|member| camel(&member.name)).collect();
    let docs = members.iter().map(|member| doc(&member.doc));
    let wire = members.iter().map(|member| &member.name);
    quote! {
        #text
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum #name { #(#docs #variants,)* }
        rt::generated::values!(#name { #(#variants = #wire),* });
    }
}

fn object(name: &str, text: &str, fields: &[Field], is_argument: bool) -> TokenStream {
    let (id, text) = (ident(name), doc(text));
    let list = fields.first().filter(|_| !is_argument).and_then(|first| list(&id, first));
    let altered = fields.iter().any(|field| field.derived).then(|| count_altered(&id, fields));
    let reads = is_argument.then(|| {
        let reads = args::reads(&id, fields, None);
        quote!(#reads rt::generated::object!(#id);)
    });
    let fields: Vec<_> = fields
        .iter()
        .filter(|field| !field.derived)
        .map(|field| {
            let (name, text, ty) = (member(&field.name), doc(&field.doc), field_ty(field));
            let form = rename(&field.name).filter(|_| altered.is_none());
            quote!(#text #form pub #name: #ty)
        })
        .collect();
    let derives = match &altered {
        Some(_) => quote!(#[derive(Clone, Debug, PartialEq)]),
        None => quote! {
            #[derive(Clone, Debug, PartialEq, rt::generated::serde::Serialize)]
            #[serde(crate = "rt::generated::serde")]
        },
    };
    quote! {
        #text
        #derives
        pub struct #id { #(#fields,)* }
        #list
        #altered
        #reads
    }
}

/// Writes an object with the number of characters that its texts write out.
fn count_altered(id: &Ident, fields: &[Field]) -> TokenStream {
    let own = || fields.iter().filter(|field| !field.derived);
    let (members, names) = (own().map(|field| member(&field.name)), own().map(|field| &field.name));
    let is_text = |field: &&Field| {
        let named = field.ty.element().as_named();
        field.untrusted && named.is_some_and(|ty| matches!(ty.kind, Kind::Text(_) | Kind::Map { .. } | Kind::Json(_)))
    };
    let texts = own().filter(is_text).map(|field| member(&field.name));
    quote!(rt::generated::altered!(#id { #(#members = #names),* } #(#texts)*);)
}

fn list(name: &Ident, first: &Field) -> Option<TokenStream> {
    let Type::List(item) = &first.ty else { return None };
    let Type::Named(item) = &**item else { return None };
    let (item, open) = (ident(&item.name), format!("{{\"{}\":[", first.name));
    (!first.nullable && !first.secret && !first.untrusted).then(|| {
        quote! {
            impl rt::reply::ListResult for #name {
                type Item = #item;
                const OPEN: &'static str = #open;
            }
        }
    })
}
