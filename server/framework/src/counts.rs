//! Counters for metrics: plain atomics, read when a monitor asks.
//!
//! Counting takes one relaxed addition, without a lock, a hash or an allocation; a metrics library would add a lock in each
//! histogram or a look-up of labels. Each part of a service owns its counters. This module has the two kinds, [`Count`] and
//! [`Durations`], and the counters of the pipeline.

use super::catalogue::{Catalogue, ToolDef};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A counter. It only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

/// Lines that this process wanted to print or log and could not. Both streams belong to the process, and so does this counter.
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

/// Upper ends of the spans of a histogram of durations, in milliseconds. One more span has no end.
pub const SPANS: [u64; 14] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Durations {
    spans: [Count; SPANS.len() + 1],
    millis: Count,
}

impl Durations {
    /// Adds a duration. Clocks round down to whole milliseconds, so a duration equal to the end of a span belongs to the next.
    pub fn add(&self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let span = SPANS.partition_point(|end| *end <= millis);
        if let Some(count) = self.spans.get(span) {
            count.add(1);
        }
        self.millis.add(millis);
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
    /// Requests whose body is no message.
    pub unsound: Count,
}

/// Counters of the calls of one tool.
#[derive(Debug)]
pub struct Calls {
    /// The tool.
    pub tool: &'static ToolDef,
    outcomes: Box<[(&'static str, Count)]>,
    /// The duration of each call, except those refused for the budget.
    pub took: Durations,
}

impl Requests {
    /// Creates counters that stand at zero.
    #[must_use]
    pub fn new(catalogue: &'static Catalogue) -> Self {
        let calls = |tool: &'static ToolDef| {
            let codes = tool.errors.iter().map(|error| error.code);
            let outcomes = ["ok", "cancelled"].into_iter().chain(codes).map(|name| (name, Count::default())).collect();
            Calls { tool, outcomes, took: Durations::default() }
        };
        let (unauthenticated, rate_limited, unsound) = Default::default();
        Self { tools: catalogue.tools.iter().map(calls).collect(), unauthenticated, rate_limited, unsound }
    }

    /// Counts calls of a tool by outcome: `ok`, `cancelled`, or an error code that the contract declares for the tool.
    pub fn called(&self, tool: &ToolDef, outcome: &str, calls: u64) {
        let known =
            self.tools.get(tool.index).and_then(|calls| calls.outcomes.iter().find(|(name, _)| *name == outcome));
        if let Some((_, count)) = known {
            count.add(calls);
        }
    }

    /// Adds the duration of a call of a tool.
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
