//! What a handler answers with, on its way to bytes.

use super::catalogue::{ToolDef, ToolHints};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

/// A result of a tool. Opaque, so that a handler can answer with a value made for the call or with one [`Prepared`] before.
#[derive(Debug)]
pub struct Reply<T> {
    answer: Result<Answer, serde_json::Error>,
    of: PhantomData<T>,
}

impl<T: Serialize> From<T> for Reply<T> {
    fn from(value: T) -> Self {
        Self { answer: Answer::of(&value), of: PhantomData }
    }
}

impl<T> Reply<T> {
    /// The result, ready for a transport.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn answer(self) -> Result<Answer, serde_json::Error> {
        self.answer
    }
}

/// A result that many calls share. The first call serialises it.
#[derive(Debug)]
pub struct Prepared<T> {
    answer: OnceLock<Answer>,
    of: PhantomData<fn() -> T>,
}

impl<T> Default for Prepared<T> {
    fn default() -> Self {
        Self { answer: OnceLock::new(), of: PhantomData }
    }
}

impl<T: Serialize> Prepared<T> {
    /// Returns the result. The first call makes it.
    pub fn reply(&self, make: impl FnOnce() -> T) -> Reply<T> {
        if let Some(answer) = self.answer.get() {
            return Reply { answer: Ok(answer.clone()), of: PhantomData };
        }
        let reply = Reply::from(make());
        if let Ok(answer) = &reply.answer {
            self.answer.get_or_init(|| answer.clone());
        }
        reply
    }
}

/// A result as compact JSON, and as the JSON string that holds it. Clones share both.
#[derive(Clone, Debug)]
pub struct Answer(Arc<Written>);

#[derive(Debug)]
struct Written {
    json: String,
    quoted: OnceLock<Bytes>,
}

impl Answer {
    /// Writes `value` down.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_string(value)?;
        Ok(Self(Arc::new(Written { json, quoted: OnceLock::new() })))
    }

    /// The JSON.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0.json
    }

    /// The JSON string that holds the JSON.
    #[must_use]
    pub fn quoted(&self) -> &Bytes {
        self.0.quoted.get_or_init(|| quote(&self.0.json))
    }
}

/// `text` as a JSON string. Any text can be one.
pub fn quote(text: &str) -> Bytes {
    let mut quoted = Vec::with_capacity(text.len() + text.len() / 4 + 2);
    let written = serde_json::to_writer(&mut quoted, text);
    debug_assert!(written.is_ok(), "a `Vec` takes all");
    quoted.into()
}

/// The result of `tools/list` for whoever sees just `tools`.
pub(super) fn tools_list(tools: &[&ToolDef]) -> Bytes {
    let listed: Vec<String> = tools.iter().map(|tool| listed(tool)).collect();
    format!("{{\"tools\":[{}]}}", listed.join(",")).into()
}

/// A tool as revision 2025-03-26 lists it. Its schema is JSON already.
fn listed(tool: &ToolDef) -> String {
    let ToolHints { read_only, destructive, idempotent } = tool.hints;
    let annotations = json!({
        "title": tool.title,
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": true,
    });
    let [name, description] = [tool.name, tool.description].map(Value::from);
    let schema = tool.input_schema;
    format!("{{\"name\":{name},\"description\":{description},\"inputSchema\":{schema},\"annotations\":{annotations}}}")
}
