//! What outlives a process: tasks with their ledger, until when targets settle, applications with their keys and grants.
//!
//! The ports that are kept here are declared by those who ask: [`TaskStore`] by the engine, [`DirectoryStore`] by the registry.
//! [`memory`] keeps everything for a test, [`sqlite`] on a disk. Both pass the same suite.

pub mod memory;
mod rules;
pub mod sqlite;

pub use rules::{Integrity, Rule, VIOLATIONS_MAX};

use std::time::Duration;
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::store::DirectoryStore;
use toolwarrant_tasks::store::{NewTask, TaskStore};

/// A store of everything.
pub trait Store: TaskStore + DirectoryStore + Integrity {}

impl<S: TaskStore + DirectoryStore + Integrity> Store for S {}

/// How long a call is on its way to its store at most.
const ON_ITS_WAY: Duration = Duration::from_mins(1);

/// When a target was released, and until when it settles.
#[derive(Clone, Copy, Debug)]
struct Settling {
    since: Timestamp,
    until: Timestamp,
}

impl Settling {
    /// When a task can start on a target that settles. After a clock was set back, it waits no longer than it had to at first, and as
    /// long as a call may have been on its way here: it may be from before the release.
    fn start(self, task: &NewTask) -> Timestamp {
        let Self { since, until } = self;
        until.clamp(task.at, task.at.plus(until.since(since)).plus(ON_ITS_WAY))
    }
}

#[cfg(test)]
mod tests;
