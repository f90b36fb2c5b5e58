//! The nonces of a key in memory, and a nonce that a request has used.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_signing::SKEW_SECONDS;

/// Longer than a signature can be valid.
pub const NONCE_KEPT: Duration = Duration::from_secs(2 * SKEW_SECONDS + 60);

#[derive(Debug, Default)]
pub struct KeyNonces(pub(crate) Mutex<UsedKeyNonces>);

#[derive(Debug, Default)]
pub(crate) struct UsedKeyNonces {
    /// Hashes. A key that makes equal ones harms only itself, so they need no secret.
    pub(crate) used: HashSet<u64, BuildHasherDefault<Hashed>>,
    /// In the order of use.
    pub(crate) order: VecDeque<Used>,
    /// The latest time of signing among dropped nonces. A read that was signed until then may have
    /// been answered.
    pub(crate) dropped: Timestamp,
}

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
    /// By the clock of the process.
    at: Timestamp,
    pub(crate) signed: Timestamp,
}

#[derive(Debug)]
pub struct UsedNonce {
    /// As storage keeps it; empty if not stored before the answer. Those of reads begin with the
    /// complement of the time of signing, so that the latest is the first.
    pub entry: Box<[u8]>,
    pub reads: bool,
    pub until: Timestamp,
    pub(crate) stored: AtomicBool,
}

impl UsedNonce {
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.entry.is_empty() && !self.stored.load(Relaxed)
    }

    pub fn set_stored(&self) {
        self.stored.store(true, Relaxed);
    }
}

impl UsedKeyNonces {
    pub(crate) fn insert(&mut self, hash: u64, signed: Timestamp, at: Timestamp, most: usize) {
        // The budget admits more only if the wall clock is far from that of the process.
        while self.order.len() >= most.max(1) {
            self.drop_first(|_| true);
        }
        if self.used.insert(hash) {
            self.order.push_back(Used { hash, at, signed });
        }
    }

    pub(crate) fn drop_over(&mut self, (now, wall): (Timestamp, Timestamp), most: usize) {
        let valid = Duration::from_secs(SKEW_SECONDS + 1);
        let over = |used: &mut Used| used.at.plus(NONCE_KEPT) < now && used.signed.plus(valid) < wall.min(now);
        for _ in 0..most {
            if !self.drop_first(over) {
                break;
            }
        }
    }

    fn drop_first(&mut self, over: impl FnOnce(&mut Used) -> bool) -> bool {
        let Some(Used { hash, at: _, signed }) = self.order.pop_front_if(over) else { return false };
        self.used.remove(&hash);
        self.dropped = self.dropped.max(signed);
        true
    }
}
