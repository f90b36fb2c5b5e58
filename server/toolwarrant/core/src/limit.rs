//! The request budget of an application: requests in any 60 seconds.
//!
//! The window slides. It is exact to a tenth of a second, and errs on the strict side. Start at
//! [`Window::admit`].

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::ignore_poison;

/// Requests within one tick share a log entry.
const TICK_MILLIS: u64 = 100;

const TICKS_A_SECOND: u64 = 1000 / TICK_MILLIS;

/// Ticks for which an entry counts: 60 seconds and one tick, because a request at the end of its
/// tick must also count for 60 seconds.
const WINDOW_TICKS: u64 = 601;

/// Age at which a second no longer counts: the longest time of a request, and a second.
pub(crate) const WINDOW: Duration = Duration::from_secs(62);

/// A sliding window, which logs at most one entry a tick, however large the limit is.
#[derive(Debug)]
pub struct Window {
    limit: AtomicU32,
    log: Mutex<Log>,
    refusals: Mutex<Refusals>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCount {
    pub application: String,
    pub second: u64,
    pub requests: u32,
}

/// A request that was admitted before its messages were counted. If dropped, it stays charged.
#[derive(Clone, Copy, Debug)]
pub struct HeadCharge(
    /// The tick in which it was logged.
    u64,
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// At least 1.
    pub seconds: u64,
}

#[derive(Debug, Default)]
struct Refusals {
    second: Option<u64>,
    unlogged: u64,
}

impl Window {
    /// Admits `limit` requests in any 60 seconds, even all at once.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self { limit: AtomicU32::new(limit), log: Mutex::default(), refusals: Mutex::default() }
    }

    /// Counts a refusal. Returns those since the last log line, at most once a second.
    pub fn take_unlogged(&self, now: Timestamp) -> Option<u64> {
        let mut refusals = ignore_poison(self.refusals.lock());
        let second = now.0 / 1000;
        refusals.unlogged += 1;
        if refusals.second == Some(second) {
            return None;
        }
        refusals.second = Some(second);
        Some(std::mem::take(&mut refusals.unlogged))
    }

    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// Sets the limit. Earlier requests still count.
    pub fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Relaxed);
    }

    #[must_use]
    pub fn usage(&self, now: Timestamp) -> u32 {
        let mut log = ignore_poison(self.log.lock());
        log.advance(now.0 / TICK_MILLIS);
        log.total
    }

    /// Counts requests of an earlier process. Call it in order, before the first request.
    pub fn restore(&self, second: u64, requests: u32) {
        let mut log = ignore_poison(self.log.lock());
        log.add((second + 1) * TICKS_A_SECOND - 1, requests);
        log.changed = None;
    }

    pub(crate) fn take_changes(&self) -> Vec<(u64, u32)> {
        ignore_poison(self.log.lock()).take_changes()
    }

    /// Lets [`Self::take_changes`] return this second and all later ones again.
    pub(crate) fn note_change(&self, second: u64) {
        ignore_poison(self.log.lock()).note_change(second * TICKS_A_SECOND);
    }

    /// Admits all `n` requests, or none. A refusal costs nothing.
    ///
    /// The head is admitted alone before the body arrives. With the body, `head` is that charge,
    /// and `n` the number of messages. If these do not fit, the charge is given back. If `n`
    /// exceeds the limit, the answer is a minute.
    pub fn admit(&self, head: Option<HeadCharge>, now: Timestamp, n: u32) -> Result<HeadCharge, RetryAfter> {
        let charged = u32::from(head.is_some());
        let mut log = ignore_poison(self.log.lock());
        let tick = log.advance(now.0 / TICK_MILLIS);
        let limit = self.limit();
        let room = limit.saturating_sub(log.total.saturating_sub(charged));
        if n > room {
            if let Some(HeadCharge(tick)) = head {
                log.give_back(tick, 1);
            }
            let seconds = match n > limit {
                true => 60,
                false => log
                    .ticks_until_free(tick, n.saturating_add(log.total).saturating_sub(charged.saturating_add(limit)))
                    .div_ceil(1000 / TICK_MILLIS),
            };
            return Err(RetryAfter { seconds });
        }
        log.add(tick, n.saturating_sub(charged));
        Ok(HeadCharge(tick))
    }
}

/// By tick, in ascending order.
#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<(u64, u32)>,
    total: u32,
    /// Has changed since it was last asked for.
    changed: Option<u64>,
}

impl Log {
    /// Returns the tick to use: the latest one if time went back.
    fn advance(&mut self, tick: u64) -> u64 {
        let tick = self.entries.back().map_or(tick, |(last, _)| tick.max(*last));
        while let Some((_, count)) = self.entries.pop_front_if(|(first, _)| tick - *first >= WINDOW_TICKS) {
            self.total -= count;
        }
        tick
    }

    fn ticks_until_free(&self, tick: u64, wanted: u32) -> u64 {
        let mut freed = 0;
        let last = self.entries.iter().find(|(_, count)| {
            freed += count;
            freed >= wanted
        });
        last.map_or(WINDOW_TICKS, |(at, _)| WINDOW_TICKS - (tick - at))
    }

    fn give_back(&mut self, tick: u64, n: u32) {
        if let Some((_, count)) = self.entries.iter_mut().rev().find(|(at, _)| *at == tick) {
            let n = n.min(*count);
            *count -= n;
            self.total -= n;
            self.note_change(tick);
        }
    }

    fn add(&mut self, tick: u64, n: u32) {
        if n == 0 {
            return;
        }
        self.total += n;
        self.note_change(tick);
        match self.entries.back_mut() {
            Some((last, count)) if *last == tick => *count += n,
            _ => self.entries.push_back((tick, n)),
        }
    }

    fn note_change(&mut self, tick: u64) {
        let second = tick / TICKS_A_SECOND;
        self.changed = Some(self.changed.map_or(second, |known| known.min(second)));
    }

    fn take_changes(&mut self) -> Vec<(u64, u32)> {
        let Some(first) = self.changed.take() else { return Vec::new() };
        let mut seconds: Vec<(u64, u32)> = Vec::new();
        for (tick, count) in &self.entries {
            match (tick / TICKS_A_SECOND, seconds.last_mut()) {
                (second, _) if second < first => {}
                (second, Some((known, sum))) if *known == second => *sum += count,
                (second, _) => seconds.push((second, *count)),
            }
        }
        seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarrant_base::random::SplitMix;

    const MINUTE: u64 = 60_000;
    const START: u64 = 1_790_000_000_000;

    fn admit(window: &Window, at: u64, n: u32) -> Result<(), u64> {
        window.admit(None, Timestamp(at), n).map(drop).map_err(|refusal| refusal.seconds)
    }

    #[test]
    fn a_head_stays_charged_unless_the_rest_does_not_fit() {
        let window = Window::new(10);
        let head = |at| window.admit(None, Timestamp(at), 1);
        let rest =
            |head, at, n| window.admit(Some(head), Timestamp(at), n).map(drop).map_err(|refusal| refusal.seconds);
        let first = head(START).unwrap();
        assert_eq!(rest(first, START + 5_000, 1), Ok(()));
        let second = head(START + 1_000).unwrap();
        assert_eq!(admit(&window, START + 5_000, 8), Ok(()));
        assert_eq!(rest(second, START + 5_000, 2), Err(56), "it and one more would need the first one's place");
        assert_eq!(admit(&window, START + 5_000, 1), Ok(()), "the head was given back");
        assert_eq!(head(START + 5_000).map(drop).map_err(|refusal| refusal.seconds), Err(56));
        let _unsound = head(START + 61_000).unwrap();
        assert_eq!(admit(&window, START + 61_000, 1), Err(5), "the head of an unsound request stays charged");
    }

    #[test]
    fn a_budget_goes_on_in_the_next_process_from_the_seconds_that_are_stored() {
        let (window, next) = (Window::new(10), Window::new(10));
        assert_eq!(admit(&window, START, 2), Ok(()));
        let head = window.admit(None, Timestamp(START + 900), 1).unwrap();
        assert_eq!(window.take_changes(), [(START / 1000, 3)]);
        assert_eq!(window.take_changes(), []);
        assert!(window.admit(Some(head), Timestamp(START + 900), 20).is_err());
        assert_eq!(admit(&window, START + 1_000, 5), Ok(()));
        let stored = window.take_changes();
        assert_eq!(stored, [(START / 1000, 2), (START / 1000 + 1, 5)]);
        stored.into_iter().for_each(|(second, requests)| next.restore(second, requests));
        assert_eq!(next.take_changes(), []);
        assert_eq!(admit(&next, START + 2_000, 4), Err(59));
        assert_eq!(admit(&next, START + 2_000, 3), Ok(()));
        assert_eq!(admit(&next, START + MINUTE + 1_000, 2), Ok(()));
    }

    #[test]
    fn more_than_the_limit_is_refused_for_ever_and_nothing_always_passes() {
        let window = Window::new(0);
        assert_eq!(admit(&window, START, 1), Err(60));
        assert_eq!(admit(&window, START, 0), Ok(()));
        assert_eq!(admit(&Window::new(300), START, u32::MAX), Err(60));
    }

    #[test]
    fn time_that_goes_back_stands_still() {
        let window = Window::new(2);
        assert_eq!(admit(&window, START, 1), Ok(()));
        assert_eq!(admit(&window, 0, 1), Ok(()));
        assert_eq!(admit(&window, START - MINUTE, 1), Err(61));
        assert_eq!(admit(&window, START + MINUTE + 100, 2), Ok(()));
    }

    #[test]
    fn the_log_is_bounded_whatever_the_limit() {
        let window = Window::new(u32::MAX);
        for tenth in 0..5_000 {
            assert_eq!(admit(&window, START + tenth * 50, 1_000), Ok(()));
            assert!(window.log.lock().expect("not poisoned").entries.len() <= 601);
        }
    }

    #[test]
    fn random_traffic_never_exceeds_the_limit_and_is_never_refused_without_cause() {
        for seed in 1..=200 {
            let mut random = SplitMix(seed);
            let limit = [1, 5_000][seed as usize % 2] + random.below(40) as u32;
            let window = Window::new(limit);
            let mut admitted: Vec<(u64, u32)> = Vec::new();
            let within = |admitted: &[(u64, u32)], now: u64, millis: u64| -> u32 {
                admitted.iter().filter(|(at, _)| now - at < millis).map(|(_, n)| n).sum()
            };
            let mut now = START + random.below(1000);
            let mut promise = None;
            for _ in 0..400 {
                now += if random.below(3) == 0 { 0 } else { random.below(9_000) };
                let n = 1 + random.below(u64::from(limit)) as u32;
                if let Some((at, n)) = promise.take_if(|(at, _)| *at <= now) {
                    assert_eq!(admit(&window, at, n), Ok(()), "seed {seed}: waited as told");
                    admitted.push((at, n));
                }
                match admit(&window, now, n) {
                    Ok(()) => {
                        admitted.push((now, n));
                        promise = None;
                    }
                    Err(seconds) => {
                        assert!(within(&admitted, now, MINUTE + 100) + n > limit, "seed {seed}: refused without cause");
                        promise = promise.or(Some((now + seconds * 1000, n)));
                    }
                }
                assert!(within(&admitted, now, MINUTE + 1) <= limit, "seed {seed}: too many");
            }
        }
    }
}
