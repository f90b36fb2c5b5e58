//! Locks that outlive a panic. What they guard is changed so that a panic in between leaves it consistent.

use std::sync::{LockResult, PoisonError};

/// Returns the guard also if a thread has panicked while it held the lock.
pub fn unpoisoned<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}
