//! What is counted while a service works: plain atomics, read when somebody asks.
//!
//! A count costs a request one relaxed addition, without a lock, a hash or an allocation. Each part owns its own counts; here
//! are the two kinds of number that all of them are made of, and the counts of the pipeline. A metrics library would add a
//! lock in each histogram or a look-up of labels.

use super::catalogue::{Catalogue, ToolDef};
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
    /// The duration of each call, except those refused for the budget.
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
