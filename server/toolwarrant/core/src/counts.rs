//! Counters for metrics: plain atomics, read when a monitor asks.
//!
//! Counting takes one relaxed addition, without a lock, a hash or an allocation. A metrics library
//! would add a lock in each histogram or a look-up of labels. Each part of a service owns its
//! counters. This module has the two kinds, [`Count`] and [`Durations`], and the counters of the
//! pipeline.

use super::catalogue::{Catalogue, ToolDef};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A counter. It only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

/// Lines that this process failed to print or log. Both streams belong to the process, and so does
/// this counter.
pub static LOST_LINES: Count = Count(AtomicU64::new(0));

impl Count {
    /// Adds to the counter.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// Returns the current number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Upper ends of the spans of a histogram of durations, in milliseconds. The last span has no end.
pub const SPANS: [u64; 14] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Durations {
    spans: [Count; SPANS.len() + 1],
    millis: Count,
}

impl Durations {
    /// Adds a duration. Clocks round down to whole milliseconds, so a duration equal to the end of
    /// a span belongs to the next.
    pub fn add(&self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        // Most durations are in the first spans.
        let span = SPANS.iter().position(|end| *end > millis).unwrap_or(SPANS.len());
        if let Some(count) = self.spans.get(span) {
            count.add(1);
        }
        if millis > 0 {
            self.millis.add(millis);
        }
    }

    /// Returns the number of durations in each span, and the sum of all durations in milliseconds.
    pub fn get(&self) -> ([u64; SPANS.len() + 1], u64) {
        (std::array::from_fn(|n| self.spans.get(n).map_or(0, Count::get)), self.millis.get())
    }
}

/// The counters of the pipeline: requests, and calls of each tool.
#[derive(Debug)]
pub struct Requests {
    tools: Box<[Calls]>,
    /// Requests without valid credentials.
    pub unauthenticated: Count,
    /// Requests refused because they exceed the budget of their application.
    pub rate_limited: Count,
    /// Requests whose body is not a message.
    pub unsound: Count,
}

/// Counters of the calls of one tool.
#[derive(Debug)]
pub struct Calls {
    /// The tool.
    pub tool: &'static ToolDef,
    /// The durations of the calls, except those that were refused for the budget.
    pub took: Durations,
    /// `ok`, `cancelled`, and the codes of its errors.
    outcomes: Box<[(&'static str, Count)]>,
}

impl Requests {
    /// Makes counters that start at zero.
    #[must_use]
    pub fn new(catalogue: &'static Catalogue) -> Self {
        let (unauthenticated, rate_limited, unsound) = Default::default();
        Self { tools: catalogue.tools.iter().map(Calls::new).collect(), unauthenticated, rate_limited, unsound }
    }

    /// Counts a call of a tool by outcome: `ok`, `cancelled`, or an error code that the contract
    /// declares for the tool. A call that ran also has a duration.
    pub fn count_call(&self, tool: &ToolDef, outcome: &str, took: Option<Duration>) {
        let Some(calls) = self.tools.get(tool.index) else { return };
        if let Some(took) = took {
            calls.took.add(took);
        }
        if let Some((_, count)) = calls.outcomes.iter().find(|(name, _)| *name == outcome) {
            count.add(1);
        }
    }

    /// Returns the counters of each tool.
    pub fn tools(&self) -> &[Calls] {
        &self.tools
    }
}

impl Calls {
    fn new(tool: &'static ToolDef) -> Self {
        let outcomes = ["ok", "cancelled"].into_iter().chain(tool.errors.iter().map(|error| error.code));
        let outcomes = outcomes.map(|name| (name, Count::default())).collect();
        Self { tool, took: Durations::default(), outcomes }
    }

    /// Returns the number of calls for each outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.outcomes.iter().map(|(name, count)| (*name, count.get()))
    }
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
