//! When each waiting task is due: one ordered index, a few dozen bytes a task.

use super::in_flight::WriteHash;
use crate::task::TaskId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::unpoisoned;

/// Wait after a failure of ours until the task is driven again.
pub(super) const RETRY: Duration = Duration::from_secs(3);

/// Waiting tasks by due time. A task that is being driven is not in the list.
#[derive(Debug, Default)]
pub(super) struct DueList {
    waiting: Mutex<BTreeMap<(Timestamp, TaskId), Wake>>,
    /// Notified when a task is added before all others.
    earlier: Notify,
}

/// What the engine knows of a waiting task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wake {
    /// Its entry in the index of tasks in flight.
    pub(super) hash: WriteHash,
    /// How far it has come.
    pub(super) state: State,
}

/// How far a task has come.
#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// This process left it at this version.
    Left(u32),
    /// Only the store knows.
    Unknown,
}

impl DueList {
    /// Adds a task that is due at `at`.
    pub(super) fn add(&self, id: TaskId, at: Timestamp, wake: Wake) {
        let mut waiting = self.lock();
        let earliest = waiting.first_key_value().is_none_or(|((first, _), _)| at < *first);
        waiting.insert((at, id), wake);
        drop(waiting);
        if earliest {
            self.earlier.notify_one();
        }
    }

    /// Takes the first task that is due.
    pub(super) fn take(&self, now: Timestamp) -> Option<(TaskId, Wake)> {
        let mut waiting = self.lock();
        let first = waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, id), wake) = first.remove_entry();
        Some((id, wake))
    }

    /// Returns when the first task is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.lock().first_key_value().map(|((at, _), _)| *at)
    }

    /// Waits until a task is added that is due before all others.
    pub(super) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Timestamp, TaskId), Wake>> {
        unpoisoned(self.waiting.lock())
    }
}
