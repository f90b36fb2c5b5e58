//! Emits the document of the contract, with the changes since the last release.

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

pub(crate) fn released_file(contract: &Contract) -> Option<PathBuf> {
    Some(contract.files.first()?.with_file_name(RELEASED)).filter(|path| path.exists())
}

fn read(path: PathBuf) -> Result<ContractRecord, String> {
    let text = fs::read_to_string(&path).map_err(|error| error.to_string());
    text.and_then(|text| read_record(&text)).map_err(|why| format!("{}: {why}", path.display()))
}
