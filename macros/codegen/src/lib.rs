//! A checked contract as Rust, one file a concern. Each emits data and calls; the logic is in the runtime.
//!
//! Nothing here can fail: what a [`Contract`] says is without mistakes. The macro `contract!` is the shell around [`code`],
//! and `expand` shows the same to people.

mod args;
mod catalogue;
mod dispatch;
mod errors;
mod handlers;
mod permissions;
mod tokens;
mod types;

#[cfg(any(test, feature = "text"))]
mod text;

#[cfg(test)]
mod golden;

#[cfg(any(test, feature = "text"))]
pub use text::expand;

use proc_macro2::TokenStream;
use quote::quote;
use toolwarrant_spec::model::Contract;

/// The whole contract as the items of a module. `runtime` is the path of the framework that they are written against.
#[must_use]
pub fn code(contract: &Contract, runtime: &syn::Path) -> TokenStream {
    let concerns = concerns(contract).map(|(_, code)| code);
    quote! {
        use #runtime as rt;
        #(#concerns)*
    }
}

/// Each concern by its name, in reading order.
fn concerns(contract: &Contract) -> [(&'static str, TokenStream); 8] {
    [
        ("types", types::emit(contract)),
        ("permissions", permissions::emit(contract)),
        ("errors", errors::emit(contract)),
        ("args", args::emit(contract)),
        ("handlers", handlers::emit(contract)),
        ("catalogue", catalogue::emit(contract)),
        ("tools", catalogue::tools(contract)),
        ("dispatch", dispatch::emit(contract)),
    ]
}
