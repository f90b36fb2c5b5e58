//! Why a request has no result: a code, a message that says what is wrong and what to do, and whether a repeat can help.
//!
//! The shape is that of a server's own failures, so that a client reads both alike.

use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::{self, Display};
use std::io::{self, Write};

/// Why a client has no key, no connection or no signature: what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);

/// Why a request has no result. Its text is `code: message`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ClientError {
    /// A stable name of what happened.
    pub code: String,
    /// What is wrong, and what to do.
    pub message: String,
    /// Whether the same request can succeed later.
    pub retryable: bool,
    /// Seconds to wait before a repeat.
    #[serde(default)]
    pub retry_after_seconds: Option<u32>,
}

impl ClientError {
    /// An error that no repeat mends.
    pub(crate) fn final_one(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), retryable: false, retry_after_seconds: None }
    }

    /// An error that can be gone after so many seconds.
    pub(crate) fn retryable(code: &str, message: impl Into<String>, seconds: u32) -> Self {
        Self { retryable: true, retry_after_seconds: Some(seconds), ..Self::final_one(code, message) }
    }

    /// The `error` of a JSON-RPC response: the number -32000, or -32600 for a message that no server would take.
    pub(crate) fn rpc(&self) -> Value {
        let Self { code, message, retryable, retry_after_seconds } = self;
        let number = if code == TOO_LARGE { -32600 } else { -32000 };
        let mut data = json!({"code": code, "message": message, "retryable": retryable});
        if let Some(seconds) = retry_after_seconds {
            data["retry_after_seconds"] = json!(seconds);
        }
        json!({"code": number, "message": message, "data": data})
    }
}

/// The code for a message that is larger than servers take; theirs is the same.
pub(crate) const TOO_LARGE: &str = "body_too_large";

/// Tells people a line on standard error, which may be closed.
pub fn complain(program: &str, what: impl Display) {
    let line = format!("{program}: {}\n", Plain(&what.to_string()));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Text for a terminal: characters that it would obey are written out.
struct Plain<'a>(&'a str);

impl Display for Plain<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() { write!(formatter, "{}", c.escape_unicode())? } else { write!(formatter, "{c}")? }
        }
        Ok(())
    }
}
