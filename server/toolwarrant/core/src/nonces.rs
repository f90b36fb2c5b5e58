//! The nonces of signed requests, so that a repeated request is refused.
//!
//! All nonces that can still be repeated are in memory, so a check needs no disk. Nonces of
//! requests that may have changed something are also on the disk before the answer, and are loaded
//! at a start. Nonces of reads are stored only if the request was signed ahead of the server's
//! clock: after a start, all reads that were signed before it are refused. This module knows no
//! signatures. Start at [`Nonces::take`].

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_signing::SKEW_SECONDS;

/// Time for which a nonce is stored: longer than a signature can be valid, from the earliest time
/// of signing to the latest.
pub const NONCE_KEPT: Duration = Duration::from_secs(2 * SKEW_SECONDS + 60);

/// Number of parts, each with its own lock, so that requests seldom wait for each other.
const SHARDS: usize = 16;

/// Most nonces in memory in one part. This limits them to 200 MB in total; further requests are
/// refused.
const SHARD_MAX: usize = 256 * 1024;

/// Most expired nonces that are dropped when a new one comes, so that after a busy minute no
/// request waits until all are dropped. If a nonce seems to be used, all expired ones are dropped.
const DROPPED_AT_ONCE: usize = 16;

/// The nonces that were used.
#[derive(Debug)]
pub struct Nonces {
    clock: Clock,
    /// The wall clock at the start.
    started: Timestamp,
    /// Requests that were signed until then are refused.
    floor: Option<Timestamp>,
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    /// Keyed hashes of entries.
    used: HashSet<u64, BuildHasherDefault<Hashed>>,
    /// The same hashes, in the order of use.
    order: VecDeque<Used>,
}

/// A hasher that returns hashes unchanged.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[derive(Debug)]
struct Used {
    hash: u64,
    /// The time of use, by the clock of the process.
    at: Timestamp,
    /// The end of its signature's validity, by the wall clock.
    valid_until: Timestamp,
}

/// A nonce that a verified request has used.
#[derive(Debug)]
pub struct UsedNonce {
    /// The key and its nonce, in the form that storage keeps.
    pub entry: Box<[u8]>,
    /// The time until which storage must keep it.
    pub until: Timestamp,
    /// True if the request was signed ahead of the wall clock. Its time of signing could be after
    /// the next start.
    ahead: bool,
    stored: AtomicBool,
}

impl UsedNonce {
    /// Returns true if it must still be stored on the disk before the answer.
    #[must_use]
    pub fn is_due(&self, reads: bool) -> bool {
        (!reads || self.ahead) && !self.stored.load(Relaxed)
    }

    /// Records that it is on the disk.
    pub fn set_stored(&self) {
        self.stored.store(true, Relaxed);
    }
}

/// The reason why a time of signing is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTime {
    /// It is this many seconds behind the wall clock.
    Behind(u64),
    /// It is this many seconds ahead of the wall clock.
    Ahead(u64),
    /// A read was signed before the start, or any request before the data was restored.
    BeforeStart,
}

/// The reason why a nonce is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadNonce {
    /// It was used.
    Used,
    /// There are too many nonces.
    Full,
}

impl Nonces {
    /// Starts with the entries from storage.
    #[must_use]
    pub fn with_entries(clock: Clock, kept: impl IntoIterator<Item = Box<[u8]>>) -> Self {
        let started = clock.wall();
        let nonces = Self { clock, started, floor: None, hasher: RandomState::new(), shards: Default::default() };
        let latest = started.plus(Duration::from_secs(SKEW_SECONDS));
        let now = (nonces.clock.now(), started);
        for entry in kept {
            // A failure here would mean that the last process accepted too many nonces.
            let _ = nonces.insert(&entry, latest, now);
        }
        nonces
    }

    /// Refuses all requests that were signed until then, reads and others. The data was restored
    /// from a backup, so earlier nonces are unknown.
    #[must_use]
    pub fn since(self, restored_at: Option<Timestamp>) -> Self {
        Self { floor: restored_at, ..self }
    }

    /// Checks the time of signing, in Unix seconds, against the wall clock.
    ///
    /// # Errors
    /// [`BadTime`].
    pub fn judge(&self, timestamp: u64, reads: bool) -> Result<(), BadTime> {
        let now = self.clock.wall().0 / 1000;
        match (now.saturating_sub(timestamp), timestamp.saturating_sub(now)) {
            (behind, _) if behind > SKEW_SECONDS => Err(BadTime::Behind(behind)),
            (_, ahead) if ahead > SKEW_SECONDS => Err(BadTime::Ahead(ahead)),
            _ if reads && timestamp <= self.started.0 / 1000 => Err(BadTime::BeforeStart),
            _ if self.floor.is_some_and(|floor| timestamp <= floor.0 / 1000) => Err(BadTime::BeforeStart),
            _ => Ok(()),
        }
    }

    /// Uses a nonce of a key. If equal ones come at once, only one passes. `timestamp` is the time
    /// of signing.
    ///
    /// # Errors
    /// [`BadNonce`].
    pub fn take(&self, key_id: &str, nonce: &str, timestamp: u64) -> Result<UsedNonce, BadNonce> {
        let entry: Box<[u8]> = [key_id, nonce].join("\n").into_bytes().into();
        let signed = Timestamp(timestamp.saturating_mul(1000));
        let (now, wall) = (self.clock.now(), self.clock.wall());
        self.insert(&entry, signed.plus(Duration::from_secs(SKEW_SECONDS + 1)), (now, wall))?;
        let until = now.max(signed).plus(NONCE_KEPT);
        Ok(UsedNonce { entry, until, ahead: timestamp > wall.0 / 1000, stored: AtomicBool::new(false) })
    }

    /// Inserts an entry. `now` is the time by the clock of the process and by the wall clock.
    fn insert(&self, entry: &[u8], valid_until: Timestamp, now: (Timestamp, Timestamp)) -> Result<(), BadNonce> {
        let hash = self.hasher.hash_one(entry);
        // Any bits can choose a part, except those at either end, which the hash set uses.
        let Some(shard) = self.shards.get((hash >> 40) as usize % SHARDS) else { return Err(BadNonce::Full) };
        let mut shard = ignore_poison(shard.lock());
        shard.drop_over(now, DROPPED_AT_ONCE);
        if shard.used.contains(&hash) {
            // It may be expired, behind others that are not dropped yet.
            shard.drop_over(now, usize::MAX);
        }
        if shard.used.contains(&hash) {
            return Err(BadNonce::Used);
        }
        if shard.order.len() == SHARD_MAX {
            return Err(BadNonce::Full);
        }
        shard.used.insert(hash);
        shard.order.push_back(Used { hash, at: now.0, valid_until });
        Ok(())
    }
}

impl Shard {
    /// Drops expired nonces, at most this many.
    fn drop_over(&mut self, (now, wall): (Timestamp, Timestamp), most: usize) {
        let over = |used: &mut Used| used.at.plus(NONCE_KEPT) < now && used.valid_until < wall;
        for Used { hash, .. } in std::iter::from_fn(|| self.order.pop_front_if(over)).take(most) {
            self.used.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_800_000_000_000);
    const SECOND: u64 = START.0 / 1000;

    fn nonces() -> (Nonces, Clock) {
        let clock = Clock::manual(START);
        (Nonces::with_entries(clock.clone(), []), clock)
    }

    #[test]
    fn a_time_may_differ_by_300_seconds_and_that_of_a_read_is_after_the_start() {
        let (nonces, clock) = nonces();
        for (timestamp, expected) in [
            (SECOND - 300, Ok(())),
            (SECOND - 301, Err(BadTime::Behind(301))),
            (SECOND + 300, Ok(())),
            (SECOND + 301, Err(BadTime::Ahead(301))),
            (0, Err(BadTime::Behind(SECOND))),
        ] {
            assert_eq!(nonces.judge(timestamp, false), expected, "{timestamp}");
        }
        assert_eq!(nonces.judge(SECOND, true), Err(BadTime::BeforeStart));
        assert_eq!(nonces.judge(SECOND + 1, true), Ok(()));
        // The machine was suspended for an hour; only the wall clock counts.
        clock.shift_wall(3_600_000);
        assert_eq!(nonces.judge(SECOND, false), Err(BadTime::Behind(3600)));
        assert_eq!(nonces.judge(SECOND + 3600, true), Ok(()));
    }

    #[test]
    fn nothing_is_taken_that_was_signed_before_the_data_was_restored() {
        let (nonces, _) = nonces();
        let nonces = nonces.since(Some(Timestamp(START.0 - 60_000)));
        for (timestamp, expected) in [(SECOND - 60, Err(BadTime::BeforeStart)), (SECOND - 59, Ok(()))] {
            assert_eq!(nonces.judge(timestamp, false), expected);
        }
    }

    #[test]
    fn a_nonce_is_used_once_for_each_key_for_as_long_as_its_signature_is_valid_by_either_clock() {
        let (nonces, clock) = nonces();
        let take = |key, timestamp| nonces.take(key, "n", timestamp).map(|used| used.until);
        assert_eq!(take("key_1", SECOND), Ok(START.plus(NONCE_KEPT)));
        assert_eq!(take("key_1", SECOND + 9), Err(BadNonce::Used));
        assert_eq!(take("key_2", SECOND + 300), Ok(START.plus(NONCE_KEPT + Duration::from_secs(300))));
        clock.advance(NONCE_KEPT);
        assert_eq!(take("key_1", SECOND), Err(BadNonce::Used));
        // The wall clock was set back meanwhile, so that the signature is valid again.
        clock.shift_wall(-600_000);
        clock.advance(Duration::from_secs(1));
        assert_eq!(take("key_1", SECOND), Err(BadNonce::Used));
        clock.shift_wall(600_000);
        assert!(take("key_1", SECOND + 700).is_ok());
    }

    #[test]
    fn many_nonces_that_are_over_are_dropped_a_few_at_a_time_and_refuse_nobody() {
        let (nonces, clock) = nonces();
        let take = |n: u64, timestamp| nonces.take("key", &n.to_string(), timestamp).map(drop);
        (0..2_000).for_each(|n| take(n, SECOND).unwrap());
        clock.advance(2 * NONCE_KEPT);
        let later = clock.wall().0 / 1000;
        take(2_000, later).unwrap();
        let kept = || nonces.shards.iter().map(|shard| shard.lock().expect("not poisoned").order.len()).sum::<usize>();
        assert_eq!(kept(), 2_001 - DROPPED_AT_ONCE);
        (0..2_000).rev().for_each(|n| take(n, later).unwrap());
        assert_eq!(kept(), 2_001);
        assert_eq!(take(7, later), Err(BadNonce::Used));
    }

    #[test]
    fn the_nonce_of_a_read_is_stored_only_if_it_was_signed_ahead_of_the_clock() {
        let (nonces, _) = nonces();
        for (nonce, timestamp, reads, expected) in
            [("a", SECOND, true, false), ("b", SECOND + 1, true, true), ("c", SECOND, false, true)]
        {
            let used = nonces.take("key", nonce, timestamp).unwrap();
            assert_eq!(used.is_due(reads), expected, "{nonce}");
            used.set_stored();
            assert!(!used.is_due(reads), "{nonce}");
        }
    }

    #[test]
    fn what_was_kept_is_used_after_a_start() {
        let (before, clock) = nonces();
        let kept = before.take("key_1", "n", SECOND).unwrap().entry;
        let after = Nonces::with_entries(clock, [kept]);
        assert_eq!(after.take("key_1", "n", SECOND).unwrap_err(), BadNonce::Used);
        assert!(after.take("key_1", "m", SECOND).is_ok());
    }
}
