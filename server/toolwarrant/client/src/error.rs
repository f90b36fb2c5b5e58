//! The errors of a client, in the same format as a server's own failures. Start at [`ClientError`].

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt::{self, Display};
use std::io::{self, Write};

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ClientError {
    pub code: String,
    pub message: String,
    pub retryable: bool,
    #[serde(default)]
    pub retry_after_seconds: Option<u32>,
    #[serde(flatten)]
    pub fields: Box<Map<String, Value>>,
}

impl ClientError {
    pub(crate) fn final_one(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            retryable: false,
            retry_after_seconds: None,
            fields: Box::default(),
        }
    }

    pub(crate) fn retryable(code: &str, message: impl Into<String>, seconds: u32) -> Self {
        Self { retryable: true, retry_after_seconds: Some(seconds), ..Self::final_one(code, message) }
    }

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

    /// Uses the number -32000, or -32600 for a message that no server accepts.
    pub(crate) fn rpc(&self) -> Value {
        let number = if self.code == TOO_LARGE { -32600 } else { -32000 };
        json!({"code": number, "message": self.message, "data": self.json()})
    }
}

pub(crate) const TOO_LARGE: &str = "body_too_large";

/// Writes to standard error, which may be closed.
pub fn complain(program: &str, what: impl Display) {
    let line = format!("{program}: {}\n", Plain(&what.to_string()));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// A text whose control characters are escaped, for a terminal.
struct Plain<'a>(&'a str);

impl Display for Plain<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() { write!(formatter, "{}", c.escape_unicode())? } else { write!(formatter, "{c}")? }
        }
        Ok(())
    }
}
