//! The log of a budget that replicas share, and the decision how much of it one of them may hold.
//!
//! Each replica has a record in the log: the requests that it has admitted, and its allowance, the
//! number that it may still admit until a moment. A replica grants itself an allowance out of what
//! no record counts, and writes the log with a new record if no other replica has changed it
//! meanwhile. Its clock alone decides when its allowance ends.
//!
//! A request counts for 60 seconds and [`CLOCK_ERROR`]. The rest of an allowance counts for that
//! long after its end, because the last request may come then.
//!
//! This module knows no time and no store. Start at [`SharedLog::grant`].

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;

/// Largest difference between the clock of a live replica and that of another, or its own a minute
/// later. So each of these clocks may differ by half of it from the true time. If one differs by
/// more, replicas together may admit more than the limit.
pub const CLOCK_ERROR: Duration = Duration::from_secs(1);

/// Time for which a request counts after the end of its tick, and an allowance after its end.
pub(super) const COUNTED: Duration = Duration::from_secs(60).saturating_add(CLOCK_ERROR);

/// Length of an allowance while half of the limit is free.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// Length of an allowance otherwise.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// Length of a tick, in milliseconds.
const TICK_MILLIS: u64 = 100;

/// Ticks whose requests share a count. It counts from the last of them.
const SHARED_TICKS: u64 = 4;

/// Part of the limit that a replica holds without need while half of it is free.
const LONG_PART: u32 = 16;

/// Part of the limit that a replica gets in addition to its need otherwise. It bounds the writes of
/// the log to about ten a second, whatever the limit is.
const SHORT_PART: u32 = 512;

/// Time for which replicas consider one that was refused although it has less than half of its
/// share.
pub(super) const WANTED: Duration = Duration::from_secs(5);

/// Time for which the others then leave to it what has become free: longer than the clocks differ.
/// Otherwise a replica whose clock is ahead takes everything first.
const YIELDED: Duration = Duration::from_secs(3);

/// The form of an encoded log.
const FORM: u32 = 1;

/// The records of replicas. A log has at most one for each replica of the last minute, and a record
/// has at most 322 counts, so its size does not depend on the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedLog {
    records: Vec<Record>,
}

/// The part of the log that one replica writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The run of the replica.
    pub(super) holder: u64,
    /// The requests that it may still admit.
    pub(super) left: u32,
    /// The end of that allowance.
    pub(super) until: Timestamp,
    /// The last time when it was refused although it has less than half of its share.
    pub(super) wants: Timestamp,
    /// The tick of the last count, also after that is over.
    last: u64,
    /// The requests that it has admitted: the ticks since the count before, and the count.
    admitted: VecDeque<(u64, u32)>,
}

/// A part of the limit that a replica may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// The requests that it may admit, including those that it may admit already.
    pub(super) requests: u32,
    /// The end, by the clock of the replica.
    pub(super) until: Timestamp,
}

impl SharedLog {
    /// Reads an encoded log. Returns `None` if it has another form.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let (form, records): (u32, _) = serde_json::from_slice(body).ok()?;
        (form == FORM).then_some(Self { records })
    }

    /// Encodes the log with the record of this replica, which gets that allowance. Leaves out what
    /// is over.
    pub(super) fn encode(&self, own: &Record, Allowance { requests, until }: Allowance, now: Timestamp) -> Vec<u8> {
        let own = Record { left: requests, until, ..own.clone() };
        let records = self.records.iter().chain([&own]).filter(|record| record.is_needed(now));
        serde_json::to_vec(&(FORM, records.collect::<Vec<_>>())).unwrap_or_default()
    }

    /// Returns the log without the record of this replica, which knows better what it has admitted.
    pub(crate) fn without(mut self, holder: u64) -> Self {
        self.records.retain(|record| record.holder != holder);
        self
    }

    /// Decides what a replica may hold that has admitted the requests of `own` and holds its
    /// allowance. `asked` are the requests that wait there, in order. `self` has the other records.
    ///
    /// If half of the limit is free and requests come often, that is what they need and a 16th of
    /// the limit, for ten seconds. Otherwise it is what they need, for a second. Returns `None` if
    /// that is no more than the replica holds.
    pub(super) fn grant(&self, own: &Record, limit: u32, asked: &[u32], now: Timestamp) -> Option<Allowance> {
        let room = self.room(own, limit, now);
        let needed = asked.iter().fold(0_u32, |sum, n| sum.checked_add(*n).filter(|sum| *sum <= room).unwrap_or(sum));
        let is_often = now < end(own.last).plus(LONG);
        let is_long = is_often && limit >= LONG_PART && room >= limit.div_ceil(2);
        let (spare, length) = match is_long {
            true => (limit / LONG_PART, LONG),
            false => (if is_often { limit / SHORT_PART } else { 0 }, SHORT),
        };
        if own.left > room || needed == 0 && !(asked.is_empty() && is_long) {
            return None;
        }
        let requests = needed.saturating_add(spare).min(room).max(own.left);
        (requests > 0).then_some(Allowance { requests, until: now.plus(length) })
    }

    /// Returns the requests that this replica may hold; its allowance is a part of them.
    pub(super) fn room(&self, own: &Record, limit: u32, now: Timestamp) -> u32 {
        let now = now.minus(self.delay(own, limit, now));
        let others = self.records.iter().map(|record| record.count_admitted(now) + record.count_held(now)).sum::<u64>();
        limit.saturating_sub(u32::try_from(others + own.count_admitted(now)).unwrap_or(u32::MAX))
    }

    /// Returns the moment when `n` more requests fit, if no replica admits others until then.
    pub(super) fn free_at(&self, own: &Record, limit: u32, n: u32, now: Timestamp) -> Timestamp {
        let delay = self.delay(own, limit, now);
        let others = self.records.iter().flat_map(|record| record.ends().chain([(record.until, record.left)]));
        let mut ends: Vec<_> =
            own.ends().chain(others).map(|(end, count)| (end.plus(COUNTED + delay), count)).collect();
        ends.retain(|(end, _)| *end > now);
        ends.sort_unstable_by_key(|(end, _)| *end);
        let total: u64 = ends.iter().map(|(_, count)| u64::from(*count)).sum();
        let mut over = (total + u64::from(n)).saturating_sub(limit.into());
        if over == 0 {
            return now;
        }
        let last = ends.into_iter().find(|(_, count)| {
            over = over.saturating_sub(u64::from(*count));
            over == 0
        });
        last.map_or(now.plus(COUNTED), |(end, _)| end)
    }

    /// Returns true if a replica has less than half of its share of the limit.
    pub(super) fn is_short(&self, own: &Record, limit: u32, now: Timestamp) -> bool {
        let others =
            self.records.iter().filter(|record| record.count_admitted(now) > 0 || record.is_wanting(now)).count();
        2 * (others as u64 + 1) * own.count_admitted(now) < limit.into()
    }

    /// Returns the further time for which requests count for this replica, so that another one gets
    /// what becomes free.
    fn delay(&self, own: &Record, limit: u32, now: Timestamp) -> Duration {
        let is_short = self.is_short(own, limit, now);
        let goes_first = |record: &Record| record.is_wanting(now) && (!is_short || record.last < own.last);
        if self.records.iter().any(goes_first) { YIELDED } else { Duration::ZERO }
    }
}

impl Record {
    /// Logs requests that were admitted at `now`, and returns their tick. If time went back, that
    /// is the latest one.
    pub(super) fn add(&mut self, now: Timestamp, n: u32) -> u64 {
        let gap = (now.0 / TICK_MILLIS).saturating_sub(self.last);
        let is_over = |(end, count): (Timestamp, u32)| count == 0 || now >= end.plus(COUNTED + YIELDED);
        while gap > 0 && self.ends().next().is_some_and(is_over) {
            self.admitted.pop_front();
        }
        self.last += gap;
        match self.admitted.back_mut() {
            Some((ticks, count)) if gap == 0 || *ticks + gap < SHARED_TICKS => {
                (*ticks, *count) = (*ticks + gap, count.saturating_add(n));
            }
            _ => self.admitted.push_back((gap, n)),
        }
        self.last
    }

    /// Takes back requests that were logged in `tick`.
    pub(super) fn give_back(&mut self, tick: u64, n: u32) {
        let at = self.ends().position(|(end, _)| end > Timestamp(tick * TICK_MILLIS));
        if let Some((_, count)) = at.and_then(|at| self.admitted.get_mut(at)) {
            *count = count.saturating_sub(n);
        }
    }

    /// Returns the requests that it has admitted and that count at `now`.
    fn count_admitted(&self, now: Timestamp) -> u64 {
        self.ends().filter(|(end, _)| now < end.plus(COUNTED)).map(|(_, count)| u64::from(count)).sum()
    }

    /// Returns the requests of its allowance that count at `now`.
    fn count_held(&self, now: Timestamp) -> u64 {
        if now < self.until.plus(COUNTED) { self.left.into() } else { 0 }
    }

    /// Returns the ends of the ticks of its counts, and the counts, in order.
    fn ends(&self) -> impl Iterator<Item = (Timestamp, u32)> {
        let since_first: u64 = self.admitted.iter().skip(1).map(|(gap, _)| gap).sum();
        let first = self.last.saturating_sub(since_first);
        let ticks = self.admitted.iter().enumerate().scan(first, |tick, (at, (gap, count))| {
            *tick += if at == 0 { 0 } else { *gap };
            Some((*tick, *count))
        });
        ticks.map(|(tick, count)| (end(tick), count))
    }

    fn is_wanting(&self, now: Timestamp) -> bool {
        now < self.wants.plus(WANTED)
    }

    /// Returns true if the log must have the record.
    fn is_needed(&self, now: Timestamp) -> bool {
        let counts = |now| self.count_admitted(now) + self.count_held(now) > 0;
        counts(now.minus(YIELDED)) || self.is_wanting(now)
    }
}

/// Returns the end of a tick.
fn end(tick: u64) -> Timestamp {
    Timestamp((tick + 1) * TICK_MILLIS)
}

#[cfg(test)]
mod tests;
