//! The ports of a store: tasks with their timelines and ledger, cool-downs of targets,
//! deduplication keys, applications with their keys and grants.
//!
//! The users of a store declare most of them: the engine [`TaskStore`], the registry
//! [`DirectoryStore`]. [`Integrity`] checks that stored data is consistent. [`Recovery`] makes and
//! uses backups. A crate for each store implements all of them: SQLite, PostgreSQL, and memory for
//! tests. All pass the same suite.

mod recovery;
mod rules;

pub use recovery::{Recovery, not_off};
pub use rules::{Figure, Integrity, IntegrityRule, VIOLATIONS_MAX, WriteFigures, check_charges};

use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::files::FileStore;
use toolwarrant_core::store::{AuditStore, DirectoryStore};
use toolwarrant_tasks::store::TaskStore;

/// A store with all ports.
pub trait Store: TaskStore + DirectoryStore + AuditStore + FileStore + Integrity + Recovery {}

impl<S: TaskStore + DirectoryStore + AuditStore + FileStore + Integrity + Recovery> Store for S {}

/// Longest time that a call may take to reach a store without a clock.
const ON_ITS_WAY: Duration = Duration::from_mins(1);

/// The cool-down of a target after its lock was freed.
#[derive(Clone, Copy, Debug)]
pub struct CoolDown {
    /// The time at which the lock was freed.
    pub since: Timestamp,
    /// The time until which the target cools down.
    pub until: Timestamp,
}

impl CoolDown {
    /// Returns the earliest start of a task that comes at `at` while the target cools down. If the
    /// clock went back, the wait is limited to the original cool-down plus one minute, from `now`,
    /// the latest time that the store knows.
    #[must_use]
    pub fn start(self, at: Timestamp, now: Timestamp) -> Timestamp {
        let Self { since, until } = self;
        until.clamp(at, now.max(at).plus(until.since(since)).plus(ON_ITS_WAY))
    }
}
