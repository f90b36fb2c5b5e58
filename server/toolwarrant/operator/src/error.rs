//! The failure of a command: for people a message, for programs a code and an exit code.

use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use toolwarrant_core::registry::RegistryError;
use toolwarrant_core::store::StoreError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    Refused,
    Usage,
    NotFound,
    Unavailable,
    NotAllowed,
}

impl FailureCode {
    #[must_use]
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Refused => 1,
            Self::Usage => 2,
            Self::NotFound => 4,
            Self::Unavailable => 5,
            Self::NotAllowed => 6,
        })
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Unavailable => "unavailable",
            Self::NotAllowed => "not_allowed",
        }
    }
}

/// The message is for the operator; it names a way that works.
#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct OperatorError {
    pub code: FailureCode,
    pub message: String,
    pub retryable: bool,
    /// The input of a form that it is about.
    #[serde(skip)]
    pub field: Option<String>,
}

impl OperatorError {
    #[must_use]
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: code == FailureCode::Unavailable, field: None }
    }

    #[must_use]
    pub fn refusal(message: impl Into<String>) -> Self {
        Self::new(FailureCode::Refused, message)
    }

    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(FailureCode::NotFound, message)
    }

    /// Says which input of a form it is about.
    #[must_use]
    pub(crate) fn at(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }

    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(FailureCode::Unavailable, message)
    }
}

impl From<RegistryError> for OperatorError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Unknown(why) => Self::not_found(why),
            RegistryError::Refused(why) => Self::refusal(why),
            RegistryError::Unavailable(why) => Self::unavailable(why),
        }
    }
}

impl From<StoreError> for OperatorError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(why) => Self::unavailable(why),
            error @ StoreError::Unanswered(_) => Self::unavailable(error.to_string()),
            StoreError::Conflict(why) | StoreError::Corrupt(why) => Self::refusal(why),
        }
    }
}

pub(crate) fn describe_mismatch(error: &serde_json::Error) -> String {
    format!(
        "the server does not know this command, so it and this program are of different versions; run the program that the server \
         was started with, or restart the server ({error})"
    )
}
