//! Emits the document of `/v1` as text. It is an item of its own, so that the catalogue stays
//! readable.

use proc_macro2::TokenStream;
use quote::quote;
use toolwarrant_reader::model::Contract;

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let document = toolwarrant_reader::openapi(contract).to_string();
    quote! {
        /// The OpenAPI document of `/v1`, as JSON.
        const OPENAPI: &str = #document;
    }
}
