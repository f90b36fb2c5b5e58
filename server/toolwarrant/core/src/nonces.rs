//! The nonces of signed requests, so that a repeated request is refused.
//!
//! Each key has its own nonces, which end with it. A nonce is used only if the budget admits its
//! request. So the budget bounds them, and a refused request leaves nothing behind. Nonces of this
//! run are in memory. A nonce is also on the disk before its request has an effect or an answer,
//! and storage refuses it twice. A read needs this only if another run may see its time of signing
//! as the present. All other reads are older than the next start, so that they must be signed again
//! after it. Start at [`Nonces::take`].

use crate::access::{Access, NONCE_KEPT, Principal, UsedNonce};
use crate::limit::RetryAfter;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use toolwarrant_base::clock::{Clock, LEAP, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_signing::SKEW_SECONDS;

/// A start trusts a clock that is up to a [`LEAP`] ahead. When it is put right, old signatures are
/// valid again.
const STORED_LONGER: Duration = LEAP;

/// Time that may be missing in the last record of the clock: twice the interval.
const UNRECORDED: Duration = Duration::from_mins(2);

/// Between machines with one store: each clock may be a second off. A time server also corrects a
/// clock by so much between two runs.
const MACHINES_APART: Duration = Duration::from_secs(2);

/// With a larger lead of the wall clock, the nonces of reads are stored before the answer. Time
/// servers correct by less.
const AHEAD: Duration = Duration::from_secs(30);

/// Minutes that [`NONCE_KEPT`] touches. The nonces of a key take at most their budgets.
const MINUTES: usize = 12;

/// Most nonces of one key in memory: 200 MB, whatever the budget is.
const KEY_MAX: usize = 4 * 1024 * 1024;

/// Expired nonces that a new one drops at most, so that after a busy minute no request waits for
/// all.
const DROPPED_AT_ONCE: usize = 16;

#[derive(Debug)]
pub struct Nonces {
    clock: Clock,
    /// The latest wall time that an earlier run can have seen.
    started: Timestamp,
    /// Earlier runs have stored nonces of reads that were signed until then, in Unix seconds.
    stored: u64,
    /// Requests that were signed until then are refused.
    floor: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTime {
    /// Seconds by the wall clock.
    Behind(u64),
    /// Seconds.
    Ahead(u64),
    BeforeRestore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadNonce {
    Used,
    /// It is not known if this nonce of a read was used. One signed this many seconds later can be
    /// taken.
    Unknown(u64),
    /// The nonce can still be used.
    Unpaid(RetryAfter),
}

impl Nonces {
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let (now, wall) = (clock.now(), clock.wall());
        // The wall clock was set back since the last run if it is behind the clock of the process.
        let started = if now > wall.plus(MACHINES_APART) { now.plus(UNRECORDED) } else { now.max(wall) };
        Self { clock, started, stored: 0, floor: None }
    }

    /// Refuses requests that were signed until a restore: the nonces before it are unknown.
    #[must_use]
    pub fn since(self, restored_at: Option<Timestamp>) -> Self {
        Self { floor: restored_at, ..self }
    }

    /// Takes the clock of the earlier run for that of another machine.
    #[must_use]
    pub fn after_another_machine(self) -> Self {
        Self { started: self.started.plus(MACHINES_APART), ..self }
    }

    /// Continues after earlier runs with these keys. `first` is the first of the stored nonces of
    /// reads, in their order.
    #[must_use]
    pub fn after_runs(self, access: &Access, first: Option<&[u8]>) -> Self {
        for nonces in access.all_nonces() {
            ignore_poison(nonces.0.lock()).dropped = self.started;
        }
        let latest = first.and_then(|entry| entry.first_chunk());
        Self { stored: latest.map_or(0, |latest| !u64::from_be_bytes(*latest)), ..self }
    }

    /// Checks the time of signing, in Unix seconds, against the wall clock.
    pub fn judge(&self, timestamp: u64) -> Result<(), BadTime> {
        let now = self.clock.wall().0 / 1000;
        match (now.saturating_sub(timestamp), timestamp.saturating_sub(now)) {
            (behind, _) if behind > SKEW_SECONDS => Err(BadTime::Behind(behind)),
            (_, ahead) if ahead > SKEW_SECONDS => Err(BadTime::Ahead(ahead)),
            _ if self.floor.is_some_and(|floor| timestamp <= floor.0 / 1000) => Err(BadTime::BeforeRestore),
            _ => Ok(()),
        }
    }

    /// Uses a nonce and charges the request, or does neither. Of equal nonces at once, only one
    /// passes.
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
        if reads && timestamp <= memory.dropped.0 / 1000 {
            return Err(BadNonce::Unknown(memory.dropped.seconds_from(signed) + 1));
        }
        window.admit(None, now, 1).map_err(BadNonce::Unpaid)?;
        let most = usize::try_from(window.limit()).unwrap_or(KEY_MAX).saturating_mul(MINUTES).min(KEY_MAX);
        memory.insert(hash, signed, now, most);
        drop(memory);
        let until = now.max(signed).plus(NONCE_KEPT + STORED_LONGER);
        let trusted = wall.min(self.clock.floor().plus(AHEAD)).0 / 1000;
        let entry = match reads {
            true if timestamp <= trusted && timestamp > self.stored => Vec::new(),
            true => [&(!timestamp).to_be_bytes(), key.key_id.as_bytes(), b"\n", nonce.as_bytes()].concat(),
            false => [&*key.key_id, nonce].join("\n").into_bytes(),
        };
        Ok(UsedNonce { entry: entry.into(), reads, until, stored: AtomicBool::new(false) })
    }
}

fn hash(nonce: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(nonce)
}

#[cfg(test)]
mod tests;
