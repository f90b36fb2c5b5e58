//! The failure of a call: an error code of the contract, a message, and the fields of the code.
//!
//! The message goes to the client: it says what was wrong and what to do. It never repeats what an upstream or a library said.

use super::catalogue::ErrorDef;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::borrow::Cow;

/// Why a call was refused or failed. One pointer wide, so that results stay small.
#[derive(Debug, Clone)]
pub struct Failure(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    def: &'static ErrorDef,
    message: Cow<'static, str>,
    fields: Vec<(&'static str, serde_json::Value)>,
}

impl Failure {
    /// Creates a failure. Its message is `what`, a fragment that says what was wrong, followed by the remedy of the code.
    #[must_use]
    pub fn new(def: &'static ErrorDef, what: impl std::fmt::Display) -> Self {
        Self::exactly(def, format!("{what}. {}.", def.remedy))
    }

    /// Creates a failure whose message is the meaning and the remedy of its code.
    #[must_use]
    pub fn plain(def: &'static ErrorDef) -> Self {
        Self::exactly(def, format!("{} {}.", def.meaning, def.remedy))
    }

    /// Creates a failure with exactly this message.
    #[must_use]
    pub fn exactly(def: &'static ErrorDef, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner { def, message: message.into(), fields: Vec::new() }))
    }

    /// Adds a field that the contract declares for this code.
    #[must_use]
    pub fn with(mut self, field: &'static str, value: impl Into<serde_json::Value>) -> Self {
        self.0.fields.push((field, value.into()));
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
