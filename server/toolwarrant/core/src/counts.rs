//! Counters for metrics: plain atomics, read when a monitor asks.
//!
//! Counting takes one relaxed addition, without a lock, a hash or an allocation. A metrics library
//! would add a lock in each histogram or a look-up of labels. Each part of a service owns its
//! counters. This module has the two kinds, [`Count`] and [`Durations`], and the counters of the
//! pipeline. A counter that each request adds to exists once per thread; a monitor sums them.

use super::catalogue::{Catalogue, ToolDef};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::shards::Shards;

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

    /// Adds the content of another histogram.
    fn add_all(&self, other: &Self) {
        let Self { spans, millis } = other;
        self.spans.iter().zip(spans).for_each(|(own, other)| own.add(other.get()));
        self.millis.add(millis.get());
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
    pub unauthenticated: SpreadCount,
    /// Requests refused because they exceed the budget of their application.
    pub rate_limited: SpreadCount,
    /// Requests whose body is not a message.
    pub unsound: SpreadCount,
}

/// A counter that many threads add to at once.
#[derive(Debug, Default)]
pub struct SpreadCount(Shards<Count>);

impl SpreadCount {
    /// Adds to the counter.
    pub fn add(&self, more: u64) {
        self.0.mine().add(more);
    }

    /// Returns the current number.
    pub fn get(&self) -> u64 {
        self.0.iter().map(Count::get).sum()
    }
}

/// Counters of the calls of one tool.
#[derive(Debug)]
pub struct Calls {
    /// The tool.
    pub tool: &'static ToolDef,
    /// The outcomes of its calls other than `ok`: `cancelled` and the codes of its errors.
    failures: Box<[&'static str]>,
    shards: Shards<Ended>,
}

/// The counters of one thread for one tool.
#[derive(Debug)]
struct Ended {
    ok: Count,
    took: Durations,
    /// In the order of [`Calls::failures`].
    failures: Box<[Count]>,
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
        let mine = calls.shards.mine();
        if let Some(took) = took {
            mine.took.add(took);
        }
        if let Some(count) = calls.of(mine, outcome) {
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
        let failures: Box<[_]> = ["cancelled"].into_iter().chain(tool.errors.iter().map(|error| error.code)).collect();
        let zero = || failures.iter().map(|_| Count::default()).collect();
        let shards = Shards::new(|| Ended { ok: Count::default(), took: Durations::default(), failures: zero() });
        Self { tool, failures, shards }
    }

    /// Returns the number of calls for each outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let failed = |n: usize| self.shards.iter().filter_map(|ended| ended.failures.get(n)).map(Count::get).sum();
        let ok = self.shards.iter().map(|ended| ended.ok.get()).sum();
        [("ok", ok)].into_iter().chain(self.failures.iter().enumerate().map(move |(n, name)| (*name, failed(n))))
    }

    /// Returns the durations of the calls, except those that were refused for the budget.
    pub fn took(&self) -> Durations {
        let all = Durations::default();
        self.shards.iter().for_each(|ended| all.add_all(&ended.took));
        all
    }

    /// Returns a thread's counter for an outcome; `None` if the contract has no outcome of this
    /// name.
    fn of<'a>(&self, ended: &'a Ended, outcome: &str) -> Option<&'a Count> {
        let Ended { ok, took: _, failures } = ended;
        if outcome == "ok" {
            return Some(ok);
        }
        failures.get(self.failures.iter().position(|name| *name == outcome)?)
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
