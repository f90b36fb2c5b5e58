//! Small pieces that every emitter needs.

use cloudphone_spec::model::{Field, Type};
use cloudphone_spec::pascal;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// A name as it stands.
pub(crate) fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// A wire name as a type or variant.
pub(crate) fn camel(name: &str) -> Ident {
    ident(&pascal(name))
}

/// One doc attribute a line, as the spec says it.
pub(crate) fn doc(text: &str) -> TokenStream {
    let lines = text.trim().lines().map(|line| format!(" {line}"));
    quote!(#(#[doc = #lines])*)
}

/// The Rust type of a value.
pub(crate) fn ty(ty: &Type, rt: &syn::Path) -> TokenStream {
    match ty {
        Type::String => quote!(::std::string::String),
        Type::Integer => quote!(::core::primitive::i64),
        Type::Boolean => quote!(::core::primitive::bool),
        Type::Timestamp => quote!(#rt::Timestamp),
        Type::Named(named) => {
            let name = ident(&named.name);
            quote!(#name)
        }
        Type::List(inner) => {
            let inner = self::ty(inner, rt);
            quote!(::std::vec::Vec<#inner>)
        }
    }
}

/// The Rust type of a field, with what its flags make of it.
pub(crate) fn field_ty(field: &Field, rt: &syn::Path) -> TokenStream {
    let Field { name: _, doc: _, ty, optional, nullable, secret, untrusted, default } = field;
    let mut tokens = if *untrusted { quote!(#rt::text::Untrusted) } else { self::ty(ty, rt) };
    if *secret {
        tokens = quote!(#rt::text::Secret<#tokens>);
    }
    if *nullable || (*optional && default.is_none()) {
        tokens = quote!(::core::option::Option<#tokens>);
    }
    tokens
}
