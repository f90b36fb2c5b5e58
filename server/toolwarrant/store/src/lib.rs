//! The ports of a store: tasks with timelines and ledger, cool-downs, deduplication keys,
//! applications and keys.
//!
//! Their users declare most of them. Each store is a crate: SQLite, PostgreSQL, and memory for
//! tests. All pass the same suite. Start at [`Store`].

mod recovery;
mod rules;

pub use recovery::{Recovery, not_off};
pub use rules::{Figure, Integrity, IntegrityRule, VIOLATIONS_MAX, WriteFigures, check_charges};

use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::files::FileStore;
use toolwarrant_core::store::{AuditStore, DirectoryStore};
use toolwarrant_tasks::store::TaskStore;

pub trait Store: TaskStore + DirectoryStore + AuditStore + FileStore + Integrity + Recovery {}

impl<S: TaskStore + DirectoryStore + AuditStore + FileStore + Integrity + Recovery> Store for S {}

/// Longest time that a call may take to reach a store without a clock.
const ON_ITS_WAY: Duration = Duration::from_mins(1);

/// The cool-down of a target after its lock was freed.
#[derive(Clone, Copy, Debug)]
pub struct CoolDown {
    pub since: Timestamp,
    pub until: Timestamp,
}

impl CoolDown {
    /// Returns the earliest start of a task at `at`. If the clock went back, the wait is at most
    /// the original cool-down and a minute from `now`, the latest time that the store knows.
    #[must_use]
    pub fn start(self, at: Timestamp, now: Timestamp) -> Timestamp {
        let Self { since, until } = self;
        until.clamp(at, now.max(at).plus(until.since(since)).plus(ON_ITS_WAY))
    }
}
