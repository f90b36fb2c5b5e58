//! The nonces of a key in memory, and a nonce that a request has used.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_signing::SKEW_SECONDS;

/// Time for which a nonce is in memory: longer than a signature can be valid, from the earliest
/// time of signing to the latest.
pub const NONCE_KEPT: Duration = Duration::from_secs(2 * SKEW_SECONDS + 60);

/// The nonces that a key has used.
#[derive(Debug, Default)]
pub struct KeyNonces(pub(crate) Mutex<Memory>);

#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Hashes of nonces. A key that makes equal ones harms only itself, so they need no secret.
    pub(crate) used: HashSet<u64, BuildHasherDefault<Hashed>>,
    /// The same hashes, in the order of use.
    pub(crate) order: VecDeque<Used>,
    /// The latest time of signing among nonces that are not in memory. It is not known if a read
    /// that was signed until then was answered before.
    pub(crate) dropped: Timestamp,
}

/// A hasher that returns hashes unchanged.
#[derive(Debug, Default)]
pub(crate) struct Hashed(u64);

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
pub(crate) struct Used {
    pub(crate) hash: u64,
    /// The time of use, by the clock of the process.
    at: Timestamp,
    /// The time of signing.
    pub(crate) signed: Timestamp,
}

/// A nonce that a verified request has used.
#[derive(Debug)]
pub struct UsedNonce {
    /// The key and its nonce, in the form that storage keeps; empty if it is not stored before the
    /// answer. Storage keeps those of reads apart.
    pub entry: Box<[u8]>,
    /// True if the request cannot change anything.
    pub reads: bool,
    /// The time until which storage must keep it.
    pub until: Timestamp,
    /// True if the request was signed ahead of the server's clocks. Its time of signing could be
    /// after the next start.
    pub(crate) ahead: bool,
    pub(crate) stored: AtomicBool,
}

impl UsedNonce {
    /// Returns true if it must still be stored on the disk before the answer.
    #[must_use]
    pub fn is_due(&self) -> bool {
        (!self.reads || self.ahead) && !self.stored.load(Relaxed)
    }

    /// Records that it is on the disk.
    pub fn set_stored(&self) {
        self.stored.store(true, Relaxed);
    }
}

impl Memory {
    pub(crate) fn insert(&mut self, hash: u64, signed: Timestamp, at: Timestamp, most: usize) {
        // The budget admits more only if the wall clock is far from that of the process.
        while self.order.len() >= most.max(1) {
            self.drop_first(|_| true);
        }
        if self.used.insert(hash) {
            self.order.push_back(Used { hash, at, signed });
        }
    }

    /// Drops expired nonces, at most this many.
    pub(crate) fn drop_over(&mut self, (now, wall): (Timestamp, Timestamp), most: usize) {
        let valid = Duration::from_secs(SKEW_SECONDS + 1);
        let over = |used: &mut Used| used.at.plus(NONCE_KEPT) < now && used.signed.plus(valid) < wall.min(now);
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
