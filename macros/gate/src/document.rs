//! The document of a contract, which each server serves: the record in force, its digest, and the
//! changes since the last release.

use crate::change::change_json;
use crate::compare::compare;
use crate::digest::digest;
use serde_json::{Map, Value};
use toolwarrant_common::json;
use toolwarrant_reader::ContractRecord;

const SINCE: &str = "since";
const CHANGES: &str = "changes";
const FACTS: &str = "facts";
const DIGEST: &str = "digest";

/// A comparison takes the square of the changed types.
const MOST_FACTS: usize = 20_000;

#[must_use]
pub fn document(record: &ContractRecord, released: Option<&ContractRecord>) -> Value {
    let changes = |released| compare(released, record).iter().map(change_json).collect::<Vec<_>>();
    let changes = released.map(changes);
    let head = record.head.iter().filter(|(key, _)| !key.contains('.'));
    let mut document: Map<String, Value> = head.map(|(key, value)| (key.clone(), value.clone())).collect();
    document.insert(DIGEST.to_owned(), digest(record).into());
    document.insert(SINCE.to_owned(), released.map(|released| released.head_text("version")).into());
    document.insert(CHANGES.to_owned(), changes.into());
    document.insert(FACTS.to_owned(), record.facts.clone().into_iter().collect::<Map<_, _>>().into());
    document.into()
}

/// Fails also if the facts do not fit their digest.
pub fn read_record(text: &str) -> Result<ContractRecord, String> {
    let record = if text.trim_start().starts_with('{') { read_document(text)? } else { ContractRecord::parse(text)? };
    match record.head.get(DIGEST) {
        _ if record.facts.is_empty() => Err("this record has no facts".to_owned()),
        _ if record.facts.len() > MOST_FACTS => Err(format!("this record has more than {MOST_FACTS} facts")),
        Some(said) if *said != digest(&record) => {
            Err("the facts do not fit their digest: somebody changed them, or a part is missing".to_owned())
        }
        _ => Ok(record),
    }
}

fn read_document(text: &str) -> Result<ContractRecord, String> {
    let mut document: Map<String, Value> =
        json::read(text).map_err(|error| format!("this is no document of a contract: {error}"))?;
    let (Some(Value::Object(facts)), true) = (document.shift_remove(FACTS), document.contains_key(DIGEST)) else {
        return Err(format!("this is no document of a contract: it lacks `{FACTS}` or `{DIGEST}`"));
    };
    document.retain(|name, _| name != SINCE && name != CHANGES);
    let read = ContractRecord { head: document.into_iter().collect(), facts: facts.into_iter().collect() };
    // The text of a record allows certain keys and values alone.
    match ContractRecord::parse(&read.text())? {
        record if record == read => Ok(record),
        _ => Err("this is no document of a contract: a key or a value cannot stand in a record".to_owned()),
    }
}
