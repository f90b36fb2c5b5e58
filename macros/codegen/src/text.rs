//! Formats the generated code for people.

use crate::code;
use proc_macro2::TokenStream;
use toolwarrant_reader::model::Contract;

/// Returns the expansion of `contract!` for a contract, formatted. `runtime` is the path of the
/// framework, such as `::toolwarrant::runtime`.
#[must_use]
pub fn expand(contract: &Contract, runtime: &str) -> String {
    match syn::parse_str(runtime) {
        Ok(runtime) => format_code(code(contract, &runtime)),
        Err(error) => format!("// `{runtime}` is no path: {error}\n"),
    }
}

/// Formats code as a Rust file. Code that does not parse as a file is returned without layout.
pub(crate) fn format_code(code: TokenStream) -> String {
    let text = code.to_string();
    syn::parse2(code).map_or(text, |file| prettyplease::unparse(&file))
}
