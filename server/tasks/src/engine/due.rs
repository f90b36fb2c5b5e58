//! What is due when: one ordered index over all tasks in flight, a few dozen bytes each.

use super::claims::Claim;
use crate::task::TaskId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use toolwarrant_core::clock::Timestamp;

/// Tasks that wait, by the moment at which they are looked at next. A task that is being carried on is not in it.
#[derive(Debug, Default)]
pub(super) struct DueList {
    waiting: Mutex<BTreeMap<(Timestamp, TaskId), Wake>>,
    /// Told when something is due earlier than all the rest.
    earlier: Notify,
}

/// What is known of a task that is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wake {
    /// What it has claimed.
    pub(super) claim: Claim,
    /// How far it came.
    pub(super) state: State,
}

/// How far a task came.
#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// This process left it at that version.
    Left(u32),
    /// Only the store knows.
    Unknown,
}

impl DueList {
    /// Wakes a task then.
    pub(super) fn add(&self, id: TaskId, at: Timestamp, wake: Wake) {
        let mut waiting = self.lock();
        let earliest = waiting.first_key_value().is_none_or(|((first, _), _)| at < *first);
        waiting.insert((at, id), wake);
        drop(waiting);
        if earliest {
            self.earlier.notify_one();
        }
    }

    /// The first task that is due by then.
    pub(super) fn take(&self, now: Timestamp) -> Option<(TaskId, Wake)> {
        let mut waiting = self.lock();
        let first = waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, id), wake) = first.remove_entry();
        Some((id, wake))
    }

    /// When the first task is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.lock().first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns once something has become due earlier than all that was there.
    pub(super) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Timestamp, TaskId), Wake>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
