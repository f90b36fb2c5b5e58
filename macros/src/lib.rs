//! `contract!`: a spec folder becomes typed handlers, schemas, permission and capability checks.
//!
//! This file resolves the folder; [`expand`] turns a contract into tokens and cannot fail; `emit` has one file a concern.
//! Nothing here reads TOML or judges it: `cloudphone_spec::load` does.

mod emit;
mod expand;
mod tokens;

#[cfg(test)]
mod golden;

use proc_macro::TokenStream;
use std::path::Path;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token, parse_macro_input};

/// Expands to the whole contract in a folder: `contract!("../../spec", runtime = crate::framework);`
///
/// The folder is relative to the file that contains the invocation. `runtime` is the path of the framework that the
/// generated code is written against. Every mistake in the contract is a compile error of its own, with rule, file, line,
/// column and help, and nothing else is emitted then.
#[proc_macro]
pub fn contract(input: TokenStream) -> TokenStream {
    let Input { folder, runtime } = parse_macro_input!(input as Input);
    let source = proc_macro::Span::call_site().local_file().unwrap_or_default();
    let folder_path = source.parent().unwrap_or(Path::new("")).join(folder.value());
    expand::expand(&folder, &folder_path, &runtime).into()
}

struct Input {
    folder: LitStr,
    runtime: syn::Path,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let folder = input.parse()?;
        input.parse::<Token![,]>()?;
        let key: Ident = input.parse()?;
        if key != "runtime" {
            return Err(syn::Error::new(key.span(), "expected `runtime = path::to::framework`"));
        }
        input.parse::<Token![=]>()?;
        let runtime = input.call(syn::Path::parse_mod_style)?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Self { folder, runtime })
    }
}
