//! Calls as the guard sees them: the limits of an account, the classes of calls, their ends, and
//! the reasons that withhold them.

use std::fmt;
use std::time::Duration;
use toolwarrant::Timestamp;

/// The limits of an account. A zero counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardLimits {
    /// Calls at a time.
    pub concurrent: u32,
    /// Calls that start within any second.
    pub per_second: u32,
    /// Calls that start within any minute.
    pub per_minute: u32,
}

impl GuardLimits {
    pub(super) fn at_least_one(self) -> Self {
        let Self { concurrent, per_second, per_minute } = self;
        Self { concurrent: concurrent.max(1), per_second: per_second.max(1), per_minute: per_minute.max(1) }
    }
}

/// Far below the limits that ARMCloud documents (200 a second and 5,000 a minute for a trial). VMOS
/// Cloud does not document a limit.
impl Default for GuardLimits {
    fn default() -> Self {
        Self { concurrent: 8, per_second: 10, per_minute: 300 }
    }
}

/// The purpose of a call. If calls must wait, writes and reads go before the background. One start
/// in eight goes to the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A call that changes something.
    Write,
    /// A read whose result a caller waits for.
    Read,
    /// A read that refreshes a list.
    Background,
}

/// The end of a call, as far as it tells something about the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The platform answered. A refusal of this request counts, too.
    Answered,
    /// It could not be reached, or gave no answer that can be understood.
    Failed,
    /// It refused the credentials.
    Denied,
    /// It answered that calls come too often, with the time to wait if the answer contains one.
    Limited(Option<Duration>),
}

/// The reason that a call may not start. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// The platform could not be reached several times in a row. It is tried again at this time.
    Unreachable(Timestamp),
    /// It refused the credentials. Repeating that can lock the account, so it is tried again at
    /// this time.
    Denied(Timestamp),
    /// It asked not to be called before this time.
    Paused(Timestamp),
    /// Too many calls are waiting, or the call's turn would not come before its deadline.
    Crowded,
}

impl Withheld {
    /// Returns the time from which it is worth asking again, if known.
    #[must_use]
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Unreachable(until) | Self::Denied(until) | Self::Paused(until) => Some(until),
            Self::Crowded => None,
        }
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable(_) => {
                "the platform could not be reached several times in a row, and is left alone for now"
            }
            Self::Denied(_) => "the platform refused the credentials, and is left alone for now",
            Self::Paused(_) => "the platform asked for a pause",
            Self::Crowded => "too many calls wait for the platform",
        })
    }
}
