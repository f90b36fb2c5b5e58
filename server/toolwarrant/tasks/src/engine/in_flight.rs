//! An index of the writes in flight, a few bytes each. It saves the store most look-ups for
//! duplicates, and counts the tasks. A write whose hash is in the index may still have no
//! duplicate, because two identities can have the same hash.

use crate::store::Identity;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use toolwarrant_base::ignore_poison;

#[derive(Debug, Default)]
pub(super) struct InFlightIndex {
    hasher: RandomState,
    taken: Mutex<KnownWrites>,
}

#[derive(Debug, Default)]
struct KnownWrites {
    tasks: usize,
    times: HashMap<WriteHash, u32>,
}

/// A hash of an application and its idempotency key or, without a key, the fingerprint of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WriteHash(u64);

impl InFlightIndex {
    pub(super) fn of(&self, identity: &Identity) -> WriteHash {
        let Identity { application, key, fingerprint, resource: _, target: _ } = identity;
        WriteHash(self.hasher.hash_one((application, key.as_ref().ok_or(fingerprint))))
    }

    pub(super) fn is_free(&self, hash: WriteHash) -> bool {
        !self.lock().times.contains_key(&hash)
    }

    pub(super) fn tasks(&self) -> usize {
        self.lock().tasks
    }

    pub(super) fn reserve(self: &Arc<Self>, hash: WriteHash, max_in_flight: usize) -> Option<Reservation> {
        let mut taken = self.lock();
        (taken.tasks < max_in_flight).then(|| {
            taken.add(hash);
            Reservation { index: Some(Arc::clone(self)), hash }
        })
    }

    pub(super) fn add(&self, hash: WriteHash) {
        self.lock().add(hash);
    }

    pub(super) fn release(&self, hash: WriteHash) {
        let mut taken = self.lock();
        taken.tasks = taken.tasks.saturating_sub(1);
        if let Some(times) = taken.times.get_mut(&hash) {
            *times -= 1;
            if *times == 0 {
                taken.times.remove(&hash);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownWrites> {
        ignore_poison(self.taken.lock())
    }
}

impl KnownWrites {
    fn add(&mut self, hash: WriteHash) {
        self.tasks += 1;
        *self.times.entry(hash).or_default() += 1;
    }
}

/// Dropping it frees the place, unless the task was stored.
pub(super) struct Reservation {
    index: Option<Arc<InFlightIndex>>,
    hash: WriteHash,
}

impl Reservation {
    pub(super) fn keep(mut self) {
        self.index = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(index) = &self.index {
            index.release(self.hash);
        }
    }
}
