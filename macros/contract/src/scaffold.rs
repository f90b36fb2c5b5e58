//! Adds a tool to a service: its stanza, its result type, a handler that compiles, and a test.
//!
//! All texts are drafts in memory. Nothing is written unless the contract with them loads. Start at
//! [`new_tool`].

mod code;
mod stanza;
mod tool;

pub use tool::{NewTool, Question};

use stanza::read;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{load, replace};

/// Leaves all files unchanged on an error, unless the disk fails while files are written.
pub fn new_tool(package: &Path, spec: &Path, tool: &NewTool) -> Result<Vec<PathBuf>, String> {
    let contract = load(spec).map_err(|report| format!("correct the contract first:\n{report}"))?;
    let mut drafts = stanza::draft(&contract, spec, tool)?;
    let contract = load_draft(&contract, spec, &drafts)?;
    code::draft(&contract, package, &tool.name, &mut drafts)?;
    for (path, text) in &drafts {
        replace(path, text).map_err(|error| error.to_string())?;
    }
    Ok(drafts.into_keys().collect())
}

fn load_draft(contract: &Contract, spec: &Path, drafts: &BTreeMap<PathBuf, String>) -> Result<Contract, String> {
    let home = tempfile::TempDir::new().map_err(|error| format!("cannot make a draft: {error}"))?;
    let copy = home.path().join(spec.file_name().unwrap_or("spec".as_ref()));
    for path in contract.files.iter().chain(drafts.keys()) {
        let text = drafts.get(path).cloned().map_or_else(|| read(path), Ok)?;
        let inside = path.strip_prefix(spec).map_err(|error| error.to_string())?;
        replace(&copy.join(inside), &text).map_err(|error| error.to_string())?;
    }
    load(&copy).map_err(|report| format!("nothing is written, because the contract would not load:\n{report}"))
}
