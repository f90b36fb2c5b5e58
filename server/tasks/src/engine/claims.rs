//! An index of the writes in flight, a few bytes each. It saves the store most look-ups for duplicates, and counts the tasks.
//!
//! A write that is not in the index has no duplicate in flight. One that is in it may have: two identities can have one hash.

use crate::store::Identity;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The identities of all tasks in flight, by hash.
#[derive(Debug, Default)]
pub(super) struct Claims {
    hasher: RandomState,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    tasks: usize,
    times: HashMap<Claim, u32>,
}

/// A hash of an application and its idempotency key or, without a key, the fingerprint of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim(u64);

impl Claims {
    pub(super) fn of(&self, identity: &Identity) -> Claim {
        let Identity { application, key, fingerprint, resource: _, target: _ } = identity;
        Claim(self.hasher.hash_one((application, key.as_ref().ok_or(fingerprint))))
    }

    /// Returns whether certainly no task in flight has it.
    pub(super) fn is_free(&self, claim: Claim) -> bool {
        !self.lock().times.contains_key(&claim)
    }

    /// Returns the number of tasks in flight.
    pub(super) fn tasks(&self) -> usize {
        self.lock().tasks
    }

    /// Reserves a place for a task to be accepted; `None` if there are `room` already.
    pub(super) fn reserve(self: &Arc<Self>, claim: Claim, room: usize) -> Option<Place> {
        let mut taken = self.lock();
        (taken.tasks < room).then(|| {
            taken.add(claim);
            Place { claims: Some(Arc::clone(self)), claim }
        })
    }

    /// Adds a task that is in the store.
    pub(super) fn add(&self, claim: Claim) {
        self.lock().add(claim);
    }

    /// Removes a task that has ended.
    pub(super) fn release(&self, claim: Claim) {
        let mut taken = self.lock();
        taken.tasks = taken.tasks.saturating_sub(1);
        if let Some(times) = taken.times.get_mut(&claim) {
            *times -= 1;
            if *times == 0 {
                taken.times.remove(&claim);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn add(&mut self, claim: Claim) {
        self.tasks += 1;
        *self.times.entry(claim).or_default() += 1;
    }
}

/// A place among the tasks in flight. Dropping it frees the place unless it was kept.
pub(super) struct Place {
    claims: Option<Arc<Claims>>,
    claim: Claim,
}

impl Place {
    pub(super) fn keep(mut self) {
        self.claims = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(claims) = &self.claims {
            claims.release(self.claim);
        }
    }
}
