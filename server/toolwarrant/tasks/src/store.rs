//! The port to storage. Every method is one transaction. When it returns, the transaction is
//! durable or did not happen. If the store is on another machine and does not answer, the
//! transaction can happen after the method has failed, except for an acceptance.

use crate::machine::{Entry, TimelineEntry};
use crate::task::{Task, TaskId};
use std::fmt::Debug;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::Stored;
use toolwarrant_core::tasks::TaskStatus;
pub use toolwarrant_core::tasks::{CallFacts, Identity, WriteAnswer};

pub trait TaskStore: Debug + Send + Sync + 'static {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<WriteAnswer>>;

    /// Accepts a [new](Record::new) task, at once or when the target has cooled down. Until the
    /// task ends, it holds its idempotency key and its target lock; these decide races.
    ///
    /// The store writes the marks with every answer, also for a duplicate or a busy target. If one
    /// of them exists already, the answer is a conflict and nothing is written.
    ///
    /// The method returns once the fate of the task is known, however long that takes. After a
    /// failure, the task is in the store already, or never will be. If another process leads before
    /// the fate is known, the failure is [`StoreError::Unanswered`].
    ///
    /// [`StoreError::Unanswered`]: toolwarrant_core::store::StoreError::Unanswered
    fn accept(&self, new: Record, marks: Vec<DeduplicationKey>) -> Stored<'_, Acceptance>;

    /// Writes nothing if the stored task is at another version or has ended. The end of a task
    /// wipes its sealed arguments and frees its key and target lock.
    fn advance(&self, advance: Advance) -> Stored<'_, Advanced>;

    /// Returns tasks ordered by id.
    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>>;

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>>;

    /// Returns tasks, in flight or ended, newest first.
    fn tasks(&self, filter: TaskFilter) -> Stored<'_, TaskRows>;

    /// Counts the tasks with each status, of the application, the tool, the prefix and the time of
    /// the filter. Examines at most the latest `examine` of each status, or of all that ended. Its
    /// other members do not count.
    fn count_tasks(&self, filter: TaskFilter) -> Stored<'_, StatusCounts>;

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>>;

    /// Returns the entries of one task, which outlive it.
    fn entries(&self, id: TaskId) -> Stored<'_, Vec<LedgerRow>>;

    /// Returns entries in the order in which they were written.
    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>>;

    /// Returns the newest first.
    fn refunds(&self, filter: RefundFilter) -> Stored<'_, Vec<LedgerRow>>;

    /// Deletes tasks that ended before `before`, with their timelines, and cool-downs that were
    /// over by then: at most `limit` of each, the earliest first. If the store has too many tasks,
    /// it deletes ended tasks early. The ledger stays. Returns the number of deleted tasks.
    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32>;

    /// Writes nothing and answers with a conflict if one of the keys exists already.
    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()>;

    /// Returns keys in order.
    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>>;

    /// Deletes keys with `until` before `now`, the earliest first.
    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32>;

    /// Returns true if the next process may run on another machine, whose clock differs.
    fn outlives_machine(&self) -> bool {
        false
    }
}

/// A guard of something that must not happen twice, such as the use of a nonce. It exists until it
/// is purged, which is after `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeduplicationKey {
    pub space: &'static str,
    pub key: Box<[u8]>,
    pub until: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub id: TaskId,
    /// After the end of the task, it has no key, and a fingerprint of zeros.
    pub identity: Identity,
    pub tool: String,
    pub created_at: Timestamp,
    pub version: u32,
    pub task: Task,
    /// `None` after the end.
    pub sealed: Option<Vec<u8>>,
    pub refunded_at: Option<Timestamp>,
    /// `None` if the task is older than these facts.
    pub call: Option<CallFacts>,
}

impl Record {
    #[must_use]
    pub fn new(id: TaskId, (tool, identity): (&str, Identity), task: Task, sealed: Vec<u8>, call: CallFacts) -> Self {
        let (tool, created_at, sealed, call) = (tool.to_owned(), task.not_before, Some(sealed), Some(call));
        Self { id, identity, tool, created_at, version: 0, task, sealed, refunded_at: None, call }
    }
}

#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    pub application: Option<String>,
    pub tool: Option<String>,
    /// Any status if there are none.
    pub statuses: Vec<TaskStatus>,
    pub resource: Option<String>,
    pub target: Option<String>,
    /// The beginning of the ids of targets, for counts alone.
    pub prefix: Option<String>,
    pub since: Option<Timestamp>,
    /// Excluded.
    pub until: Option<Timestamp>,
    pub before: Option<TaskId>,
    pub limit: u32,
    pub examine: u32,
}

impl TaskFilter {
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.statuses == [TaskStatus::Dispatched]
    }

    /// Returns true if these properties fit. The store itself applies application, time and
    /// position.
    #[must_use]
    pub fn admits(&self, tool: &str, resource: &str, target: &str, status: TaskStatus) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.tool, tool)
            && is(&self.resource, resource)
            && is(&self.target, target)
            && (self.statuses.is_empty() || self.statuses.contains(&status))
    }

    /// Returns bounds of the ids, the second excluded. Ids begin with the time of acceptance.
    #[must_use]
    pub fn ids(&self) -> (Option<TaskId>, Option<TaskId>) {
        let first = |at: Timestamp| TaskId::new(at, [0; 10]);
        (self.since.map(first), self.before.into_iter().chain(self.until.map(first)).min())
    }
}

/// In the order of [`TaskStatus::ALL`].
pub type StatusCounts = [StatusCount; TaskStatus::ALL.len()];

/// The number of tasks with a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCount {
    pub count: u64,
    /// True if there may be older ones, which were not examined.
    pub is_cut: bool,
}

/// Newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRows {
    pub records: Vec<Record>,
    pub examined: u32,
    /// The last task that was examined; `None` if there are no more.
    pub next: Option<TaskId>,
}

#[derive(Clone, Debug, Default)]
pub struct RefundFilter {
    pub application: Option<String>,
    pub since: Option<Timestamp>,
    /// Excluded.
    pub until: Option<Timestamp>,
    pub before: Option<u64>,
    pub limit: u32,
}

/// A task in flight as the start of a process reads it: without its state. A state that cannot be
/// read stops its task alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTask {
    pub id: TaskId,
    pub identity: Identity,
    pub tool: String,
    pub sealed: Option<Vec<u8>>,
    /// `None` if an effect was in progress.
    pub wake_at: Option<Timestamp>,
}

#[must_use]
pub fn answer_repeat(id: TaskId, tool: String, target: String, matches: bool) -> WriteAnswer {
    WriteAnswer { task_id: id.to_string(), tool, target, accepted_at: id.accepted_at(), hit: true, matches }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    Fresh {
        /// The time at which the task is first due.
        wake_at: Timestamp,
    },
    Hit(WriteAnswer),
    Busy {
        id: TaskId,
        application: String,
        /// The latest time at which that task ends.
        deadline_at: Timestamp,
    },
}

#[derive(Clone, Debug)]
pub struct Advance {
    pub id: TaskId,
    /// Before the step.
    pub version: u32,
    /// After the step.
    pub task: Task,
    pub entries: Vec<Entry>,
    pub what: TimelineEntry,
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    Written,
    /// Another process has changed the task. The caller must stop driving it.
    Fenced,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    pub at: Timestamp,
    /// The phase after the event, or the status of an ended task.
    pub phase: &'static str,
    pub what: TimelineEntry,
}

/// It outlives its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Numbers ascend; some stores leave gaps.
    pub number: u64,
    pub id: TaskId,
    pub application: String,
    /// `charge`, `reversal` or `refund`. A task has at most one of each.
    pub kind: &'static str,
    pub at: Timestamp,
}
