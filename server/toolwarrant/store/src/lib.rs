//! Storage: tasks with their timelines and ledger, cool-downs of targets, deduplication keys,
//! applications with their keys and grants.
//!
//! The users of a store declare its ports: the engine [`TaskStore`], the registry
//! [`DirectoryStore`]. [`sqlite`] implements them on a disk. `testing::memory` implements them for
//! tests and is never part of a server. Both pass the same suite. [`Integrity`] checks that stored
//! data is consistent. [`Recovery`] makes and uses backups.

mod recovery;
mod rules;
pub mod sqlite;
#[cfg(any(test, feature = "suite"))]
#[doc(hidden)]
#[expect(clippy::unwrap_used, reason = "a test fails by a panic")]
pub mod suite;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use recovery::{Recovery, not_off};
pub use rules::{Figure, Integrity, IntegrityRule, VIOLATIONS_MAX, WriteFigures, check_charges};

use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::{AuditStore, DirectoryStore};
use toolwarrant_tasks::store::TaskStore;

/// A store with all ports.
pub trait Store: TaskStore + DirectoryStore + AuditStore + Integrity + Recovery {}

impl<S: TaskStore + DirectoryStore + AuditStore + Integrity + Recovery> Store for S {}

/// Longest time that a call may take to reach a store without a clock.
const ON_ITS_WAY: Duration = Duration::from_mins(1);

/// The cool-down of a target: the time at which its lock was freed, and the time until which it
/// cools down.
#[derive(Clone, Copy, Debug)]
struct CoolDown {
    since: Timestamp,
    until: Timestamp,
}

impl CoolDown {
    /// Returns the earliest start of a task that comes at `at` while the target cools down. If the
    /// clock went back, the wait is limited to the original cool-down plus one minute, from `now`,
    /// the latest time that the store knows.
    fn start(self, at: Timestamp, now: Timestamp) -> Timestamp {
        let Self { since, until } = self;
        until.clamp(at, now.max(at).plus(until.since(since)).plus(ON_ITS_WAY))
    }
}
