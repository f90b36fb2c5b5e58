//! What a handler answers with, on its way to bytes.

use serde::Serialize;

/// A result of a tool. Opaque, so that a handler can answer with a value made for the call or with one prepared before.
#[derive(Debug)]
pub struct Reply<T>(T);

impl<T> From<T> for Reply<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Serialize> Reply<T> {
    /// The result as compact JSON.
    pub(super) fn into_json(self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.0)
    }
}
