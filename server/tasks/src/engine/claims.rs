//! What tasks in flight have claimed, in a few bytes each; and with that, how many tasks there are.
//!
//! What is free here need not be looked for in the store. What seems to be claimed must: two can look the same.

use crate::store::Identity;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The claims of all tasks in flight.
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

/// Stands for an application and the key that it gave, or the fingerprint of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim(u64);

impl Claims {
    pub(super) fn of(&self, identity: &Identity) -> Claim {
        let Identity { application, key, fingerprint, resource: _, target: _ } = identity;
        Claim(self.hasher.hash_one((application, key.as_ref().ok_or(fingerprint))))
    }

    /// Whether surely no task has it.
    pub(super) fn is_free(&self, claim: Claim) -> bool {
        !self.lock().times.contains_key(&claim)
    }

    /// How many tasks are in flight.
    pub(super) fn tasks(&self) -> usize {
        self.lock().tasks
    }

    /// A place for a task that is to be, if there is room.
    pub(super) fn reserve(self: &Arc<Self>, claim: Claim, room: usize) -> Option<Place> {
        let mut taken = self.lock();
        (taken.tasks < room).then(|| {
            taken.add(claim);
            Place { claims: Some(Arc::clone(self)), claim }
        })
    }

    /// Adds a task that is there.
    pub(super) fn add(&self, claim: Claim) {
        self.lock().add(claim);
    }

    /// Takes out a task that has ended.
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

/// A place among the tasks in flight. It is given back unless it is kept.
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
