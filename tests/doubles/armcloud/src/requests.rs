//! The members of a request, read as the platform reads them: unknown members are ignored.

use serde_json::{Map, Value};

#[derive(Debug, Default)]
pub(crate) struct Members(Map<String, Value>);

impl Members {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(members)) => Ok(Self(members)),
            _ => Err(Refusal::new(100_000, "the body is no JSON object")),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_i64()
    }

    pub(crate) fn texts(&self, name: &str) -> Option<Vec<&str>> {
        Some(self.get(name)?.as_array()?.iter().filter_map(Value::as_str).collect())
    }

    pub(crate) fn numbers(&self, name: &str) -> Option<Vec<i64>> {
        Some(self.get(name)?.as_array()?.iter().filter_map(Value::as_i64).collect())
    }

    pub(crate) fn codes(&self) -> Vec<&str> {
        self.texts("padCodes").unwrap_or_else(|| self.text("padCode").into_iter().collect())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) msg: String,
}

impl Refusal {
    pub(crate) fn new(code: i64, msg: impl Into<String>) -> Self {
        Self { code, msg: msg.into() }
    }
}

pub(crate) fn missing(name: &str) -> Refusal {
    Refusal::new(100_000, format!("parameter is missing or has another type: {name}"))
}
