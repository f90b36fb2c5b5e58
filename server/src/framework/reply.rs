//! What a handler answers with, on its way to bytes.

use super::catalogue::{Hints, ToolDef};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

/// A result of a tool. Opaque, so that a handler can answer with a value made for the call or with one prepared before.
#[derive(Debug)]
pub struct Reply<T>(T);

impl<T> From<T> for Reply<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Serialize> Reply<T> {
    /// The result, ready for a transport.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn answer(self) -> Result<Answer, serde_json::Error> {
        Answer::of(&self.0)
    }
}

/// A result as compact JSON.
#[derive(Debug)]
pub struct Answer(String);

impl Answer {
    /// Writes `value` down.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(Self)
    }

    /// The JSON.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// The result of `tools/list` for whoever sees just `tools`.
pub(super) fn tools_list(tools: &[&ToolDef]) -> Bytes {
    json!({"tools": tools.iter().map(|tool| listed(tool)).collect::<Vec<_>>()}).to_string().into()
}

/// A tool as revision 2025-03-26 lists it.
fn listed(tool: &ToolDef) -> Value {
    let Hints { read_only, destructive, idempotent } = tool.hints;
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": (tool.input_schema)(),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": true,
        },
    })
}
