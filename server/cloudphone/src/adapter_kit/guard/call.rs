//! A call as the guard sees it: how many an account takes, what each is for, how it ended, and why it may not start.

use std::fmt;
use std::time::Duration;
use toolwarrant::Timestamp;

/// What an account may take. Zeros are taken for ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardLimits {
    /// Calls at a time.
    pub concurrent: u32,
    /// Calls that start within any second.
    pub per_second: u32,
    /// Calls that start within any minute.
    pub per_minute: u32,
}

/// Far less than ARMCloud documents (200 a second and 5,000 a minute for a trial). VMOS Cloud documents no limit.
impl Default for GuardLimits {
    fn default() -> Self {
        Self { concurrent: 8, per_second: 10, per_minute: 300 }
    }
}

/// What a call is for. Where calls must wait, writes and reads come before the background, but for one in eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It changes something.
    Write,
    /// Somebody waits for what it reads.
    Read,
    /// It keeps a list fresh.
    Background,
}

/// How a call ended, as far as it says something of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The platform answered, be it with a refusal of this request.
    Answered,
    /// It could not be reached, or gave no answer that can be understood.
    Failed,
    /// It refused the credentials.
    Denied,
    /// It answered that calls come too often, and for how long to wait if it said so.
    Limited(Option<Duration>),
}

/// Why a call may not start. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// The platform could not be reached several times in a row. It is tried again at this time.
    Unreachable(Timestamp),
    /// It refused the credentials. Repeating that can lock the account, so it is tried again at this time.
    Denied(Timestamp),
    /// It asked not to be called before this time.
    Paused(Timestamp),
    /// Too many calls wait, or its turn would not come before its deadline.
    Crowded,
}

impl Withheld {
    /// When it is worth asking again, if that is known.
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
