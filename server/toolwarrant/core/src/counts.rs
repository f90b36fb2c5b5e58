//! Counters for metrics: plain atomics, read when a monitor asks.
//!
//! Counting is one relaxed addition. A metrics library would add a lock, a hash or an allocation.
//! Each part of a service owns its counters. Start at [`Count`].

use super::catalogue::{Catalogue, ToolDef};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::ignore_poison;

#[derive(Debug, Default)]
pub struct Count(AtomicU64);

/// Lines that this process failed to print or log.
pub static LOST_LINES: Count = Count(AtomicU64::new(0));

impl Count {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Upper ends in microseconds. The last span has no end.
pub const SPANS: [u64; 16] = [
    250, 500, 1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000, 60_000_000,
];

#[derive(Debug, Default)]
pub struct Durations {
    spans: [Count; SPANS.len() + 1],
    micros: Count,
}

impl Durations {
    /// Rounds down to whole microseconds, so a duration equal to the end of a span belongs to the
    /// next.
    pub fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let span = SPANS.iter().position(|end| *end > micros).unwrap_or(SPANS.len());
        if let Some(count) = self.spans.get(span) {
            count.add(1);
        }
        self.micros.add(micros);
    }

    pub fn get(&self) -> ([u64; SPANS.len() + 1], u64) {
        (std::array::from_fn(|n| self.spans.get(n).map_or(0, Count::get)), self.micros.get())
    }
}

#[derive(Debug)]
pub struct Requests {
    tools: Box<[Calls]>,
    pub unauthenticated: Count,
    pub rate_limited: Count,
    /// Requests whose body is not a message.
    pub unsound: Count,
    pub unavailable: LastUnavailable,
}

/// The last logged call that did not reach its upstream. A client can cause any number of them, so
/// the log has one a minute.
#[derive(Debug, Default)]
pub struct LastUnavailable(Mutex<Option<(Timestamp, &'static str, Box<str>)>>);

impl LastUnavailable {
    const LOGGED_EVERY: Duration = Duration::from_mins(1);

    pub(crate) fn note(&self, tool: &'static str, why: &str, now: Timestamp) {
        let mut last = ignore_poison(self.0.lock());
        match last.as_ref().is_none_or(|(at, ..)| now >= at.plus(Self::LOGGED_EVERY)) {
            true => {
                tracing::warn!(tool, why, "an upstream cannot be reached");
                *last = Some((now, tool, why.into()));
            }
            false => tracing::debug!(tool, why, "an upstream cannot be reached"),
        }
    }

    /// Returns the time of the call, its tool and the reason.
    pub fn last(&self) -> Option<(Timestamp, &'static str, Box<str>)> {
        ignore_poison(self.0.lock()).clone()
    }
}

#[derive(Debug)]
pub struct Calls {
    pub tool: &'static ToolDef,
    /// Without the calls that were refused for the budget.
    pub took: Durations,
    /// `ok`, `cancelled`, and the codes of its errors.
    outcomes: Box<[(&'static str, Count)]>,
}

impl Requests {
    #[must_use]
    pub fn new(catalogue: &'static Catalogue) -> Self {
        let (unauthenticated, rate_limited, unsound, unavailable) = Default::default();
        let tools = catalogue.tools.iter().map(Calls::new).collect();
        Self { tools, unauthenticated, rate_limited, unsound, unavailable }
    }

    /// Counts a call as `ok`, `cancelled`, or an error code of the tool. Only a call that ran has a
    /// duration.
    pub fn count_call(&self, tool: &ToolDef, outcome: &str, took: Option<Duration>) {
        let Some(calls) = self.tools.get(tool.index) else { return };
        if let Some(took) = took {
            calls.took.add(took);
        }
        if let Some((_, count)) = calls.outcomes.iter().find(|(name, _)| *name == outcome) {
            count.add(1);
        }
    }

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

    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.outcomes.iter().map(|(name, count)| (*name, count.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_calls_without_an_upstream_one_a_minute_is_logged_and_kept() {
        let last = LastUnavailable::default();
        for (at, why, kept) in
            [(1, "off", "off"), (2, "mute", "off"), (60_000, "mute", "off"), (60_001, "mute", "mute")]
        {
            last.note("look", why, Timestamp(at));
            assert_eq!(&*last.last().unwrap().2, kept, "{at}");
        }
    }

    #[test]
    fn a_duration_is_counted_in_the_span_that_it_is_surely_within() {
        let durations = Durations::default();
        for nanos in [0, 249_999, 250_000, 999_999, 1_000_000, 4_999_999_999, 60_000_000_000, 1 << 60] {
            durations.add(Duration::from_nanos(nanos));
        }
        let (spans, micros) = durations.get();
        assert_eq!(spans, [2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(micros, 249 + 250 + 999 + 1_000 + 4_999_999 + 60_000_000 + (1 << 60) / 1_000);
    }
}
