//! Errors of calls of the platform.

use super::codes;
use toolwarrant::text::Remark;

/// The reason that a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Provably not done: the request was not sent, the guard refused it, or the platform's refusal
    /// proves it. The code is the platform's, or 404 if it has no such call.
    #[error("not done: {}", .why.as_str())]
    NotDone {
        /// The platform's code, if it refused.
        code: Option<i64>,
        /// The reason, for the log and the operator.
        why: Remark,
    },
    /// The platform reports that it tried and failed.
    #[error("failed with code {code}: {}", .why.as_str())]
    Failed {
        /// The platform's code.
        code: i64,
        /// The platform's text.
        why: Remark,
    },
    /// The request may have been carried out, or may yet be.
    #[error("unknown: {}", .0.as_str())]
    Unknown(Remark),
}

impl ApiError {
    /// Returns true if the platform says that there is no such pad, or that it belongs to another
    /// account.
    #[must_use]
    pub fn is_missing_pad(&self) -> bool {
        matches!(self, Self::NotDone { code: Some(code), .. } if codes::is_missing_pad(*code))
    }

    /// Returns true if the platform refuses this request, and the cause is neither the account nor
    /// the number of calls.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::NotDone { code: Some(code), .. } if codes::meaning(*code) == codes::Meaning::Refused)
    }

    /// Returns true if the platform has no such call.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::NotDone { code: Some(codes::UNSUPPORTED), .. })
    }

    pub(super) fn without_support(why: &str) -> Self {
        Self::NotDone { code: Some(codes::UNSUPPORTED), why: why.into() }
    }
}
