//! A step in the timeline of a task: the event as data, and its sentence without terminal
//! sequences.

use super::{Effect, Event, Refusal, Sent};
use crate::command::UNREADABLE;
use crate::task::{Phase, Reading, Task};
use serde::{Deserialize, Serialize};
use std::fmt;
use toolwarrant_base::text::Remark;

/// It displays as a sentence fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimelineEntry {
    /// The acceptance, the end by a restore, or an event of a later version.
    Sentence(String),
    Event(RecordedEvent),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEvent {
    pub event: Event,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend: Option<Resend>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resend {
    /// The upstream recognises a repeated request.
    Recognised,
    /// No answer came, and no effect was read.
    NoEffect,
    NothingDone,
}

impl Resend {
    pub(crate) fn of(task: &Task, effect: Option<Effect>) -> Option<Self> {
        match (effect, task.phase) {
            (Some(Effect::Send(_)), _) if task.attempts == 0 => None,
            (Some(Effect::Send(_)), Phase::Sending) => Some(Self::Recognised),
            (Some(Effect::Send(_)), _) if task.left => Some(Self::NoEffect),
            (Some(Effect::Send(_)), _) => Some(Self::NothingDone),
            _ => None,
        }
    }
}

impl From<String> for TimelineEntry {
    fn from(sentence: String) -> Self {
        Self::Sentence(sentence)
    }
}

impl fmt::Display for TimelineEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RecordedEvent { event, obstacle, unreadable, resend } = match self {
            Self::Sentence(sentence) => return f.write_str(sentence),
            Self::Event(noted) => noted,
        };
        let what = match obstacle {
            Some(why) => format!("{event}; {why}"),
            None => event.to_string(),
        };
        match unreadable {
            Some(why) if what.contains(UNREADABLE) => {
                f.write_str(&what.replacen(UNREADABLE, &format!("{UNREADABLE}: {why}"), 1))?;
            }
            Some(why) => write!(f, "{what}; {UNREADABLE}: {why}")?,
            None => f.write_str(&what)?,
        }
        f.write_str(match resend {
            Some(Resend::Recognised) => "; sent again, because the upstream recognises a repeated request",
            Some(Resend::NoEffect) => "; sent again, because no answer came and no effect was read",
            Some(Resend::NothingDone) => "; sent again, because nothing was done before",
            None => "",
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Due => f.write_str("due"),
            Self::Found => f.write_str("found by a new process"),
            Self::TakenOver => f.write_str("taken over from another process"),
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
            Self::Refused(Refusal { code, why, precedes_act, is_busy }) => {
                let busy = if *is_busy { "was busy and " } else { "" };
                let when = if *precedes_act { ", before it acted" } else { "" };
                write!(f, "the upstream {busy}refused it with {code}{when}: {}", why.as_str())
            }
            Self::Ok => f.write_str("the upstream says that it is done"),
            Self::Err(how) => write!(f, "the upstream says that it failed: {}", how.as_str()),
            Self::Pending(operation) => write!(f, "the upstream works on it as {}", Remark::clean(operation).as_str()),
            Self::NoAnswer(what) => write!(f, "no answer: {}", what.as_str()),
            Self::Unsure(what) => write!(f, "the upstream does not know the outcome: {}", what.as_str()),
        }
    }
}
