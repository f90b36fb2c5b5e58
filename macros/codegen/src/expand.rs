//! Turns the folder of a contract into tokens: the generated code, or compile errors and stubs that
//! prevent further errors.

use crate::code;
use crate::contract::released_file;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use std::path::{Path, PathBuf};
use syn::LitStr;
use toolwarrant_reader::{Report, load};

#[must_use]
pub fn expand(folder: &LitStr, package: &Path, runtime: &syn::Path) -> TokenStream {
    let path = package.join(folder.value());
    if let Err(why) = std::fs::read_dir(&path) {
        let message = format!(
            "cannot read the contract's folder `{}`: {why}\n`{}` is relative to the folder of this crate's Cargo.toml",
            path.display(),
            folder.value()
        );
        return error(folder, &message);
    }
    match load(&path) {
        Ok(contract) => {
            let files: Vec<_> = contract.files.iter().cloned().chain(released_file(&contract)).collect();
            let tracked = track_files(folder, &path, &files);
            let code = code(&contract, runtime);
            quote!(#tracked #code)
        }
        Err(Report { problems, files, names, .. }) => {
            let tracked = track_files(folder, &path, &files);
            // The compiler adds the word "error" itself.
            let errors = problems.iter().map(|problem| error(folder, problem.rendered.trim_start_matches("error")));
            let names = names.iter().map(|name| Ident::new(name, Span::call_site()));
            // In a module that has errors, the compiler reports neither failed imports nor failed
            // imports from it by name. The re-exports keep imports by `*` from failing.
            quote!(#tracked #(#errors)* pub use self::{#(#names),*};)
        }
    }
}

fn error(folder: &LitStr, message: &str) -> TokenStream {
    quote_spanned!(folder.span()=> ::core::compile_error!(#message);)
}

/// Makes the compiler expand again when a file of the folder changes.
fn track_files(folder: &LitStr, path: &Path, files: &[PathBuf]) -> TokenStream {
    let inside = files.iter().filter_map(|file| file.strip_prefix(path).ok());
    let paths = inside.map(|inside| format!("/{}/{}", folder.value(), inside.display()));
    quote!(#(const _: &[u8] = ::core::include_bytes!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), #paths));)*)
}
