//! The failure of a command: for people a message, for programs a code and an exit code.

use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use toolwarrant_core::registry::RegistryError;
use toolwarrant_core::store::StoreError;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The command cannot be carried out as it was asked for.
    Refused,
    /// The command line is wrong.
    Usage,
    /// There is no such application, key, task or target.
    NotFound,
    /// The command cannot be carried out now.
    Unavailable,
    /// The role of the operator does not allow the command.
    NotAllowed,
}

impl FailureCode {
    /// Returns the exit code of the program.
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

    /// Returns the name of the code, as an audit line has it.
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

/// The reason why a command was not carried out. The message is for the operator; it names a way
/// that works.
#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct OperatorError {
    /// The kind of the failure.
    pub code: FailureCode,
    /// The reason, for people.
    pub message: String,
    /// True if the same command can succeed later.
    pub retryable: bool,
}

impl OperatorError {
    /// Makes an error of this kind.
    #[must_use]
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: code == FailureCode::Unavailable }
    }

    /// Makes the error of a command that cannot be carried out.
    #[must_use]
    pub fn refusal(message: impl Into<String>) -> Self {
        Self::new(FailureCode::Refused, message)
    }

    /// Makes the error about something that does not exist.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(FailureCode::NotFound, message)
    }

    /// Makes the error of a command that cannot be carried out now.
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

/// Describes a command that the server cannot read.
pub(crate) fn describe_mismatch(error: &serde_json::Error) -> String {
    format!(
        "the server does not know this command, so it and this program are of different versions; run the program that the server \
         was started with, or restart the server ({error})"
    )
}
