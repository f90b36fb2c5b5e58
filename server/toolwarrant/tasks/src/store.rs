//! The port to storage: the operations that the engine needs, and the stored parts of a task.
//!
//! Every method is one transaction. When the method returns, the transaction is durable or did not
//! happen. If the store is on another machine and does not answer, the transaction can happen after
//! the method has failed, except for an acceptance.

use crate::machine::{Entry, Happening};
use crate::task::{Task, TaskId};
use std::fmt::Debug;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::Stored;
use toolwarrant_core::tasks::TaskStatus;
pub use toolwarrant_core::tasks::{CallFacts, Identity, WriteAnswer};

/// Stores tasks, their timelines, the ledger and deduplication keys.
pub trait TaskStore: Debug + Send + Sync + 'static {
    /// Finds the task in flight that has this identity.
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<WriteAnswer>>;

    /// Accepts a [new](Record::new) task. Until it ends, it holds its idempotency key and its
    /// target lock; these decide races. It starts at once, or when the target has cooled down.
    ///
    /// The store writes the marks with every answer, also for a duplicate or a busy target,
    /// because the call was received. If one of them exists already, the answer is a conflict and
    /// nothing is written.
    ///
    /// The method returns once the fate of the task is known, however long that takes. After a
    /// failure, the task is in the store already, or it never will be. If another process leads
    /// before the fate is known, the failure is [`StoreError::Unanswered`].
    ///
    /// [`StoreError::Unanswered`]: toolwarrant_core::store::StoreError::Unanswered
    fn accept(&self, new: Record, marks: Vec<DeduplicationKey>) -> Stored<'_, Acceptance>;

    /// Writes the next version of a task with its entries, unless the stored task is at another
    /// version or has ended. The end of a task wipes its sealed arguments and frees its key and its
    /// target lock.
    fn advance(&self, advance: Advance) -> Stored<'_, Advanced>;

    /// Returns the tasks in flight with ids above `after`, ordered by id.
    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>>;

    /// Returns a task, in flight or ended.
    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>>;

    /// Returns tasks, in flight or ended, newest first. Examines at most `filter.examine` tasks.
    fn tasks(&self, filter: TaskFilter) -> Stored<'_, TaskRows>;

    /// Returns the timeline of a task, in order.
    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>>;

    /// Returns at most `limit` ledger entries with numbers above `after`, in the order in which
    /// they were written.
    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>>;

    /// Returns refunds, newest first.
    fn refunds(&self, filter: RefundFilter) -> Stored<'_, Vec<LedgerRow>>;

    /// Deletes tasks that ended before `before`, with their timelines, and cool-downs that were
    /// over by then: at most `limit` of each. Tasks that ended first are deleted first. If the
    /// store has too many tasks, it deletes ended tasks early. The ledger stays. Returns the number
    /// of deleted tasks.
    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32>;

    /// Writes all these deduplication keys. If one of them exists already, it writes nothing and
    /// the answer is a conflict.
    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()>;

    /// Returns at most `limit` keys of a name space above `after`, in order.
    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>>;

    /// Deletes at most `limit` deduplication keys with `until` before `now`, the earliest first.
    /// Returns their number.
    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32>;

    /// Returns true if the next process may run on another machine, whose clock differs.
    fn outlives_machine(&self) -> bool {
        false
    }
}

/// A deduplication key. It guards something that must not happen twice, such as the use of a nonce:
/// it can be written only once. It exists until it is purged, which is after `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeduplicationKey {
    /// The name space of the key.
    pub space: &'static str,
    /// The key, unique in its name space.
    pub key: Box<[u8]>,
    /// The time until which it must exist.
    pub until: Timestamp,
}

/// A stored task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: TaskId,
    /// The identity of the write. After the end of the task, it has no key, and a fingerprint of
    /// zeros.
    pub identity: Identity,
    /// The tool that was called.
    pub tool: String,
    /// The time at which the call arrived.
    pub created_at: Timestamp,
    /// The number of its changes.
    pub version: u32,
    /// Its state.
    pub task: Task,
    /// The sealed arguments, until the task ends.
    pub sealed: Option<Vec<u8>>,
    /// The time of the refund, if the task was refunded.
    pub refunded_at: Option<Timestamp>,
    /// The facts of the call that made it; `None` if it is older than they are.
    pub call: Option<CallFacts>,
}

impl Record {
    /// Returns the record of a new task.
    #[must_use]
    pub fn new(id: TaskId, (tool, identity): (&str, Identity), task: Task, sealed: Vec<u8>, call: CallFacts) -> Self {
        let (tool, created_at, sealed, call) = (tool.to_owned(), task.not_before, Some(sealed), Some(call));
        Self { id, identity, tool, created_at, version: 0, task, sealed, refunded_at: None, call }
    }
}

/// Selects tasks for a list.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Only those of this application.
    pub application: Option<String>,
    /// Only those of this tool.
    pub tool: Option<String>,
    /// Only those with one of these statuses; any if there are none.
    pub statuses: Vec<TaskStatus>,
    /// Only those on targets of this resource.
    pub resource: Option<String>,
    /// Only those on targets with this id.
    pub target: Option<String>,
    /// Only those accepted at this time or later.
    pub since: Option<Timestamp>,
    /// Only those accepted before this time.
    pub until: Option<Timestamp>,
    /// Only those accepted before this task.
    pub before: Option<TaskId>,
    /// Maximum number of tasks to return.
    pub limit: u32,
    /// Maximum number of tasks to examine.
    pub examine: u32,
}

impl TaskFilter {
    /// Returns true if the filter admits only tasks in flight.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.statuses == [TaskStatus::Dispatched]
    }

    /// Returns true if it admits a task with these properties. Application, time and position are
    /// for the store.
    #[must_use]
    pub fn admits(&self, tool: &str, resource: &str, target: &str, status: TaskStatus) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.tool, tool)
            && is(&self.resource, resource)
            && is(&self.target, target)
            && (self.statuses.is_empty() || self.statuses.contains(&status))
    }

    /// Returns the bounds of the ids, from the first to before the last: ids begin with the time of
    /// acceptance.
    #[must_use]
    pub fn ids(&self) -> (Option<TaskId>, Option<TaskId>) {
        let first = |at: Timestamp| TaskId::new(at, [0; 10]);
        (self.since.map(first), self.before.into_iter().chain(self.until.map(first)).min())
    }
}

/// Tasks that a filter admits, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRows {
    /// The tasks.
    pub records: Vec<Record>,
    /// The number of tasks that were examined.
    pub examined: u32,
    /// The last task that was examined; `None` if there are no more.
    pub next: Option<TaskId>,
}

/// Selects refunds.
#[derive(Clone, Debug, Default)]
pub struct RefundFilter {
    /// Only those of this application.
    pub application: Option<String>,
    /// Only those at this time or later.
    pub since: Option<Timestamp>,
    /// Only those before this time.
    pub until: Option<Timestamp>,
    /// Only those with lower numbers.
    pub before: Option<u64>,
    /// Maximum number of refunds to return.
    pub limit: u32,
}

/// A task in flight as the start of a process reads it: without its state, because a state that
/// cannot be read stops its task alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTask {
    /// The id of the task.
    pub id: TaskId,
    /// The identity of the write.
    pub identity: Identity,
    /// The tool that was called.
    pub tool: String,
    /// The sealed arguments.
    pub sealed: Option<Vec<u8>>,
    /// The time at which it is due; `None` if an effect was in progress.
    pub wake_at: Option<Timestamp>,
}

/// Returns the answer to a write that repeats a task in flight.
#[must_use]
pub fn answer_repeat(id: TaskId, tool: String, target: String, matches: bool) -> WriteAnswer {
    WriteAnswer { task_id: id.to_string(), tool, target, hit: true, matches }
}

/// The answer to [`TaskStore::accept`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The task was accepted.
    Fresh {
        /// The time at which it is first due.
        wake_at: Timestamp,
    },
    /// The write is a duplicate of a task in flight.
    Hit(WriteAnswer),
    /// Another task is in flight on the target.
    Busy {
        /// The id of that task.
        id: TaskId,
        /// Its application.
        application: String,
        /// The latest time at which it ends.
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
    /// The cause of the step, for the timeline.
    pub what: Happening,
    /// The time of the step.
    pub at: Timestamp,
}

/// The result of [`TaskStore::advance`].
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
    /// The time of the event.
    pub at: Timestamp,
    /// The phase after the event, or the status of an ended task.
    pub phase: &'static str,
    /// The event.
    pub what: Happening,
}

/// An entry in the ledger: a charge, reversal or refund. It outlives its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Its number. Numbers ascend; some stores leave gaps.
    pub number: u64,
    /// The task.
    pub id: TaskId,
    /// The application that is charged.
    pub application: String,
    /// `charge`, `reversal` or `refund`. A task has at most one of each.
    pub kind: &'static str,
    /// The time of the entry.
    pub at: Timestamp,
}
