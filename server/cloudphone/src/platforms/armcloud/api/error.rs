//! Why a call of the platform has no result.

use super::codes;
use toolwarrant::Remark;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Provably not done: nothing left, the guard refused it, or the platform's refusal says so. The code is the platform's, or 404 where
    /// it has no such call.
    #[error("not done: {}", .why.as_str())]
    NotDone {
        /// The platform's code, if it refused.
        code: Option<i64>,
        /// Why, for the log and the operator.
        why: Remark,
    },
    /// The platform says that it tried and failed.
    #[error("failed with code {code}: {}", .why.as_str())]
    Failed {
        /// The platform's code.
        code: i64,
        /// What it says.
        why: Remark,
    },
    /// It may have been done, and it may yet be.
    #[error("unknown: {}", .0.as_str())]
    Unknown(Remark),
}

impl ApiError {
    /// Whether the platform says that there is no such pad, or none of this account.
    #[must_use]
    pub fn is_missing_pad(&self) -> bool {
        matches!(self, Self::NotDone { code: Some(code), .. } if codes::is_missing_pad(*code))
    }

    /// Whether the platform does not take this request: neither the account nor the number of calls is why.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::NotDone { code: Some(code), .. } if codes::meaning(*code) == codes::Meaning::Refused)
    }

    /// Whether the platform has no such call.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::NotDone { code: Some(codes::UNSUPPORTED), .. })
    }

    pub(super) fn unsupported(why: &str) -> Self {
        Self::NotDone { code: Some(codes::UNSUPPORTED), why: why.into() }
    }
}
