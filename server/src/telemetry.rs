//! What the server counts while it works, and how that is written down for Prometheus.
//!
//! Each part owns its counts: plain atomics, which cost a request a relaxed addition, without a lock, a hash or an allocation.
//! They are read when somebody asks ([`page::Page`]). That is all that a metrics library would be here for, and those at hand
//! take a lock in a histogram or look labels up in a map.

pub mod page;

use crate::framework::catalogue::{Catalogue, ToolDef};
use crate::store::Advance;
use crate::tasks::machine::{Entry, Sent};
use crate::tasks::task::Status;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// What it has come to.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Upper ends of the spans by which durations are told apart, in milliseconds. The last span has none.
pub const SPANS: [u64; 14] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

/// How long something took, each time.
#[derive(Debug, Default)]
pub struct Durations {
    spans: [Count; SPANS.len() + 1],
    millis: Count,
}

impl Durations {
    /// Adds one. Clocks cut a duration down to whole milliseconds, so one that shows as the end of a span is beyond it.
    pub fn add(&self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let span = SPANS.partition_point(|end| *end <= millis);
        if let Some(count) = self.spans.get(span) {
            count.add(1);
        }
        self.millis.add(millis);
    }

    /// How many are in each span, and how many milliseconds all of them took together.
    pub fn get(&self) -> ([u64; SPANS.len() + 1], u64) {
        (std::array::from_fn(|n| self.spans.get(n).map_or(0, Count::get)), self.millis.get())
    }
}

/// Requests to a contract, and calls of its tools.
#[derive(Debug)]
pub struct Requests {
    tools: Box<[Calls]>,
    /// Requests without credentials that are known.
    pub unauthenticated: Count,
    /// Requests beyond their application's budget.
    pub rate_limited: Count,
}

/// Calls of one tool.
#[derive(Debug)]
pub struct Calls {
    /// Which.
    pub tool: &'static ToolDef,
    outcomes: Box<[(&'static str, Count)]>,
    /// How long each took that was not refused for its budget.
    pub took: Durations,
}

impl Requests {
    /// None so far.
    #[must_use]
    pub fn new(catalogue: &'static Catalogue) -> Self {
        let calls = |tool: &'static ToolDef| {
            let codes = tool.errors.iter().map(|error| error.code);
            let outcomes = ["ok", "cancelled"].into_iter().chain(codes).map(|name| (name, Count::default())).collect();
            Calls { tool, outcomes, took: Durations::default() }
        };
        let (unauthenticated, rate_limited) = Default::default();
        Self { tools: catalogue.tools.iter().map(calls).collect(), unauthenticated, rate_limited }
    }

    /// Counts calls of a tool: `ok`, `cancelled`, or a code that the contract lets it end with.
    pub fn called(&self, tool: &ToolDef, outcome: &str, calls: u64) {
        let known =
            self.tools.get(tool.index).and_then(|calls| calls.outcomes.iter().find(|(name, _)| *name == outcome));
        if let Some((_, count)) = known {
            count.add(calls);
        }
    }

    /// Notes how long a call of a tool took.
    pub fn took(&self, tool: &ToolDef, took: Duration) {
        if let Some(calls) = self.tools.get(tool.index) {
            calls.took.add(took);
        }
    }

    /// The calls of each tool.
    pub fn tools(&self) -> &[Calls] {
        &self.tools
    }
}

impl Calls {
    /// How many ended in which way.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.outcomes.iter().map(|(name, count)| (*name, count.get()))
    }
}

/// What an engine has done since it started.
#[derive(Debug, Default)]
pub struct Driven {
    /// Tasks that were taken on.
    pub accepted: Count,
    /// In the order of [`Status::ALL`].
    ended: [Count; Status::ALL.len()],
    /// In the order of [`SENT`].
    sent: [Count; SENT.len()],
    /// In the order of [`BOOKED`].
    booked: [Count; BOOKED.len()],
}

/// What a send can come to.
const SENT: [&str; 5] = ["not_sent", "ok", "error", "pending", "no_answer"];

/// What can be entered in the ledger.
const BOOKED: [Entry; 3] = [Entry::Charge, Entry::ReverseCharge, Entry::Refund];

impl Driven {
    /// Counts a step that was written down.
    pub fn stepped(&self, step: &Advance) {
        let ended = Status::ALL.iter().zip(&self.ended).filter(|(status, _)| step.task.status() == Some(**status));
        let booked = BOOKED.iter().zip(&self.booked).filter(|(entry, _)| step.entries.contains(entry));
        ended.map(|(_, count)| count).chain(booked.map(|(_, count)| count)).for_each(|count| count.add(1));
    }

    /// Counts a send by what it came to.
    pub fn sent(&self, sent: &Sent) {
        let [not_sent, ok, error, pending, no_answer] = &self.sent;
        let count = match sent {
            Sent::NotSent(_) => not_sent,
            Sent::Ok => ok,
            Sent::Err(_) => error,
            Sent::Pending(_) => pending,
            Sent::NoAnswer(_) => no_answer,
        };
        count.add(1);
    }

    /// Tasks that ended, by their status.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Status::ALL.iter().map(|status| status.as_str()).zip(self.ended.iter().map(Count::get))
    }

    /// Sends, by what they came to.
    pub fn sends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        SENT.into_iter().zip(self.sent.iter().map(Count::get))
    }

    /// Entries in the ledger, by their kind.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        BOOKED.iter().filter_map(|entry| entry.kind()).zip(self.booked.iter().map(Count::get))
    }
}

/// What a store has written since it was opened.
#[derive(Debug, Default)]
pub struct Written {
    /// Transactions that reached the disk.
    pub commits: Count,
    /// Requests in them.
    pub requests: Count,
    /// Transactions that failed.
    pub failures: Count,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_span_that_it_is_surely_within() {
        let durations = Durations::default();
        for millis in [0, 1, 4, 5, 59_999, 60_000, 1 << 40] {
            durations.add(Duration::from_millis(millis));
        }
        let (spans, millis) = durations.get();
        assert_eq!(spans, [1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(millis, 10 + 59_999 + 60_000 + (1 << 40));
    }
}
