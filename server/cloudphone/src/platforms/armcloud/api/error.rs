//! Errors of calls.

use super::codes;
use toolwarrant::text::Remark;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// No byte of the request was sent.
    #[error("not sent: {}", .0.as_str())]
    NotSent(Remark),
    /// No byte was sent, because the platform does not serve this call.
    #[error("not served: {}", .0.as_str())]
    NotServed(Remark),
    /// Only the refusals of [`Self::precedes_act`] prove that the platform did not act.
    #[error("refused: {}", .why.as_str())]
    Refused {
        /// The platform's, or the HTTP status if that says more.
        code: i64,
        why: Remark,
    },
    #[error("failed with code {code}: {}", .why.as_str())]
    Failed { code: i64, why: Remark },
    /// The request may have been carried out, or may yet be.
    #[error("unknown: {}", .0.as_str())]
    Unknown(Remark),
}

impl ApiError {
    #[must_use]
    pub fn precedes_act(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if codes::precedes_act(*code))
    }

    #[must_use]
    pub fn why(self) -> Remark {
        match self {
            Self::Refused { why, .. } | Self::Failed { why, .. } => why,
            Self::NotSent(why) | Self::NotServed(why) | Self::Unknown(why) => why,
        }
    }

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

    /// Returns true if there is no such pad, or it is another account's.
    #[must_use]
    pub fn is_missing_pad(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if codes::is_missing_pad(*code))
    }

    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if codes::meaning(*code) == codes::Meaning::Refused)
            && !self.is_too_often()
    }

    #[must_use]
    pub fn is_too_often(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if codes::is_too_often(*code))
    }

    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::NotServed(_) | Self::Refused { code: codes::UNSUPPORTED, .. })
    }
}
