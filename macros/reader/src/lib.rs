//! Reads the TOML files of a contract and turns them into a checked [`model::Contract`].
//!
//! ```text
//! files --source--> text --parse--> raw (1:1 with the files) --lower, check--> Contract
//! Contract --json_schema, describe, sentences--> what agents read --documents, reference, openapi--> what people review
//! ```
//!
//! Start at [`load`]: it returns a contract, or a [`Report`] of every mistake in every file.

pub mod model;

mod describe;
mod documents;
mod editor;
mod fit;
mod generate;
mod json_schema;
mod lower;
mod names;
mod openapi;
mod parse;
mod raw;
mod record;
mod reference;
mod report;
mod rules;
mod sentences;
mod source;

pub use describe::{describe_values, description};
pub use documents::{documents, list_item};
pub use generate::{GenerateError, Generated, Mode, generate, replace};
pub use json_schema::{argument_schema, input_schema, output_schema, schema_text, type_schema};
pub use names::{is_keyword, pascal, snake};
pub use openapi::{CONTRACT_PATH, OPENAPI_PATH, openapi};
pub use record::ContractRecord;
pub use reference::reference;
pub use report::{Problem, Report};
pub use rules::{FALLBACK, OUTCOME_UNKNOWN, REVISIONS, ROLES, RUNTIME_TYPES, Rule, STATES};
pub use sentences::{SentenceSpec, instructions, instructions_text, sentences};
pub use source::{ACCEPTED, RELEASED};
pub use toolwarrant_common::ListForm;

use std::path::Path;

/// Treats `errors.toml` and `reserved.toml` as optional.
pub fn load(dir: &Path) -> Result<model::Contract, Report> {
    let mut report = Report::default();
    if let Err(error) = std::fs::read_dir(dir) {
        return report.no_folder(dir, &error);
    }
    let mut sources = source::read(dir, &mut report);
    let mut raw = parse::common(&sources, &mut report);
    source::tools(dir, raw.service.service.as_ref().map(|service| &service.tools), &mut sources, &mut report);
    (raw.tools, raw.is_whole) = parse::tools(&sources, &mut report);
    let contract = lower::lower(&raw, &sources, &mut report);
    let contract = contract.map(|contract| model::Contract { released: last_release(dir), ..contract });
    report.names = lower::rust_names(&raw, &sources);
    report.finish(sources, contract)
}

fn last_release(dir: &Path) -> Option<[String; 2]> {
    let record = ContractRecord::parse(&std::fs::read_to_string(dir.join(RELEASED)).ok()?).ok()?;
    Some(["version", "digest"].map(|key| record.head_text(key).to_owned()))
}
