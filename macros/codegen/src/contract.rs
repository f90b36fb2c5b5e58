//! Emits the document of the contract, with the changes since the last release, as an item of its
//! own. The released record is a file next to the contract.

use proc_macro2::TokenStream;
use quote::quote;
use std::fs;
use std::path::PathBuf;
use toolwarrant_gate::{digest, document, read_record, sha256};
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{CONTRACT_PATH, ContractRecord, RELEASED};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let (released, mistake) = match released_file(contract).map(read) {
        Some(Err(mistake)) => (None, Some(quote!(::core::compile_error!(#mistake);))),
        Some(Ok(released)) => (Some(released), None),
        None => (None, None),
    };
    let record = ContractRecord::of(contract);
    let (digest, document) = (digest(&record), document(&record, released.as_ref()).to_string());
    let etag = format!("\"{}\"", sha256(&document));
    quote! {
        #mistake
        /// The document of the contract.
        const CONTRACT: rt::catalogue::ContractDef = rt::catalogue::ContractDef {
            path: #CONTRACT_PATH,
            digest: #digest,
            etag: #etag,
            document: #document,
        };
    }
}

/// Returns the path of the released record, if there is one.
#[must_use]
pub fn released_file(contract: &Contract) -> Option<PathBuf> {
    Some(contract.files.first()?.with_file_name(RELEASED)).filter(|path| path.exists())
}

fn read(path: PathBuf) -> Result<ContractRecord, String> {
    let text = fs::read_to_string(&path).map_err(|error| error.to_string());
    text.and_then(|text| read_record(&text)).map_err(|why| format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_document_has_the_changes_since_the_release_and_a_broken_release_is_an_error_of_the_compiler() {
        let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services/print_shop/spec");
        let loaded = toolwarrant_reader::load(&spec).expect("a contract without problems");
        let folder = tempfile::tempdir().expect("a folder");
        let contract = Contract { files: vec![folder.path().join("service.toml")], ..loaded };
        let says = |words: &[&str]| {
            let code = emit(&contract).to_string();
            assert!(words.iter().all(|word| code.contains(word)), "{words:?}: {code}");
        };
        says(&[r#"\"since\":null,\"changes\":null"#]);

        let mut released = ContractRecord::of(&contract);
        released.head.insert("version".to_owned(), "0.9.0".into());
        let write = |text: &str| fs::write(folder.path().join(RELEASED), text).expect("written");
        write(&released.text());
        says(&[r#"\"since\":\"0.9.0\",\"changes\":[]"#]);

        released.facts.insert("tool.get_printer.permission".to_owned(), "print".into());
        write(&released.text());
        says(&[r#"\"fact\":\"tool.get_printer.permission\",\"old\":\"print\",\"new\":\"look\""#, r#"\"operator\":\"#]);

        write("<<<<<<< ours\n");
        says(&["compile_error", "released.toml: line 1 is a conflict mark", "const CONTRACT"]);
    }
}
