//! The record of a contract: every fact that a client, an application or an operator can rely on,
//! one per line, as a dotted key and a TOML value.
//!
//! A record describes a contract completely, so two contracts are compared by their records alone.
//! The keys below `record` are its head: they identify the contract and are no facts.

mod facts;
mod framework;

use crate::model::Contract;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use toml::Table;
use toolwarrant_common::line_column;

const RECORD_FORMAT: i64 = 1;

const HEAD: &str = "record";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractRecord {
    /// By the key without `record.`. A released record also has `date`, `digest` and `cost`; the
    /// record in force has `released`: version and digest of the last release.
    pub head: BTreeMap<String, Value>,
    pub facts: BTreeMap<String, Value>,
}

impl ContractRecord {
    #[must_use]
    pub fn of(contract: &Contract) -> Self {
        let head = [
            ("format", RECORD_FORMAT.into()),
            ("framework", env!("CARGO_PKG_VERSION").into()),
            ("service", contract.service.name.as_str().into()),
            ("version", contract.service.version.as_str().into()),
        ];
        let released = contract.released.iter().flat_map(|[version, digest]| {
            [("released.version", version.as_str().into()), ("released.digest", digest.as_str().into())]
        });
        let head = head.into_iter().chain(released).map(|(key, value)| (key.to_owned(), value));
        Self { head: head.collect(), facts: facts::facts(contract) }
    }

    /// Allows unknown keys.
    pub fn parse(text: &str) -> Result<Self, String> {
        const LONGEST_LINE: usize = 64 << 10;
        for (number, line) in (1..).zip(text.lines()) {
            if ["<<<<<<<", "=======", ">>>>>>>"].iter().any(|mark| line.starts_with(mark)) {
                return Err(format!(
                    "line {number} is a conflict mark of a merge: resolve it, or write the file again"
                ));
            }
            if line.len() > LONGEST_LINE {
                return Err(format!(
                    "line {number} has {} bytes; the longest that is read has {LONGEST_LINE}",
                    line.len()
                ));
            }
        }
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let (line, column) = line_column(text, error.span().unwrap_or_default().start);
            format!("line {line}, column {column}: {}", error.message())
        })?;
        let mut all = BTreeMap::new();
        flatten("", table, &mut all)?;
        let mut record = Self::default();
        for (key, value) in all {
            match key.strip_prefix(HEAD).and_then(|key| key.strip_prefix('.')) {
                Some(key) => record.head.insert(key.to_owned(), value),
                None => record.facts.insert(key, value),
            };
        }
        match record.head.get("format").and_then(Value::as_i64) {
            Some(RECORD_FORMAT) => Ok(record),
            Some(newer @ RECORD_FORMAT..) => Err(format!(
                "the record has format {newer}, and this program reads {RECORD_FORMAT}: build with a newer framework"
            )),
            _ => Err(format!("this is no record: it has no line `{HEAD}.format = {RECORD_FORMAT}`")),
        }
    }

    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (key, value) in &self.head {
            let _ = writeln!(out, "{HEAD}.{key} = {value}");
        }
        out.push('\n');
        out + &self.facts_text()
    }

    /// Returns the text that the digest is made from.
    #[must_use]
    pub fn facts_text(&self) -> String {
        let mut out = String::new();
        // JSON writes strings, numbers, booleans and lists of them as TOML reads them.
        for (key, value) in &self.facts {
            let _ = writeln!(out, "{key} = {value}");
        }
        out
    }

    #[must_use]
    pub fn head_text(&self, key: &str) -> &str {
        self.head.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

fn flatten(above: &str, table: Table, out: &mut BTreeMap<String, Value>) -> Result<(), String> {
    for (name, value) in table {
        let is_bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        let key = if above.is_empty() { name } else { format!("{above}.{name}") };
        if !is_bare {
            return Err(format!("`{key}` is no key of a record: each part is made of letters, digits, `_` and `-`"));
        }
        match value {
            toml::Value::Table(table) => flatten(&key, table, out)?,
            toml::Value::Datetime(_) => {
                return Err(format!("`{key}` is neither text, a number, true, false, nor a list of them"));
            }
            value => {
                let value = serde_json::to_value(value).map_err(|error| format!("`{key}`: {error}"))?;
                out.insert(key, value);
            }
        }
    }
    Ok(())
}
