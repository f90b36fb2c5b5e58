//! Formats the generated code for people.

use proc_macro2::TokenStream;
use syn::parse_quote;
use toolwarrant_codegen::code;
use toolwarrant_reader::model::Contract;

#[must_use]
pub fn expand(contract: &Contract) -> String {
    format_code(code(contract, &parse_quote!(::toolwarrant::runtime)))
}

/// Returns code that does not parse as a file without layout.
#[must_use]
pub fn format_code(code: TokenStream) -> String {
    let text = code.to_string();
    syn::parse2(code).map_or(text, |file| prettyplease::unparse(&file))
}
