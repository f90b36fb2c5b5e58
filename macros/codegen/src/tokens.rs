//! Small pieces that every emitter needs.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use toolwarrant_spec::model::{Contract, Domain, EffectSpec, Field, ToolSpec, Type};
use toolwarrant_spec::pascal;

/// A name as it stands.
pub(crate) fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// A wire name as a type or variant.
pub(crate) fn camel(name: &str) -> Ident {
    ident(&pascal(name))
}

/// A wire name as a static.
pub(crate) fn shout(name: &str) -> Ident {
    ident(&name.to_ascii_uppercase())
}

/// The name of the arguments of a tool.
pub(crate) fn args_name(tool: &ToolSpec) -> Ident {
    format_ident!("{}Args", camel(&tool.name))
}

/// A number without its type.
pub(crate) fn number(number: impl Into<i64>) -> Literal {
    Literal::i64_unsuffixed(number.into())
}

/// One doc attribute a line, as the spec says it.
pub(crate) fn doc(text: &str) -> TokenStream {
    let lines = text.trim().lines().map(|line| if line.is_empty() { String::new() } else { format!(" {line}") });
    quote!(#(#[doc = #lines])*)
}

/// `Some` of it, or `None`.
pub(crate) fn option(value: Option<impl quote::ToTokens>) -> TokenStream {
    value.map_or_else(|| quote!(None), |value| quote!(Some(#value)))
}

/// The files of `tools/` that have a tool with a handler, and these tools.
pub(crate) fn handled(contract: &Contract) -> impl Iterator<Item = (&Domain, Vec<&ToolSpec>)> {
    let domains =
        contract.domains.iter().map(|domain| (domain, domain.tools.iter().filter(|tool| is_handled(tool)).collect()));
    domains.filter(|(_, tools): &(_, Vec<_>)| !tools.is_empty())
}

/// Whether a handler is asked: the framework itself reads tasks.
pub(crate) fn is_handled(tool: &ToolSpec) -> bool {
    !matches!(tool.effect, EffectSpec::ReadTask)
}

/// The Rust type of a value.
pub(crate) fn ty(ty: &Type) -> TokenStream {
    match ty {
        Type::String => quote!(String),
        Type::Integer => quote!(i64),
        Type::Boolean => quote!(bool),
        Type::Timestamp => quote!(rt::Timestamp),
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

/// The Rust type of a field, with what its flags make of it.
pub(crate) fn field_ty(field: &Field) -> TokenStream {
    let Field { name: _, doc: _, ty, optional, nullable, secret, untrusted, default } = field;
    let mut tokens = if *untrusted { quote!(rt::text::Untrusted) } else { self::ty(ty) };
    if *secret {
        tokens = quote!(rt::text::Secret<#tokens>);
    }
    if *nullable || (*optional && default.is_none()) {
        tokens = quote!(Option<#tokens>);
    }
    tokens
}
