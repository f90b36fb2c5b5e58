//! The nonces of signed requests, so that a repeated request is refused.
//!
//! Each key has its own nonces, and they end with the key. A nonce is used only if the budget of
//! the application admits its request, so the budget bounds them, and a refused request leaves
//! nothing behind. All nonces that can still be repeated are in memory, so a check needs no disk.
//! Nonces of requests that may have changed something are also on the disk before the answer, and
//! are loaded at a start. Nonces of reads are stored only if the request was signed ahead of the
//! server's clock: after a start, all reads that were signed before it are refused. This module
//! knows no signatures. Start at [`Nonces::take`].

use crate::access::{Access, Principal};
use crate::limit::RetryAfter;
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_signing::SKEW_SECONDS;

/// Time for which a nonce is kept: longer than a signature can be valid, from the earliest time of
/// signing to the latest.
pub const NONCE_KEPT: Duration = Duration::from_secs(2 * SKEW_SECONDS + 60);

/// The minutes whose budgets a key's nonces may take at most: those that [`NONCE_KEPT`] touches.
const MINUTES: usize = 12;

/// Most nonces of one key in memory. This limits them to 200 MB, whatever the budget is.
const KEY_MAX: usize = 4 * 1024 * 1024;

/// Most expired nonces that are dropped when a new one comes, so that after a busy minute no
/// request waits until all are dropped. If a nonce seems to be used, all expired ones are dropped.
const DROPPED_AT_ONCE: usize = 16;

/// Decides which signed requests are taken.
#[derive(Debug)]
pub struct Nonces {
    clock: Clock,
    /// The wall clock at the start.
    started: Timestamp,
    /// Requests that were signed until then are refused.
    floor: Option<Timestamp>,
}

/// The nonces that a key has used.
#[derive(Debug, Default)]
pub struct KeyNonces(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// Hashes of nonces. A key that makes equal ones harms only itself, so they need no secret.
    used: HashSet<u64, BuildHasherDefault<Hashed>>,
    /// The same hashes, in the order of use.
    order: VecDeque<Used>,
    /// The latest time of signing among nonces that were dropped. It is not known if a read that
    /// was signed until then was answered before.
    dropped: Timestamp,
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
    /// The time of signing.
    signed: Timestamp,
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
    /// It is the nonce of a read, and it is not known if it was used. One that is signed this many
    /// seconds later can be taken.
    Unknown(u64),
    /// The budget of the application is spent. The nonce can still be used.
    Spent(RetryAfter),
}

impl Nonces {
    /// Starts without restrictions by a restore.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let started = clock.wall();
        Self { clock, started, floor: None }
    }

    /// Refuses all requests that were signed until then, reads and others. The data was restored
    /// from a backup, so earlier nonces are unknown.
    #[must_use]
    pub fn since(self, restored_at: Option<Timestamp>) -> Self {
        Self { floor: restored_at, ..self }
    }

    /// Gives the keys their entries from storage. Those of keys that have ended are dropped.
    pub fn load(&self, access: &Access, entries: impl IntoIterator<Item = Box<[u8]>>) {
        let now = (self.clock.now(), self.started);
        let signed = self.started.plus(Duration::from_secs(SKEW_SECONDS));
        for entry in entries {
            let Some((key_id, nonce)) = std::str::from_utf8(&entry).ok().and_then(|entry| entry.split_once('\n'))
            else {
                continue;
            };
            if let Some(nonces) = access.nonces(key_id) {
                ignore_poison(nonces.0.lock()).insert(hash(nonce), signed, now, KEY_MAX);
            }
        }
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

    /// Uses a nonce of a key and charges the request to the budget of its application, or does
    /// neither. If equal nonces come at once, only one passes. `timestamp` is the time of signing,
    /// and `reads` is true for a request that cannot change anything.
    ///
    /// # Errors
    /// [`BadNonce`].
    pub fn take(&self, key: &Principal, nonce: &str, timestamp: u64, reads: bool) -> Result<UsedNonce, BadNonce> {
        let signed = Timestamp(timestamp.saturating_mul(1000));
        let (now, wall) = (self.clock.now(), self.clock.wall());
        let (hash, window) = (hash(nonce), &key.application.window);
        let mut memory = ignore_poison(key.nonces.0.lock());
        memory.drop_over((now, wall), DROPPED_AT_ONCE);
        if memory.used.contains(&hash) {
            // It may be expired, behind others that are not dropped yet.
            memory.drop_over((now, wall), usize::MAX);
        }
        if memory.used.contains(&hash) {
            return Err(BadNonce::Used);
        }
        if reads && signed <= memory.dropped {
            return Err(BadNonce::Unknown(memory.dropped.seconds_from(signed) + 1));
        }
        window.admit(None, now, 1).map_err(BadNonce::Spent)?;
        let most = usize::try_from(window.limit()).unwrap_or(KEY_MAX).saturating_mul(MINUTES).min(KEY_MAX);
        memory.insert(hash, signed, (now, wall), most);
        drop(memory);
        let entry = [&*key.key_id, nonce].join("\n").into_bytes().into();
        let (until, ahead) = (now.max(signed).plus(NONCE_KEPT), timestamp > wall.0 / 1000);
        Ok(UsedNonce { entry, until, ahead, stored: AtomicBool::new(false) })
    }
}

fn hash(nonce: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(nonce)
}

impl Memory {
    fn insert(&mut self, hash: u64, signed: Timestamp, now: (Timestamp, Timestamp), most: usize) {
        // The budget admits more only if the wall clock is far from that of the process.
        while self.order.len() >= most.max(1) {
            self.drop_first(|_| true);
        }
        if self.used.insert(hash) {
            self.order.push_back(Used { hash, at: now.0, signed });
        }
    }

    /// Drops expired nonces, at most this many.
    fn drop_over(&mut self, (now, wall): (Timestamp, Timestamp), most: usize) {
        let valid = Duration::from_secs(SKEW_SECONDS + 1);
        let over = |used: &mut Used| used.at.plus(NONCE_KEPT) < now && used.signed.plus(valid) < wall;
        for _ in 0..most {
            if !self.drop_first(over) {
                break;
            }
        }
    }

    /// Drops the nonce that was used first, if it is `over`. Returns true if it did.
    fn drop_first(&mut self, over: impl FnOnce(&mut Used) -> bool) -> bool {
        let Some(Used { hash, at: _, signed }) = self.order.pop_front_if(over) else { return false };
        self.used.remove(&hash);
        self.dropped = self.dropped.max(signed);
        true
    }
}

#[cfg(test)]
mod tests;
