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
        Kind::Object(_) if contract.is_argument(name) => return None,
        Kind::Integer { .. } | Kind::Number { .. } | Kind::Enum(_) => return None,
        Kind::Text(_) | Kind::Map { .. } | Kind::Json(_) => return None,
        Kind::String(_) => resource(contract, name).map(|resource| quote!(visit(#resource, &self.0);)).collect(),
        Kind::Object(fields) => {
            fields.iter().filter(|field| !field.ours && holds_ids(contract, &field.ty)).map(visit).collect()
        }
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

fn holds_ids(contract: &Contract, ty: &Type) -> bool {
    let Type::Named(named) = ty.element() else { return false };
    match &named.kind {
        Kind::Object(fields) => fields.iter().any(|field| !field.ours && holds_ids(contract, &field.ty)),
        Kind::Map { values, .. } => holds_ids(contract, values),
        _ => resource(contract, &named.name).next().is_some(),
    }
}
