//! The result of a tool, from the handler's value to the bytes that a transport sends.

use super::catalogue::{ToolDef, ToolHints};
use super::revision::Revision;
use super::text;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use zeroize::{Zeroize, Zeroizing};

/// The result of a tool, serialised. Made from a value, or taken from a [`Prepared`] result.
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
    /// Returns the result, ready for a transport.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn answer(self) -> Result<Answer, serde_json::Error> {
        self.answer
    }
}

/// A result that many calls share. It is serialised once.
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
    /// Returns the result; the first call makes it with `make`.
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

/// A result as compact JSON, and the same text quoted as a JSON string. Clones share both.
#[derive(Clone, Debug)]
pub struct Answer(Arc<Written>);

#[derive(Debug)]
struct Written {
    json: String,
    quoted: OnceLock<Bytes>,
    /// The id of the task that the call has made, if it has.
    new_task: Option<Box<str>>,
    /// Whether a secret is in it, so that it is wiped in the end.
    has_secret: bool,
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.has_secret {
            self.json.zeroize();
        }
    }
}

impl Answer {
    /// Serialises a value.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let (json, has_secret) = text::written(value)?;
        Ok(Self(Arc::new(Written { json, quoted: OnceLock::new(), new_task: None, has_secret })))
    }

    /// Says that the call has made this task.
    pub(super) fn of_new_task(mut self, id: &str) -> Self {
        if let Some(written) = Arc::get_mut(&mut self.0) {
            written.new_task = Some(id.into());
        }
        self
    }

    /// Returns the id of the task that the call has made; `None` if it made none, or repeats one in flight.
    #[must_use]
    pub fn new_task(&self) -> Option<&str> {
        self.0.new_task.as_deref()
    }

    /// Returns the JSON.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0.json
    }

    /// Returns the JSON text, quoted as a JSON string.
    #[must_use]
    pub fn quoted(&self) -> &Bytes {
        let Written { json, quoted, new_task: _, has_secret } = &*self.0;
        quoted.get_or_init(|| match has_secret {
            // A copy by a transport is a reference to the same bytes, and the last one wipes them.
            true => Bytes::from_owner(Zeroizing::new(quoted_in(2 * json.len() + 2, json))),
            false => quote(json),
        })
    }

    /// Whether a secret is in it, so that no copy of it should stay in memory.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.0.has_secret
    }
}

/// Quotes a text as a JSON string. This works for any text.
pub fn quote(text: &str) -> Bytes {
    quoted_in(text.len() + text.len() / 4 + 2, text).into()
}

/// Quotes a text in a buffer that begins with that capacity.
fn quoted_in(capacity: usize, text: &str) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(capacity);
    let written = serde_json::to_writer(&mut quoted, text);
    debug_assert!(written.is_ok(), "a `Vec` takes all");
    quoted
}

/// Some tools as `tools/list` shows them: JSON lists, one for revisions without titles and output schemas and one for those with.
#[derive(Clone, Debug)]
pub(super) struct ToolLists {
    plain: Bytes,
    with_outputs: Bytes,
}

impl ToolLists {
    pub(super) fn of(tools: &[&ToolDef]) -> Self {
        let (plain, with_outputs): (Vec<_>, Vec<_>) = tools.iter().map(|tool| listed(tool)).unzip();
        let [plain, with_outputs] = [plain, with_outputs].map(|items| format!("[{}]", items.join(",")).into());
        Self { plain, with_outputs }
    }

    pub(super) fn of_revision(&self, revision: Revision) -> &Bytes {
        if revision.features().structured { &self.with_outputs } else { &self.plain }
    }
}

/// Describes a tool without and with its output schema. Schemas are JSON already.
fn listed(tool: &ToolDef) -> (String, String) {
    let ToolHints { read_only, destructive, idempotent } = tool.hints;
    let annotations = json!({
        "title": tool.title,
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": true,
    });
    let [name, title, description] = [tool.name, tool.title, tool.description].map(Value::from);
    let ToolDef { input_schema: input, output_schema: output, .. } = tool;
    let item = |title: &str, output: &str| {
        format!(
            "{{\"name\":{name}{title},\"description\":{description},\"inputSchema\":{input}{output},\"annotations\":{annotations}}}"
        )
    };
    (item("", ""), item(&format!(",\"title\":{title}"), &format!(",\"outputSchema\":{output}")))
}
