//! The due time of each waiting task: one ordered index, a few dozen bytes per task.

use super::in_flight::WriteHash;
use crate::task::TaskId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::ignore_poison;

pub(super) const RETRY: Duration = Duration::from_secs(3);

/// A task that is being driven is not in the list.
#[derive(Debug, Default)]
pub(super) struct DueList {
    waiting: Mutex<BTreeMap<(Timestamp, TaskId), Wake>>,
    /// Notified when a task is added that is due before all others, and by [`Self::wake`].
    earlier: Notify,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Wake {
    pub(super) hash: WriteHash,
    pub(super) state: Progress,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Progress {
    /// This process last stored the task at this version.
    Left(u32),
    /// Known only to the store: an earlier process of this machine has stored it, or an attempt to
    /// drive it has failed.
    Found,
    /// A process on another machine may have stored it, until this moment.
    TakenOver(Timestamp),
}

impl Progress {
    pub(super) fn after_failure(self, now: Timestamp) -> Self {
        match self {
            Self::Left(_) | Self::Found => Self::Found,
            Self::TakenOver(_) => Self::TakenOver(now),
        }
    }
}

impl DueList {
    pub(super) fn add(&self, id: TaskId, at: Timestamp, wake: Wake) {
        let mut waiting = self.lock();
        let earliest = waiting.first_key_value().is_none_or(|((first, _), _)| at < *first);
        waiting.insert((at, id), wake);
        drop(waiting);
        if earliest {
            self.wake();
        }
    }

    pub(super) fn take(&self, now: Timestamp) -> Option<(TaskId, Wake)> {
        let mut waiting = self.lock();
        let first = waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, id), wake) = first.remove_entry();
        Some((id, wake))
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.lock().first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn count_after(&self, now: Timestamp) -> usize {
        self.lock().keys().filter(|(at, _)| *at > now).count()
    }

    pub(super) fn wake(&self) {
        self.earlier.notify_one();
    }

    pub(super) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Timestamp, TaskId), Wake>> {
        ignore_poison(self.waiting.lock())
    }
}
