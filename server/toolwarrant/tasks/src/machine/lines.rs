//! Formats an event as one line of a task's timeline, without terminal sequences.

use super::{Effect, Event, Refusal, Sent};
use crate::task::{Phase, Reading, Task};
use std::fmt;
use toolwarrant_base::text::Remark;

/// Returns the reason that an effect sends a task again, for the timeline. The reason for the first
/// send is the request of the client.
pub(crate) fn reason(task: &Task, effect: Option<Effect>) -> &'static str {
    match (effect, task.phase) {
        (Some(Effect::Send(_)), _) if task.attempts == 0 => "",
        (Some(Effect::Send(_)), Phase::Sending) => "; sent again, because the upstream recognises a repeated request",
        (Some(Effect::Send(_)), _) if task.left => "; sent again, because no answer came and no effect was read",
        (Some(Effect::Send(_)), _) => "; sent again, because nothing was done before",
        _ => "",
    }
}

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
            Self::Refused(Refusal { code, why, precedes_act }) => {
                let when = if *precedes_act { ", before it acted" } else { "" };
                write!(f, "the upstream refused it with {code}{when}: {}", why.as_str())
            }
            Self::Ok => f.write_str("the upstream says that it is done"),
            Self::Err(how) => write!(f, "the upstream says that it failed: {}", how.as_str()),
            Self::Pending(operation) => write!(f, "the upstream works on it as {}", Remark::clean(operation).as_str()),
            Self::NoAnswer(what) => write!(f, "no answer: {}", what.as_str()),
            Self::Unsure(what) => write!(f, "the upstream does not know the outcome: {}", what.as_str()),
        }
    }
}
