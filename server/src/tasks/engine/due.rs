//! What is due when: one ordered index over all tasks in flight, a few dozen bytes each.

use crate::clock::Timestamp;
use crate::tasks::machine::Event;
use crate::tasks::task::TaskId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Tasks that wait, by the moment at which they are looked at next. A task that is being carried on is not in it.
#[derive(Debug, Default)]
pub(super) struct DueList {
    waiting: Mutex<BTreeMap<(Timestamp, TaskId), Why>>,
    /// Told when something is due earlier than all the rest.
    earlier: Notify,
}

/// Why a task is looked at.
#[derive(Debug, Clone, Copy)]
enum Why {
    Due,
    Found,
}

impl DueList {
    /// Wakes a task then.
    pub(super) fn add(&self, id: TaskId, at: Timestamp) {
        self.insert(id, at, Why::Due);
    }

    /// Wakes a task then, about which only the store knows how far it came.
    pub(super) fn found(&self, id: TaskId, at: Timestamp) {
        self.insert(id, at, Why::Found);
    }

    /// The first task that is due by then, with the event that this is to it.
    pub(super) fn take(&self, now: Timestamp) -> Option<(TaskId, Event)> {
        let mut waiting = self.lock();
        let first = waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, id), why) = first.remove_entry();
        Some(match why {
            Why::Due => (id, Event::Due),
            Why::Found => (id, Event::Found),
        })
    }

    /// When the first task is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.lock().first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns once something has become due earlier than all that was there.
    pub(super) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    fn insert(&self, id: TaskId, at: Timestamp, why: Why) {
        let mut waiting = self.lock();
        let earliest = waiting.first_key_value().is_none_or(|((first, _), _)| at < *first);
        waiting.insert((at, id), why);
        drop(waiting);
        if earliest {
            self.earlier.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Timestamp, TaskId), Why>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
