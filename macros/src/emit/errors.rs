//! Error codes, and for each tool the enum of those that its handler may return.

use crate::tokens::{camel, doc, field_ty, ident};
use cloudphone_spec::model::{Contract, ErrorCode, Tool};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

pub(crate) fn emit(contract: &Contract, rt: &syn::Path) -> TokenStream {
    let table = contract.errors.iter().map(|error| {
        let ErrorCode { code, role: _, retryable, http, jsonrpc, meaning, remedy, fields: _ } = &**error;
        quote! {
            #rt::catalogue::ErrorDef {
                code: #code,
                retryable: #retryable,
                http: #http,
                jsonrpc: #jsonrpc,
                meaning: #meaning,
                remedy: #remedy,
            }
        }
    });
    let count = contract.errors.len();
    let own = contract.tools().map(|tool| own(contract, tool, rt));
    quote! {
        static ERRORS: [#rt::catalogue::ErrorDef; #count] = [#(#table),*];
        #(#own)*
    }
}

/// A reference to an error's row.
pub(crate) fn row(contract: &Contract, error: &ErrorCode) -> TokenStream {
    let at = contract.errors.iter().position(|known| known.code == error.code);
    quote!(&ERRORS[#at])
}

fn own(contract: &Contract, tool: &Tool, rt: &syn::Path) -> TokenStream {
    let name = format_ident!("{}Error", camel(&tool.name));
    let text = doc(&format!("What the handler of `{}` may fail with beyond what is checked before it.", tool.name));
    let variants = tool.own_errors.iter().map(|error| {
        let (variant, text) = (camel(&error.code), doc(&error.meaning));
        let fields = error.fields.iter().map(|field| {
            let (name, text, ty) = (ident(&field.name), doc(&field.doc), field_ty(field, rt));
            quote!(#text #name: #ty)
        });
        quote! {
            #text
            #variant {
                /// What was wrong: a lower-case fragment; the remedy is added to it.
                what: ::std::borrow::Cow<'static, str>,
                #(#fields,)*
            }
        }
    });
    let arms = tool.own_errors.iter().map(|error| {
        let (variant, row) = (camel(&error.code), row(contract, error));
        let names: Vec<_> = error.fields.iter().map(|field| ident(&field.name)).collect();
        let keys = error.fields.iter().map(|field| &field.name);
        quote! {
            #name::#variant { what, #(#names,)* } => #rt::failure::Failure::new(#row, what)#(.with(#keys, #names))*,
        }
    });
    quote! {
        #text
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name { #(#variants,)* }

        impl ::core::convert::From<#name> for #rt::failure::Failure {
            fn from(error: #name) -> Self {
                match error { #(#arms)* }
            }
        }
    }
}
