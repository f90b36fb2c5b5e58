//! This crate only reads the arguments. `toolwarrant_reader::load` checks the contract;
//! `toolwarrant_codegen` writes the Rust code, or turns mistakes into compile errors.

#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

use proc_macro::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token, parse_macro_input, parse_quote};

/// Expands to the code of the contract in a folder. Give it a module of its own:
/// `mod contract { toolwarrant::contract!("spec"); }`
///
/// The folder is relative to that of the crate's `Cargo.toml`. The compiler expands the macro again
/// if a file of the contract changes; it notices a new file only when another file changes. Each
/// mistake is a compile error of its own. Errors that would only follow from these mistakes are
/// suppressed.
///
/// The generated code uses the framework at `::toolwarrant::runtime`;
/// `contract!("spec", runtime = path)` names another path.
#[proc_macro]
pub fn contract(input: TokenStream) -> TokenStream {
    let Input { folder, runtime } = parse_macro_input!(input as Input);
    // Cargo sets it to the folder of the package.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    toolwarrant_codegen::expand(&folder, package.as_ref(), &runtime).into()
}

struct Input {
    folder: LitStr,
    runtime: syn::Path,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let folder = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        if input.is_empty() {
            return Ok(Self { folder, runtime: parse_quote!(::toolwarrant::runtime) });
        }
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
