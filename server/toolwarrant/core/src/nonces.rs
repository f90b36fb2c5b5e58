//! The nonces of signed requests, so that a repeated request is refused.
//!
//! Each key has its own nonces, and they end with the key. A nonce is used only if the budget of
//! the application admits its request, so the budget bounds them, and a refused request leaves
//! nothing behind. A nonce of this run is found in memory. Nonces of requests that may have changed
//! something are also on the disk before they have an effect, and storage refuses to write one
//! twice, so that no later run repeats them. Nonces of reads are stored at a stop
//! ([`dump_reads`]), and before the answer only if the request was signed ahead of the server's
//! clock. After a start without a stop before it, reads that were signed before it must be signed
//! again. This module knows no signatures. Start at [`Nonces::take`].

use crate::access::{Access, NONCE_KEPT, Principal, UsedNonce};
use crate::limit::RetryAfter;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use toolwarrant_base::clock::{Clock, LEAP, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_signing::SKEW_SECONDS;

/// Further time for which storage keeps a nonce. The server trusts a clock that went ahead by up to
/// a [`LEAP`] at a start. When that clock is put right, old signatures are valid again.
const STORED_LONGER: Duration = LEAP;

/// Time of the last run that may be missing in its record of the clock: twice the interval.
const UNRECORDED: Duration = Duration::from_mins(2);

/// The most by which the clocks of two machines differ that use the same store: each may be a
/// second off.
const MACHINES_APART: Duration = Duration::from_secs(2);

/// If the wall clock leads the clock of the process by more, the nonces of reads are stored before
/// the answer. Corrections by time servers are smaller.
const AHEAD: Duration = Duration::from_mins(1);

/// Pairs of a hash and a time in one row of [`dump_reads`].
const ROW_PAIRS: usize = 256;

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
    /// The latest time by the wall clock that an earlier run can have seen.
    started: Timestamp,
    /// Requests that were signed until then are refused.
    floor: Option<Timestamp>,
}

/// The reason why a time of signing is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTime {
    /// It is this many seconds behind the wall clock.
    Behind(u64),
    /// It is this many seconds ahead of the wall clock.
    Ahead(u64),
    /// The request was signed before the data was restored.
    BeforeRestore,
}

/// The reason why a nonce is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadNonce {
    /// It was used.
    Used,
    /// It is the nonce of a read, and it is not known if it was used. One that is signed this many
    /// seconds later can be taken.
    Unknown(u64),
    /// The budget of the application does not admit the request. The nonce can still be used.
    Unpaid(RetryAfter),
}

impl Nonces {
    /// Starts without restrictions by a restore.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let (now, wall) = (clock.now(), clock.wall());
        // The wall clock was set back since the last run if it is behind the clock of the process.
        let started = if now > wall { now.plus(UNRECORDED) } else { wall };
        Self { clock, started, floor: None }
    }

    /// Refuses all requests that were signed until then, reads and others. The data was restored
    /// from a backup, so earlier nonces are unknown.
    #[must_use]
    pub fn since(self, restored_at: Option<Timestamp>) -> Self {
        Self { floor: restored_at, ..self }
    }

    /// Takes the clock of the earlier run for that of another machine.
    #[must_use]
    pub fn after_another_machine(self) -> Self {
        Self { started: self.started.plus(MACHINES_APART), ..self }
    }

    /// Gives the keys the nonces of their reads from storage. Unless the rows have the
    /// [`dump_reads`] of a stop, it is not known which reads were answered before this start.
    pub fn load_reads(&self, access: &Access, rows: &[Box<[u8]>]) {
        let is_whole = rows.iter().any(|row| **row == *end_of_dump());
        let keys: HashMap<_, _> = access.all_nonces().into_iter().collect();
        for nonces in keys.values().filter(|_| !is_whole) {
            ignore_poison(nonces.0.lock()).dropped = self.started;
        }
        for row in rows {
            let mut parts = row.splitn(2, |byte| *byte == b'\n');
            let key = parts.next().and_then(|key_id| keys.get(str::from_utf8(key_id).ok()?));
            let (Some(nonces), Some(numbers)) = (key, parts.next()) else { continue };
            let mut memory = ignore_poison(nonces.0.lock());
            for [hash, signed] in pairs(numbers) {
                match hash {
                    0 => memory.dropped = memory.dropped.max(Timestamp(signed)),
                    _ => memory.insert(hash, Timestamp(signed), self.clock.now(), KEY_MAX),
                }
            }
        }
    }

    /// Checks the time of signing, in Unix seconds, against the wall clock.
    ///
    /// # Errors
    /// [`BadTime`].
    pub fn judge(&self, timestamp: u64) -> Result<(), BadTime> {
        let now = self.clock.wall().0 / 1000;
        match (now.saturating_sub(timestamp), timestamp.saturating_sub(now)) {
            (behind, _) if behind > SKEW_SECONDS => Err(BadTime::Behind(behind)),
            (_, ahead) if ahead > SKEW_SECONDS => Err(BadTime::Ahead(ahead)),
            _ if self.floor.is_some_and(|floor| timestamp <= floor.0 / 1000) => Err(BadTime::BeforeRestore),
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
        if reads && timestamp <= memory.dropped.0 / 1000 {
            return Err(BadNonce::Unknown(memory.dropped.seconds_from(signed) + 1));
        }
        window.admit(None, now, 1).map_err(BadNonce::Unpaid)?;
        let most = usize::try_from(window.limit()).unwrap_or(KEY_MAX).saturating_mul(MINUTES).min(KEY_MAX);
        memory.insert(hash, signed, now, most);
        drop(memory);
        let until = now.max(signed).plus(NONCE_KEPT + STORED_LONGER);
        // A clock that went far ahead may be put right again before the next start.
        let ahead = timestamp > wall.min(now.plus(AHEAD)).0 / 1000;
        let entry = match (reads, ahead) {
            (false, _) => [&*key.key_id, nonce].join("\n").into_bytes().into(),
            (true, true) => row(&key.key_id, &[[hash, signed.0]]),
            (true, false) => Box::default(),
        };
        Ok(UsedNonce { entry, reads, until, ahead, stored: AtomicBool::new(false) })
    }
}

/// Returns rows with the nonces that keys have used, for a stop. [`Nonces::load_reads`] reads them.
#[must_use]
pub fn dump_reads(access: &Access) -> Vec<Box<[u8]>> {
    let mut rows = vec![end_of_dump()];
    for (key_id, nonces) in access.all_nonces() {
        let memory = ignore_poison(nonces.0.lock());
        let pairs = memory.order.iter().map(|used| [used.hash, used.signed.0]);
        let pairs: Vec<_> = [[0, memory.dropped.0]].into_iter().chain(pairs).collect();
        rows.extend(pairs.chunks(ROW_PAIRS).map(|pairs| row(&key_id, pairs)));
    }
    rows
}

/// Makes a row with pairs of a hash and a time of signing.
fn row(key_id: &str, pairs: &[[u64; 2]]) -> Box<[u8]> {
    let numbers = pairs.as_flattened().iter().flat_map(|number| number.to_be_bytes());
    key_id.bytes().chain([b'\n']).chain(numbers).collect()
}

/// Returns the row that shows that a dump is whole. It also shows that this program hashes nonces
/// as the program of the dump did.
fn end_of_dump() -> Box<[u8]> {
    [b"\n".as_slice(), &hash("").to_be_bytes()].concat().into()
}

/// Reads the pairs of a row behind its key.
fn pairs(row: &[u8]) -> impl Iterator<Item = [u64; 2]> {
    let number = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
    row.as_chunks::<8>().0.as_chunks::<2>().0.iter().map(move |[hash, signed]| [number(hash), number(signed)])
}

fn hash(nonce: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(nonce)
}

#[cfg(test)]
mod tests;
