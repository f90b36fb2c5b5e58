//! The request budget: the number of requests that one application may make in any 60 seconds.
//!
//! The window slides. It is exact to a tenth of a second, and errs on the strict side. Replicas
//! that share a budget hold allowances of it: `shared_log` decides about them, and `share` is the
//! part of this replica. This module knows neither requests nor applications. Start at
//! [`Window::admit`].

mod charge;
mod share;
mod shared_log;

pub use charge::{HeadCharge, RetryAfter, Shortage};
pub(crate) use share::WorkerStep;
pub use shared_log::CLOCK_ERROR;
pub(crate) use shared_log::SharedLog;

use share::Share;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::ignore_poison;

/// Length of a tick, in milliseconds. Requests within one tick share a log entry.
const TICK_MILLIS: u64 = 100;

/// Ticks for which an entry counts, including its own: 60 seconds and one tick, because a request
/// at the end of its tick must also count for 60 seconds. So a request counts for more than 60.0
/// and at most 60.1 seconds.
const WINDOW_TICKS: u64 = 601;

/// The sliding window of one application. It logs at most one entry a tick, however large the limit
/// is.
#[derive(Debug)]
pub struct Window {
    limit: AtomicU32,
    log: Mutex<Log>,
    /// The state if several replicas share the budget. The log above is then empty.
    share: Mutex<Share>,
    refusals: Mutex<Refusals>,
}

/// Refusals that are not logged yet.
#[derive(Debug, Default)]
struct Refusals {
    /// The second of the latest log line.
    second: Option<u64>,
    /// Refusals since then.
    unlogged: u64,
}

impl Window {
    /// Makes a window that admits `limit` requests in any 60 seconds, even all at once.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self {
            limit: AtomicU32::new(limit),
            log: Mutex::default(),
            share: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    /// Counts a refusal and returns the number of refusals to log now. There is at most one log
    /// line a second, and it covers all refusals since the last.
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

    /// Returns the limit of requests in any 60 seconds.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// Sets the limit. Requests that were admitted before still count.
    pub fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Relaxed);
    }

    /// Returns the number of requests that count at `now`.
    #[must_use]
    pub fn usage(&self, now: Timestamp) -> u32 {
        let mut log = ignore_poison(self.log.lock());
        log.advance(now.0 / TICK_MILLIS);
        log.total
    }

    /// Admits all `n` requests that arrive at `now`, or none. A refusal costs nothing.
    ///
    /// If the body has not arrived yet, the caller admits the head alone. When the body is there,
    /// it calls again: `head` is the charge of the first call, and `n` is the number of messages in
    /// the body. If these do not fit, the charge is given back.
    ///
    /// # Errors
    /// [`RetryAfter`] if they do not fit. If `n` exceeds the limit, no delay helps; the answer is
    /// then a minute.
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

    /// Admits all `n` requests out of the allowance that this replica holds, or none. `head` is one
    /// of them that was admitted before; if the budget is spent, it is given back.
    pub(crate) fn spend(&self, head: Option<HeadCharge>, now: Timestamp, n: u32) -> Result<HeadCharge, Shortage> {
        let limit = self.limit();
        let mut share = self.share();
        let spent = match (head, n.saturating_sub(u32::from(head.is_some()))) {
            (Some(head), 0) => Ok(head),
            _ if n > limit => Err(Shortage::Spent(RetryAfter { seconds: 60 })),
            (_, further) => share.spend(now, further),
        };
        if let (Some(head), Err(Shortage::Spent(_))) = (head, &spent) {
            share.give_back(head);
        }
        spent
    }

    /// Takes back a request that was admitted out of the allowance.
    pub(crate) fn give_back(&self, head: HeadCharge) {
        self.share().give_back(head);
    }

    /// Returns the state that replicas share.
    pub(crate) fn share(&self) -> MutexGuard<'_, Share> {
        ignore_poison(self.share.lock())
    }
}

/// Admitted requests that still count, by tick, in ascending order.
#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<(u64, u32)>,
    total: u32,
}

impl Log {
    /// Drops entries that no longer count at `tick`. Returns the tick to use: if time went back,
    /// the latest one.
    fn advance(&mut self, tick: u64) -> u64 {
        let tick = self.entries.back().map_or(tick, |(last, _)| tick.max(*last));
        while let Some((_, count)) = self.entries.pop_front_if(|(first, _)| tick - *first >= WINDOW_TICKS) {
            self.total -= count;
        }
        tick
    }

    /// Returns the ticks after `tick` until at least `wanted` of the logged requests no longer
    /// count.
    fn ticks_until_free(&self, tick: u64, wanted: u32) -> u64 {
        let mut freed = 0;
        let last = self.entries.iter().find(|(_, count)| {
            freed += count;
            freed >= wanted
        });
        last.map_or(WINDOW_TICKS, |(at, _)| WINDOW_TICKS - (tick - at))
    }

    /// Takes back requests that were logged in `tick`.
    fn give_back(&mut self, tick: u64, n: u32) {
        if let Some((_, count)) = self.entries.iter_mut().rev().find(|(at, _)| *at == tick) {
            let n = n.min(*count);
            *count -= n;
            self.total -= n;
        }
    }

    fn add(&mut self, tick: u64, n: u32) {
        if n == 0 {
            return;
        }
        self.total += n;
        match self.entries.back_mut() {
            Some((last, count)) if *last == tick => *count += n,
            _ => self.entries.push_back((tick, n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Compares with a model that stores every exact timestamp. There are never more requests than
    /// the limit in any 60 seconds, ends included. Requests are always admitted if the last 60.1
    /// seconds have room. The promised delay is enough.
    #[test]
    fn random_traffic_never_exceeds_the_limit_and_is_never_refused_without_cause() {
        for seed in 1..=200 {
            let mut random = Xorshift(seed);
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

    struct Xorshift(u64);

    impl Xorshift {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
    }
}
