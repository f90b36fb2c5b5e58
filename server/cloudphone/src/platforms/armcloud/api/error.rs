//! Errors of calls of the platform.

use super::codes;
use toolwarrant::text::Remark;

/// The reason that a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// No byte of the request was sent.
    #[error("not sent: {}", .0.as_str())]
    NotSent(Remark),
    /// No byte was sent, because the platform does not serve this call.
    #[error("not served: {}", .0.as_str())]
    NotServed(Remark),
    /// The platform refused the request. Only the refusals of [`Self::precedes_act`] prove that it
    /// did not act.
    #[error("refused: {}", .why.as_str())]
    Refused {
        /// The platform's code, or the HTTP status if that says more.
        code: i64,
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
    /// Returns true if the platform refused the request before it acted.
    #[must_use]
    pub fn precedes_act(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if codes::precedes_act(*code))
    }

    /// Returns the reason, for the log and the operator.
    #[must_use]
    pub fn why(self) -> Remark {
        match self {
            Self::Refused { why, .. } | Self::Failed { why, .. } => why,
            Self::NotSent(why) | Self::NotServed(why) | Self::Unknown(why) => why,
        }
    }

    /// Returns the remedy of an operator whose account gets this error.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Refused { code, .. } => codes::find_remedy(*code),
            Self::NotServed(_) => codes::find_remedy(codes::UNSUPPORTED),
            Self::NotSent(_) | Self::Failed { .. } | Self::Unknown(_) => {
                "see that this machine reaches base-url (name, network, firewalls), and that the platform itself answers there"
            }
        }
    }

    /// Returns true if the platform says that there is no such pad, or that it belongs to another
    /// account.
    #[must_use]
    pub fn is_missing_pad(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if codes::is_missing_pad(*code))
    }

    /// Returns true if the platform refuses this request, and the cause is neither the account nor
    /// the number of calls.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if codes::meaning(*code) == codes::Meaning::Refused)
            && !self.is_too_often()
    }

    /// Returns true if the platform refuses this request because calls come too often.
    #[must_use]
    pub fn is_too_often(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if codes::is_too_often(*code))
    }

    /// Returns true if the platform has no such call.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::NotServed(_) | Self::Refused { code: codes::UNSUPPORTED, .. })
    }
}
