//! Emits the error types.

use crate::tokens::{camel, doc, field_ty, is_handled, member, number, option, shout};
use crate::words;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};
use toolwarrant_reader::model::{Contract, ErrorCode, Field, ToolSpec, Type};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let answered = |error: &ErrorCode| {
        error.role.is_some() || contract.tools().any(|tool| tool.errors.iter().any(|known| known.code == error.code))
    };
    let table = contract.errors.iter().filter(|error| answered(error)).map(|error| {
        let ErrorCode {
            code,
            role: _,
            retryable,
            retry_after_seconds,
            http,
            jsonrpc,
            meaning,
            brief: _,
            remedy,
            fields: _,
        } = &**error;
        let after = option(retryable.then(|| Literal::u32_unsuffixed(*retry_after_seconds)));
        let remedy = words::advice(contract, remedy);
        let (name, http, jsonrpc) = (name(error), Literal::u16_unsuffixed(*http), number(*jsonrpc));
        quote! {
            pub(super) static #name: ErrorDef = ErrorDef {
                code: #code,
                retry_after_seconds: #after,
                http: #http,
                jsonrpc: #jsonrpc,
                meaning: #meaning,
                remedy: #remedy,
            };
        }
    });
    quote! {
        /// Every error that a call can end with.
        mod errors {
            use super::rt::advice::*;
            use super::rt::catalogue::ErrorDef;
            #(#table)*
        }
    }
}

pub(crate) fn enums(contract: &Contract) -> TokenStream {
    let internal = contract.role(INTERNAL).map(|error| name(error));
    contract.tools().filter(|tool| is_handled(tool)).map(|tool| own(tool, internal.as_ref())).collect()
}

const INTERNAL: &str = "internal";

pub(crate) fn name(error: &ErrorCode) -> Ident {
    shout(&error.code)
}

fn own(tool: &ToolSpec, internal: Option<&Ident>) -> TokenStream {
    let name = format_ident!("{}Error", camel(&tool.name));
    let text = doc(&format!(
        "The errors that the handler of `{}` itself may return, without those of the checks before it.",
        tool.name
    ));
    let own = || tool.own_errors.iter().filter(|error| error.role.as_deref() != Some(INTERNAL));
    let variants = own().map(|error| {
        let (variant, text) = (camel(&error.code), doc(&error.meaning));
        let fields = error.fields.iter().map(|field| {
            let (name, text, ty) = (member(&field.name), doc(&field.doc), field_ty(field));
            quote!(#text #name: #ty)
        });
        quote! {
            #text
            #variant {
                /// The mistake: a lower-case fragment in our own words. The remedy follows.
                what: rt::wording::Words,
                #(#fields,)*
            }
        }
    });
    let arms = own().map(|error| {
        let (variant, row) = (camel(&error.code), self::name(error));
        let names: Vec<_> = error.fields.iter().map(|field| member(&field.name)).collect();
        let keys = error.fields.iter().map(|field| &field.name);
        let told = |field: &&Field| {
            matches!(field.ty, Type::Timestamp) && error.remedy.contains(&format!("{{{}}}", field.name))
        };
        let moment = error.fields.iter().find(told).filter(|_| error.retryable).map(|field| member(&field.name));
        let moment = moment.map(|moment| quote!(.repeat_at(#moment)));
        quote! {
            #name::#variant { what, #(#names,)* } => Self::new(&errors::#row, what)#moment #(.with(#keys, #names))*,
        }
    });
    quote! {
        #text
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name {
            #(#variants,)*
            /// The handler cannot do its work. The text is for the log alone.
            Internal(rt::text::Remark),
        }

        impl From<#name> for rt::failure::Failure {
            fn from(error: #name) -> Self {
                match error {
                    #(#arms)*
                    #name::Internal(cause) => Self::fault(&errors::#internal, cause),
                }
            }
        }
    }
}
