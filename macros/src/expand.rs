//! Turns the folder of a contract into tokens: the generated code, or compile errors and stubs that
//! prevent further errors.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use std::path::{Path, PathBuf};
use syn::LitStr;
use toolwarrant_codegen::{code, released_file};
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{Report, load};

/// Expands `contract!(folder, runtime = runtime)`.
pub(crate) fn expand(folder: &LitStr, runtime: &syn::Path) -> TokenStream {
    let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else {
        return error(
            folder,
            "`contract!` finds its folder from `CARGO_MANIFEST_DIR`, which is not set: build with cargo",
        );
    };
    let path = manifest.join(folder.value());
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
            let code = code(&Contract { source: folder.value(), ..contract }, runtime);
            quote!(#tracked #code)
        }
        Err(Report { problems, files, names, .. }) => {
            let tracked = track_files(folder, &path, &files);
            // The compiler adds the word "error" itself.
            let errors = problems.iter().map(|problem| error(folder, problem.rendered.trim_start_matches("error")));
            let names = names.iter().map(|name| Ident::new(name, Span::call_site()));
            // In a module that has errors, the compiler does not report failed imports, nor failed
            // imports from it by name. The names are re-exported here, so imports by `*` do not
            // fail either.
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

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn expand_folder(folder: &str) -> String {
        let folder = LitStr::new(folder, Span::call_site());
        expand(&folder, &parse_quote!(::toolwarrant::runtime)).to_string()
    }

    #[test]
    fn a_missing_folder_is_reported_with_its_whole_path_and_as_relative() {
        let code = expand_folder("nowhere/spec");
        let whole = concat!("cannot read the contract's folder `", env!("CARGO_MANIFEST_DIR"), "/nowhere/spec`");
        assert!(code.contains(whole), "{code}");
        assert!(code.contains("`nowhere/spec` is relative to the folder of this crate's Cargo.toml"), "{code}");
    }

    #[test]
    fn every_file_that_was_read_is_tracked_with_and_without_mistakes() {
        for spec in ["../tests/services/print_shop/spec", "../tests/contract/ui/specs/three_mistakes"] {
            let code = expand_folder(spec);
            for file in ["service.toml", "types.toml", "errors.toml", "reserved.toml", "tools/jobs.toml"] {
                assert!(code.contains(&format!("\"/{spec}/{file}\"")), "{spec}/{file} is not tracked");
            }
        }
    }

    #[test]
    fn the_released_record_is_tracked_because_the_document_of_the_contract_depends_on_it() {
        let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/services/print_shop/spec");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("tools")).expect("a folder");
        for file in &load(&contract).expect("a contract without problems").files {
            let inside = file.strip_prefix(&contract).expect("a file of the contract");
            std::fs::copy(file, folder.path().join(inside)).expect("copied");
        }
        let is_tracked = || expand_folder(folder.path().to_str().expect("text")).contains("/released.toml\"");
        assert!(!is_tracked());
        std::fs::write(folder.path().join("released.toml"), "record.format = 1\n").expect("written");
        assert!(is_tracked());
    }

    #[test]
    fn a_contract_with_mistakes_leaves_its_names_to_be_imported() {
        let code = expand_folder("../tests/contract/ui/specs/three_mistakes");
        assert_eq!(code.matches("compile_error").count(), 3, "{code}");
        let names = code.split("pub use self :: {").nth(1).expect("the names stand there");
        for name in ["CATALOGUE", "Command", "GetPrinterArgs", "PrinterCapability", "PrinterId", "PrintersTools"] {
            assert!(names.contains(name), "{name} is not in {names}");
        }
    }
}
