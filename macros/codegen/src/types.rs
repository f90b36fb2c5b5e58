//! Emits the named types.

use crate::tokens::{camel, doc, field_ty, ident, member, number, rename};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;
use std::sync::Arc;
use toolwarrant_reader::model::{Contract, Field, Kind, Member, NamedType, StringSpec, Type};
use toolwarrant_reader::{RUNTIME_TYPES, describe_values};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let types = contract.types.iter().map(define_type);
    quote!(#(#types)*)
}

fn define_type(ty: &Arc<NamedType>) -> TokenStream {
    let NamedType { name, doc: text, kind } = &**ty;
    if RUNTIME_TYPES.contains(&name.as_str()) {
        let name = ident(name);
        return quote!(pub use rt::tasks::#name;);
    }
    match kind {
        Kind::String(rule) => string(ty, rule),
        Kind::Integer { min, max } => {
            let (name, text, allowed) = (ident(name), doc(text), describe_values(&Type::Named(Arc::clone(ty))));
            let (min, max) = (number(*min), number(*max));
            quote! {
                #text
                #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
                pub struct #name(i64);
                rt::generated::integer!(#name, #min..=#max, #allowed);
            }
        }
        Kind::Enum(members) => enumeration(name, text, members),
        Kind::Object(fields) => object(name, text, fields),
    }
}

fn string(ty: &Arc<NamedType>, StringSpec { min, max, prefix, charset }: &StringSpec) -> TokenStream {
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

fn object(name: &str, text: &str, fields: &[Field]) -> TokenStream {
    let (name, text) = (ident(name), doc(text));
    let list = fields.first().and_then(|first| list(&name, first));
    let fields = fields.iter().map(|field| {
        let (name, text, ty) = (member(&field.name), doc(&field.doc), field_ty(field));
        let form = rename(&field.name);
        quote!(#text #form pub #name: #ty)
    });
    quote! {
        #text
        #[derive(Clone, Debug, PartialEq, rt::generated::serde::Serialize)]
        #[serde(crate = "rt::generated::serde")]
        pub struct #name { #(#fields,)* }
        #list
    }
}

fn list(name: &Ident, first: &Field) -> Option<TokenStream> {
    let Type::List(item) = &first.ty else { return None };
    let Type::Named(item) = &**item else { return None };
    let (item, open) = (ident(&item.name), format!("{{\"{}\":[", first.name));
    (!first.nullable && !first.secret).then(|| {
        quote! {
            impl rt::reply::ListResult for #name {
                type Item = #item;
                const OPEN: &'static str = #open;
            }
        }
    })
}
