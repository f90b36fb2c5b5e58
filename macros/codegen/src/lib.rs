//! Turns a checked contract into Rust code, with one file here for each concern. It emits data and
//! calls; the logic is in the runtime.
//!
//! The functions here cannot fail, because a [`Contract`] has no mistakes. `contract!` expands to
//! [`expand`](expand()), and `toolwarrant expand` prints [`code`] for people.

mod args;
mod catalogue;
mod contract;
mod dispatch;
mod errors;
mod expand;
mod handlers;
mod ids;
mod openapi;
mod permissions;
mod tokens;
mod types;
mod words;

pub use expand::expand;

use proc_macro2::TokenStream;
use quote::quote;
use toolwarrant_reader::model::Contract;

/// Uses the framework at the path `runtime`.
#[must_use]
pub fn code(contract: &Contract, runtime: &syn::Path) -> TokenStream {
    let concerns = concerns(contract).map(|(_, code)| code);
    quote! {
        use #runtime as rt;
        #(#concerns)*
    }
}

#[must_use]
pub fn concerns(contract: &Contract) -> [(&'static str, TokenStream); 13] {
    [
        ("types", types::emit(contract)),
        ("ids", ids::emit(contract)),
        ("permissions", permissions::emit(contract)),
        ("words", words::emit(contract)),
        ("errors", errors::emit(contract)),
        ("own_errors", errors::enums(contract)),
        ("args", args::emit(contract)),
        ("handlers", handlers::emit(contract)),
        ("catalogue", catalogue::emit(contract)),
        ("tools", catalogue::tools(contract)),
        ("openapi", openapi::emit(contract)),
        ("contract", contract::emit(contract)),
        ("dispatch", dispatch::emit(contract)),
    ]
}
