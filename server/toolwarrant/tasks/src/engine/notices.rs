//! Notices of accepted, advanced and ended tasks, for watchers such as a page that is open. A
//! notice says which task has changed, and the watcher reads it. While nobody has ever watched, a
//! change costs one load.

use crate::task::{Status, TaskId};
use std::sync::OnceLock;
use tokio::sync::broadcast::{Receiver, Sender};

/// Number of notices that a watcher may lag behind. A watcher that lags more has missed some, and
/// reads the list of tasks again.
const LAG_MAX: usize = 1_024;

/// A change of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskNotice {
    /// The task.
    pub id: TaskId,
    /// Its status, if it has ended.
    pub ended: Option<Status>,
}

/// The channel to all watchers.
#[derive(Debug, Default)]
pub(super) struct Notices(OnceLock<Sender<TaskNotice>>);

impl Notices {
    /// Starts to watch.
    pub(super) fn watch(&self) -> Receiver<TaskNotice> {
        self.0.get_or_init(|| Sender::new(LAG_MAX)).subscribe()
    }

    /// Notifies the watchers, if there are any.
    pub(super) fn notify(&self, id: TaskId, ended: Option<Status>) {
        if let Some(watchers) = self.0.get() {
            let _ = watchers.send(TaskNotice { id, ended });
        }
    }
}
