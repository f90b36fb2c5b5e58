//! Emits where each type of a result has ids of targets, so that the pipeline can check them.

use crate::tokens::{ident, member};
use proc_macro2::TokenStream;
use quote::quote;
use toolwarrant_reader::RUNTIME_TYPES;
use toolwarrant_reader::model::{Contract, Field, Kind, NamedType, Type};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let own = contract.types.iter().filter(|ty| !RUNTIME_TYPES.contains(&ty.name.as_str()));
    own.filter_map(|ty| target_ids(contract, ty)).collect()
}

fn target_ids(contract: &Contract, NamedType { name, kind, .. }: &NamedType) -> Option<TokenStream> {
    let visits: Vec<_> = match kind {
        Kind::Integer { .. } | Kind::Enum(_) => return None,
        Kind::String(_) => resource(contract, name).map(|resource| quote!(visit(#resource, &self.0);)).collect(),
        Kind::Object(fields) => fields.iter().filter(|field| holds_ids(contract, field)).map(visit).collect(),
    };
    let method = (!visits.is_empty()).then(|| {
        quote! {
            fn visit_ids(&self, visit: rt::reply::VisitId<'_>) {
                #(#visits)*
            }
        }
    });
    let name = ident(name);
    Some(quote!(impl rt::reply::TargetIds for #name { #method }))
}

fn visit(field: &Field) -> TokenStream {
    let name = member(&field.name);
    quote!(rt::reply::TargetIds::visit_ids(&self.#name, visit);)
}

fn resource<'a>(contract: &'a Contract, ty: &str) -> impl Iterator<Item = &'a String> {
    contract.resources.iter().filter(move |resource| resource.id.name == ty).map(|resource| &resource.name)
}

fn holds_ids(contract: &Contract, Field { ty, untrusted, ours, .. }: &Field) -> bool {
    // These fields have a Rust type of their own.
    if *untrusted || *ours {
        return false;
    }
    match ty.element() {
        Type::Named(named) => match &named.kind {
            Kind::Object(fields) => fields.iter().any(|field| holds_ids(contract, field)),
            _ => resource(contract, &named.name).next().is_some(),
        },
        _ => false,
    }
}
