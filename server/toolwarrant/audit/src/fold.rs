//! Aggregates refused calls, so that a client that is always refused cannot fill the disk.
//!
//! Each minute, the first refusals of an application get a line each. Further ones are counted by
//! key, tool and outcome, and each count becomes one line after the minute. Every refusal is
//! counted.

use super::line::Line;
use std::collections::HashMap;
use std::net::IpAddr;
use toolwarrant_base::clock::Timestamp;

/// Refused calls of one application that get a line each, in a minute.
const LINES_A_MINUTE: u32 = 60;

const MINUTE_MILLIS: u64 = 60_000;

/// The refused calls of the current minute.
#[derive(Debug, Default)]
pub(super) struct Folds {
    minute: u64,
    /// By application.
    written: HashMap<String, u32>,
    kinds: HashMap<Kind, Folded>,
    /// Counts of past minutes that are not written yet.
    over: Vec<(Kind, Folded)>,
}

/// The properties that refused calls of one line have in common.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kind {
    application: String,
    key_id: String,
    tool: String,
    outcome: String,
}

/// The number of calls, with the time and the request id of the latest.
#[derive(Debug)]
struct Folded {
    calls: u64,
    time: Timestamp,
    request_id: String,
    /// The address of all of them; `None` if they have several.
    from: Option<IpAddr>,
}

impl Folds {
    /// Counts a refused call. Returns true if it gets no line of its own.
    pub(super) fn take(&mut self, line: &Line<'_>, now: Timestamp) -> bool {
        let Line {
            time,
            request_id,
            application,
            key_id,
            tool,
            target: _,
            arguments: _,
            outcome,
            task_id: _,
            from,
            calls,
        } = *line;
        self.turn(now);
        let written = match self.written.get_mut(application) {
            Some(written) => written,
            None => self.written.entry(application.to_owned()).or_default(),
        };
        if *written < LINES_A_MINUTE {
            *written += 1;
            return false;
        }
        let [application, key_id, tool, outcome] = [application, key_id, tool, outcome].map(str::to_owned);
        let kind = Kind { application, key_id, tool, outcome };
        let folded =
            self.kinds.entry(kind).or_insert_with(|| Folded { calls: 0, time, request_id: String::new(), from });
        folded.calls += calls;
        folded.time = time;
        folded.from = folded.from.filter(|known| Some(*known) == from);
        request_id.clone_into(&mut folded.request_id);
        true
    }

    /// Passes a line for each kind of refused call to `write`: those of past minutes, or all if
    /// `last`.
    pub(super) fn write(&mut self, now: Timestamp, last: bool, mut write: impl FnMut(&Line<'_>)) {
        self.turn(if last { Timestamp(u64::MAX) } else { now });
        for (Kind { application, key_id, tool, outcome }, Folded { calls, time, request_id, from }) in
            self.over.drain(..)
        {
            write(&Line {
                time,
                request_id: &request_id,
                application: &application,
                key_id: &key_id,
                tool: &tool,
                target: None,
                arguments: None,
                outcome: &outcome,
                task_id: None,
                from,
                calls,
            });
        }
    }

    fn turn(&mut self, now: Timestamp) {
        let minute = now.0 / MINUTE_MILLIS;
        if minute != self.minute {
            self.minute = minute;
            self.written.clear();
            self.over.extend(self.kinds.drain());
            self.over.sort_by(|(_, one), (_, other)| (one.time, &one.request_id).cmp(&(other.time, &other.request_id)));
        }
    }
}
