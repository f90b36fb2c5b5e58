//! Formats an event as one line of a task's timeline, without terminal sequences.

use super::{Event, Sent};
use crate::task::Reading;
use std::fmt;
use toolwarrant_base::text::Remark;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Due => f.write_str("due"),
            Self::Found => f.write_str("found by a new process"),
            Self::Baseline(Some(reading)) => write!(f, "read before the send: {}", Remark::clean(reading).as_str()),
            Self::Baseline(None) => f.write_str("could not be read before the send"),
            Self::Sent(sent) => write!(f, "send: {sent}"),
            Self::LookedUp(Some(Some(sent))) => write!(f, "looked up: {sent}"),
            Self::LookedUp(Some(None)) => f.write_str("looked up: the upstream knows of no such request"),
            Self::LookedUp(None) => f.write_str("could not be looked up"),
            Self::Probed(Reading { verdict, expected, observed }, _) => {
                let [expected, observed] = [expected, observed].map(Remark::as_str);
                write!(f, "read: {}; expected: {expected}; observed: {observed}", verdict.as_str())
            }
        }
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => write!(f, "nothing left: {}", why.as_str()),
            Self::Ok => f.write_str("the upstream says that it is done"),
            Self::Err(how) => write!(f, "the upstream says that it failed: {}", how.as_str()),
            Self::Pending(operation) => write!(f, "the upstream works on it as {}", Remark::clean(operation).as_str()),
            Self::NoAnswer(what) => write!(f, "no answer: {}", what.as_str()),
        }
    }
}
