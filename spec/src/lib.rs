//! The contract: reads the TOML files of a spec folder and turns them into a [`model::Contract`] that cannot be wrong.
//!
//! ```text
//! files --source--> text --parse--> raw (1:1 with the files) --lower, check--> Contract
//! Contract --json_schema, describe--> the schemas and texts that agents see
//! ```
//!
//! [`load`] is the only door. It answers with a contract or with a [`Report`] of every mistake in every file.
//! Nothing in this crate knows what a contract is about.

pub mod model;

mod describe;
mod fit;
mod json_schema;
mod lower;
mod names;
mod parse;
mod raw;
mod report;
mod rules;
mod source;

pub use describe::{allowed, description, instructions};
pub use json_schema::{MAX_INTEGER, UNTRUSTED_MAX_CHARS, input_schema, output_schema, type_schema};
pub use names::{pascal, snake};
pub use raw::editor_schemas;
pub use report::{Problem, Report};
pub use rules::{ROLES, Rule, STATES};

use std::path::Path;

/// Loads the contract in `dir`: `service.toml`, `errors.toml`, `types.toml`, `reserved.toml` and `tools/*.toml`.
///
/// # Errors
/// A report of all problems of all files, each with its rule, place, excerpt and help.
pub fn load(dir: &Path) -> Result<model::Contract, Report> {
    let (sources, mut report) = source::read(dir);
    let raw = parse::parse(&sources, &mut report);
    let contract = lower::lower(&raw, &sources, &mut report);
    report.finish(sources, contract)
}
