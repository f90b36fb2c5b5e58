//! Helpers that all emitters use.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use toolwarrant_reader::model::{Contract, Domain, EffectSpec, Field, Kind, ToolSpec, Type};
use toolwarrant_reader::{is_keyword, pascal, snake};

pub(crate) fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// Returns the name in Rust of a tool, an argument or a field.
pub(crate) fn member(name: &str) -> Ident {
    let name = snake(name);
    match name.as_str() {
        "self" | "super" | "crate" => format_ident!("{name}_"),
        keyword if is_keyword(keyword) => Ident::new_raw(keyword, Span::call_site()),
        name => ident(name),
    }
}

/// Returns the attribute of a field that has another name on the wire.
pub(crate) fn rename(name: &str) -> Option<TokenStream> {
    (member(name).unraw() != *name).then(|| quote!(#[serde(rename = #name)]))
}

pub(crate) fn camel(name: &str) -> Ident {
    ident(&pascal(name))
}

pub(crate) fn shout(name: &str) -> Ident {
    ident(&snake(name).to_ascii_uppercase())
}

pub(crate) fn args_name(tool: &ToolSpec) -> Ident {
    format_ident!("{}Args", camel(&tool.name))
}

pub(crate) fn size(size: usize) -> Literal {
    Literal::usize_unsuffixed(size)
}

pub(crate) fn number(number: impl Into<i64>) -> Literal {
    Literal::i64_unsuffixed(number.into())
}

pub(crate) fn doc(text: &str) -> TokenStream {
    let lines = text.trim().lines().map(|line| if line.is_empty() { String::new() } else { format!(" {line}") });
    quote!(#(#[doc = #lines])*)
}

pub(crate) fn option(value: Option<impl quote::ToTokens>) -> TokenStream {
    value.map_or_else(|| quote!(None), |value| quote!(Some(#value)))
}

pub(crate) fn handler_domains(contract: &Contract) -> impl Iterator<Item = (&Domain, Vec<&ToolSpec>)> {
    let domains =
        contract.domains.iter().map(|domain| (domain, domain.tools.iter().filter(|tool| is_handled(tool)).collect()));
    domains.filter(|(_, tools): &(_, Vec<_>)| !tools.is_empty())
}

pub(crate) fn is_handled(tool: &ToolSpec) -> bool {
    !matches!(tool.effect, EffectSpec::ReadTask)
}

pub(crate) fn ty(ty: &Type) -> TokenStream {
    match ty {
        Type::String => quote!(String),
        Type::Integer => quote!(i64),
        Type::Boolean => quote!(bool),
        Type::Timestamp => quote!(rt::Timestamp),
        Type::Url => quote!(rt::text::WebUrl),
        Type::Picture => quote!(rt::picture::Picture),
        Type::Named(named) => {
            let name = ident(&named.name);
            quote!(#name)
        }
        Type::List(inner) => {
            let inner = self::ty(inner);
            quote!(Vec<#inner>)
        }
    }
}

/// Returns the type of a value of others in a result.
fn untrusted(ty: &Type) -> TokenStream {
    match ty {
        Type::List(inner) => {
            let inner = untrusted(inner);
            quote!(Vec<#inner>)
        }
        Type::String => quote!(rt::text::Untrusted),
        Type::Named(named) => match &named.kind {
            Kind::Text(max) => {
                let max = size(*max);
                quote!(rt::text::UntrustedText<#max>)
            }
            Kind::Map { values, max_items } => {
                let (values, max) = (untrusted(values), size(*max_items));
                quote!(rt::outside::UntrustedMap<#values, #max>)
            }
            Kind::Json(max) => {
                let max = size(*max);
                quote!(rt::outside::UntrustedJson<#max>)
            }
            _ => self::ty(ty),
        },
        _ => self::ty(ty),
    }
}

pub(crate) fn field_ty(field: &Field) -> TokenStream {
    let Field { name: _, doc: _, ty, optional, nullable, secret, untrusted, ours, told: _, .. } = field;
    let mut tokens = match (untrusted, ours, ty) {
        (true, ..) => self::untrusted(ty),
        (_, true, Type::List(_)) => quote!(Vec<rt::wording::Words>),
        (_, true, _) => quote!(rt::wording::Words),
        _ => self::ty(ty),
    };
    if *secret {
        tokens = quote!(rt::text::Secret<#tokens>);
    }
    if *optional && *nullable {
        tokens = quote!(rt::args::Nullable<#tokens>);
    }
    if *nullable || (*optional && field.default.is_none()) {
        tokens = quote!(Option<#tokens>);
    }
    tokens
}
