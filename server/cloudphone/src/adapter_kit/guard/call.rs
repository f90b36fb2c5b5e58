//! Calls as the guard sees them.

use std::fmt;
use std::time::Duration;
use toolwarrant::Timestamp;

/// A zero counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardLimits {
    pub concurrent: u32,
    pub per_second: u32,
    pub per_minute: u32,
}

/// Only a read tests a platform that could not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Write,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// A refusal of this request counts, too.
    Answered,
    Failed,
    Denied,
    /// Calls come too often, with the time to wait if the answer has one.
    Limited(Option<Duration>),
}

/// Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    Unreachable(Timestamp),
    /// Repeating refused credentials can lock the account.
    Denied(Timestamp),
    Paused(Timestamp),
    /// Too many calls wait, or the turn would come too late.
    Crowded,
}

impl Withheld {
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
