//! `contract!`: a spec folder becomes typed handlers, schemas, permission and capability checks.
//!
//! This crate is the shell: it finds the folder, has the contract loaded and made into Rust, and turns mistakes into compile
//! errors. `toolwarrant_spec::load` reads and judges, `toolwarrant_codegen::code` writes.

mod expand;

use proc_macro::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token, parse_macro_input, parse_quote};

/// Expands to the whole contract in a folder, in a module of its own: `mod contract { toolwarrant::contract!("spec"); }`
///
/// The folder is relative to that of the crate's `Cargo.toml`. The contract is read again when a file that it was
/// read from changes. A new file is noticed only when another one changes. Every mistake in the contract is a compile error of its
/// own, with rule, file, line, column and help. Errors that would only follow from these mistakes are suppressed.
///
/// The generated code is written against `::toolwarrant::runtime`; `contract!("spec", runtime = path)` names another path.
#[proc_macro]
pub fn contract(input: TokenStream) -> TokenStream {
    let Input { folder, runtime } = parse_macro_input!(input as Input);
    expand::expand(&folder, &runtime).into()
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
