//! The port to storage: what the engine asks of a store, and what a store keeps of a task.
//!
//! Every method is one transaction. It is durable when the method returns, or it did not happen.

use crate::machine::Entry;
use crate::task::{Task, TaskId, TaskPolicy};
use std::fmt::Debug;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::Stored;
pub use toolwarrant_core::tasks::Identity;

/// Stores tasks, their timelines, the ledger and marks.
pub trait TaskStore: Debug + Send + Sync + 'static {
    /// Finds the task in flight that has this identity.
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<DuplicateOf>>;

    /// Accepts a task. It holds its idempotency key and its target lock until it ends; these decide races. It starts at `new.at`,
    /// or when the target has cooled down.
    ///
    /// `new.marks` are written with every answer, a duplicate or a busy target included: the call was seen. If one of them exists
    /// already, the answer is a conflict and nothing is written.
    fn accept(&self, new: NewTask) -> Stored<'_, Acceptance>;

    /// Writes the next version of a task with its entries, unless the task is at another version or has ended. The end of a task
    /// wipes its sealed arguments and frees its key and its target lock.
    fn advance(&self, advance: Advance) -> Stored<'_, Advanced>;

    /// Returns the tasks in flight with ids above `after`, in the order of ids.
    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>>;

    /// Returns a task, in flight or ended.
    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>>;

    /// Returns tasks, in flight or ended, the latest first.
    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Record>>;

    /// Returns the timeline of a task, in order.
    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>>;

    /// Returns at most `limit` ledger entries with numbers above `after`, in the order in which they were written.
    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>>;

    /// Deletes at most `limit` tasks that ended before `before`, the longest ended first, with their timelines, and at most `limit`
    /// cool-downs that were over by then. Returns how many tasks. Where there is no room for more, ended tasks go before their time. The
    /// ledger stays.
    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32>;

    /// Writes all marks, or none: if one of them exists already, the answer is a conflict.
    fn mark(&self, marks: Vec<Mark>) -> Stored<'_, ()>;

    /// Returns at most `limit` keys of a name space, in their order, above `after`.
    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>>;

    /// Deletes at most `limit` marks with `until` before `now`, the earliest first. Returns how many.
    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32>;
}

/// A write to accept.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The id of the task.
    pub id: TaskId,
    /// The identity of the write.
    pub identity: Identity,
    /// The tool that was called.
    pub tool: String,
    /// The arguments, sealed.
    pub sealed: Vec<u8>,
    /// How it is carried out.
    pub policy: TaskPolicy,
    /// When the call arrived.
    pub at: Timestamp,
    /// Marks to write in the same transaction.
    pub marks: Vec<Mark>,
}

/// Guards something that must not happen twice, such as the use of a nonce: a mark can be written once. It exists until it is
/// purged, which is after `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The name space of the key.
    pub space: &'static str,
    /// The key, unique in its name space.
    pub key: Box<[u8]>,
    /// Until when it must exist.
    pub until: Timestamp,
}

/// A stored task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: TaskId,
    /// The application that called.
    pub application: String,
    /// The tool that was called.
    pub tool: String,
    /// The resource of the target.
    pub resource: String,
    /// The id of the target.
    pub target: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// The number of its changes.
    pub version: u32,
    /// Its state.
    pub task: Task,
    /// Its sealed arguments, until it ends.
    pub sealed: Option<Vec<u8>>,
    /// When it was refunded, if it was.
    pub refunded_at: Option<Timestamp>,
}

/// Selects tasks for a list.
#[derive(Clone, Debug)]
pub struct TaskFilter {
    /// Only those of this application.
    pub application: Option<String>,
    /// Only those on targets with this id, of any resource.
    pub target: Option<String>,
    /// Only those accepted before this one.
    pub before: Option<TaskId>,
    /// The most tasks to return.
    pub limit: u32,
}

/// A task in flight: what a new process must know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTask {
    /// The id of the task.
    pub id: TaskId,
    /// The identity of the write.
    pub identity: Identity,
    /// When it is due; `None` if an effect was in progress.
    pub wake_at: Option<Timestamp>,
}

/// The task in flight that a repeated call is a duplicate of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateOf {
    /// Its id.
    pub id: TaskId,
    /// The tool that was called.
    pub tool: String,
    /// The id of the target.
    pub target: String,
    /// The fingerprint of its write.
    pub fingerprint: [u8; 32],
}

/// The answer to a [`NewTask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The task was accepted.
    Fresh {
        /// When it is first due.
        wake_at: Timestamp,
    },
    /// The write is a duplicate of a task in flight.
    Hit(DuplicateOf),
    /// Another task is in flight on the target.
    Busy {
        /// The id of that task.
        id: TaskId,
        /// Its application.
        application: String,
        /// When it ends at the latest.
        deadline_at: Timestamp,
    },
}

/// A step of a task from one version to the next.
#[derive(Clone, Debug)]
pub struct Advance {
    /// The task.
    pub id: TaskId,
    /// The version before the step.
    pub version: u32,
    /// The state after the step.
    pub task: Task,
    /// Entries to write in the same transaction.
    pub entries: Vec<Entry>,
    /// A line for the timeline.
    pub what: String,
    /// When it happened.
    pub at: Timestamp,
}

/// Whether a step was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// The step was written.
    Written,
    /// Another process has changed the task. The caller must stop driving it.
    Fenced,
}

/// An event in a task's timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The phase after it, or the status of an ended task.
    pub phase: &'static str,
    /// What happened.
    pub what: String,
}

/// An entry in the ledger: a charge, reversal or refund. It outlives its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Its number, from 1.
    pub number: u64,
    /// The task.
    pub id: TaskId,
    /// The application that is charged.
    pub application: String,
    /// `charge`, `reversal` or `refund`. A task has at most one of each.
    pub kind: &'static str,
    /// When it happened.
    pub at: Timestamp,
}
