//! The failure of a call: an error code of the contract, a message, and the fields of the code.
//!
//! The message goes to the client: it says what was wrong and what to do. It is [`Words`], so it cannot repeat what an upstream said.

use super::catalogue::ErrorDef;
use super::wording::Words;
use crate::words;
use serde::{Serialize, Serializer, ser::SerializeMap};

/// Why a call was refused or failed. One pointer wide, so that results stay small.
#[derive(Debug, Clone)]
pub struct Failure(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    def: &'static ErrorDef,
    message: Words,
    fields: Vec<(&'static str, serde_json::Value)>,
}

impl Failure {
    /// Creates a failure. Its message is `what`, a fragment that says what was wrong, followed by the remedy of the code.
    #[must_use]
    pub fn new(def: &'static ErrorDef, what: impl Into<Words>) -> Self {
        Self::exactly(def, words![what.into(), ". ", def.remedy, "."])
    }

    /// Creates a failure whose message is the meaning and the remedy of its code.
    #[must_use]
    pub fn plain(def: &'static ErrorDef) -> Self {
        Self::exactly(def, words![def.meaning, " ", def.remedy, "."])
    }

    /// Creates a failure with exactly this message.
    #[must_use]
    pub fn exactly(def: &'static ErrorDef, message: impl Into<Words>) -> Self {
        Self(Box::new(Inner { def, message: message.into(), fields: Vec::new() }))
    }

    /// Adds a field that the contract declares for this code. What cannot be written as JSON is null.
    #[must_use]
    pub fn with(mut self, field: &'static str, value: impl Serialize) -> Self {
        self.0.fields.push((field, serde_json::to_value(value).unwrap_or_default()));
        self
    }

    /// Returns the error code with all that the contract says of it.
    #[must_use]
    pub fn def(&self) -> &'static ErrorDef {
        self.0.def
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Inner { def, message, fields } = &*self.0;
        let mut map = serializer.serialize_map(Some(3 + fields.len()))?;
        map.serialize_entry("code", def.code)?;
        map.serialize_entry("message", message)?;
        map.serialize_entry("retryable", &def.retryable)?;
        for (field, value) in fields {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}
