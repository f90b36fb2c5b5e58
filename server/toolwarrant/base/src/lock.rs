//! Locks that can be used after a panic. Every change of guarded data keeps it consistent if it
//! panics.

use std::sync::{LockResult, PoisonError};

/// Returns the guard even if a thread panicked while it held the lock.
pub fn ignore_poison<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}
