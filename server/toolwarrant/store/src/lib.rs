//! Storage: tasks with their timelines and ledger, cool-downs of targets, marks, applications with their keys and grants.
//!
//! The users of a store declare its ports: the engine [`TaskStore`], the registry [`DirectoryStore`]. [`sqlite`] implements them
//! on a disk, `testing::memory` for tests, which no server has. Both pass the same suite. [`Integrity`] checks that stored data is consistent, [`Recovery`] is for
//! backups.

mod recovery;
mod rules;
pub mod sqlite;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use recovery::Recovery;
pub use rules::{Figure, Integrity, IntegrityRule, VIOLATIONS_MAX};

use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::{AuditStore, DirectoryStore};
use toolwarrant_tasks::store::{NewTask, TaskStore};

/// A store with all ports.
pub trait Store: TaskStore + DirectoryStore + AuditStore + Integrity + Recovery {}

impl<S: TaskStore + DirectoryStore + AuditStore + Integrity + Recovery> Store for S {}

/// Longest time that a call takes to reach the store.
const ON_ITS_WAY: Duration = Duration::from_mins(1);

/// The cool-down of a target: when its lock was freed, and until when it cools down.
#[derive(Clone, Copy, Debug)]
struct CoolDown {
    since: Timestamp,
    until: Timestamp,
}

impl CoolDown {
    /// Earliest start of a task while the target cools down. If the clock went back, the wait is capped at the original cool-down
    /// plus one minute, the longest time that a call may have been on its way.
    fn start(self, task: &NewTask) -> Timestamp {
        let Self { since, until } = self;
        until.clamp(task.at, task.at.plus(until.since(since)).plus(ON_ITS_WAY))
    }
}

#[cfg(test)]
mod tests;
