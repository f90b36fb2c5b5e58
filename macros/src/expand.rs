//! A folder to tokens: the contract, or the compile errors and nothing else.

use crate::emit;
use cloudphone_spec::load;
use cloudphone_spec::model::Contract;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use std::path::{Path, PathBuf};
use syn::LitStr;

/// What `contract!(folder, runtime = runtime)` stands for; `path` is where the folder lies.
pub(crate) fn expand(folder: &LitStr, path: &Path, runtime: &syn::Path) -> TokenStream {
    match load(path) {
        Ok(contract) => {
            let tracked = tracked(folder, path, &contract.files);
            let code = code(&contract, runtime);
            quote!(#tracked #code)
        }
        Err(report) => {
            let tracked = tracked(folder, path, &report.files);
            let errors = report.problems.iter().map(|problem| {
                // The compiler says "error" itself.
                let message = problem.rendered.trim_start_matches("error");
                quote_spanned!(folder.span()=> ::core::compile_error!(#message);)
            });
            quote!(#tracked #(#errors)*)
        }
    }
}

/// Every part of the generated code, in reading order.
pub(crate) fn code(contract: &Contract, runtime: &syn::Path) -> TokenStream {
    let parts = [
        emit::types::emit(contract, runtime),
        emit::permissions::emit(contract, runtime),
        emit::errors::emit(contract, runtime),
        emit::args::emit(contract, runtime),
        emit::handlers::emit(contract, runtime),
        emit::catalogue::emit(contract, runtime),
        emit::dispatch::emit(contract, runtime),
    ];
    quote!(#(#parts)*)
}

/// Makes the compiler expand again when a file of the folder changes.
fn tracked(folder: &LitStr, path: &Path, files: &[PathBuf]) -> TokenStream {
    let inside = files.iter().filter(|file| file.exists()).filter_map(|file| file.strip_prefix(path).ok());
    let paths = inside.map(|inside| format!("{}/{}", folder.value(), inside.display()));
    quote!(#(const _: &[u8] = ::core::include_bytes!(#paths);)*)
}
