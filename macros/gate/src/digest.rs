//! The digest of a record, which names the facts of a contract in 64 characters.

use sha2::{Digest as _, Sha256};
use std::fmt::Write;
use toolwarrant_reader::ContractRecord;

/// Leaves out the head.
#[must_use]
pub fn digest(record: &ContractRecord) -> String {
    sha256(&record.facts_text())
}

#[must_use]
pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
