//! The errors of a client: a code, a message with the cause and the remedy, and a hint if a repeat
//! can help.
//!
//! They have the same format as a server's own failures, so that a client reads both in the same
//! way.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt::{self, Display};
use std::io::{self, Write};

/// The reason why a client has no key, no connection or no signature, with the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);

/// The reason why a request has no result. Its text is `code: message`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ClientError {
    /// A stable name of the failure.
    pub code: String,
    /// The cause and the remedy.
    pub message: String,
    /// True if the same request can succeed later.
    pub retryable: bool,
    /// Delay before a repeat, in seconds.
    #[serde(default)]
    pub retry_after_seconds: Option<u32>,
    /// All other fields of the server's failure.
    #[serde(flatten)]
    pub fields: Box<Map<String, Value>>,
}

impl ClientError {
    /// Makes an error that a repeat does not solve.
    pub(crate) fn final_one(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            retryable: false,
            retry_after_seconds: None,
            fields: Box::default(),
        }
    }

    /// Makes an error that may be gone after this delay.
    pub(crate) fn retryable(code: &str, message: impl Into<String>, seconds: u32) -> Self {
        Self { retryable: true, retry_after_seconds: Some(seconds), ..Self::final_one(code, message) }
    }

    /// Returns the failure with all its fields, as a server writes it.
    #[must_use]
    pub fn json(&self) -> Value {
        let Self { code, message, retryable, retry_after_seconds, fields } = self;
        let mut data = json!({"code": code, "message": message, "retryable": retryable});
        if let Some(seconds) = retry_after_seconds {
            data["retry_after_seconds"] = json!(seconds);
        }
        fields.iter().for_each(|(name, value)| data[name] = value.clone());
        data
    }

    /// Returns the `error` of a JSON-RPC response. Its number is -32000, or -32600 for a message
    /// that no server accepts.
    pub(crate) fn rpc(&self) -> Value {
        let number = if self.code == TOO_LARGE { -32600 } else { -32000 };
        json!({"code": number, "message": self.message, "data": self.json()})
    }
}

/// The code for a message that is larger than servers accept. Servers use the same code.
pub(crate) const TOO_LARGE: &str = "body_too_large";

/// Writes a line for people on standard error, which may be closed.
pub fn complain(program: &str, what: impl Display) {
    let line = format!("{program}: {}\n", Plain(&what.to_string()));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Text for a terminal: control characters are escaped.
struct Plain<'a>(&'a str);

impl Display for Plain<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() { write!(formatter, "{}", c.escape_unicode())? } else { write!(formatter, "{c}")? }
        }
        Ok(())
    }
}
