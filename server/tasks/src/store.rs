//! What the engine asks of a store, and what is kept of a task.
//!
//! Every method is one transaction: it has happened when it answers, or it has not happened.

use crate::machine::Entry;
use crate::task::{Task, TaskId, Terms};
use std::fmt::Debug;
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::store::Stored;

/// Keeps tasks, what happened to them, and the ledger.
pub trait TaskStore: Debug + Send + Sync + 'static {
    /// The task in flight that such a call has made.
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<InFlight>>;

    /// Takes a task on: claims its key and the lane of its target, which decide races, until it ends. It starts when the target
    /// has settled, or at `new.at`. With the answer, whichever it is, `new.marks` are written: the call was seen. Where one of
    /// them is there already, that is a conflict, and nothing is written.
    fn accept(&self, new: NewTask) -> Stored<'_, Accepted>;

    /// Writes a task's next version with its entries, unless it is at another version or has ended. With the end, its sealed
    /// arguments are wiped, and its key and its lane are free.
    fn advance(&self, advance: Advance) -> Stored<'_, Advanced>;

    /// Tasks in flight after that one, in the order of their ids.
    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<Unfinished>>;

    /// A task, in flight or ended.
    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>>;

    /// Tasks, in flight or ended, the latest first.
    fn tasks(&self, which: Which) -> Stored<'_, Vec<Record>>;

    /// What has happened to a task, in order.
    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<Happening>>;

    /// The entries of the ledger after the `after`-th, in the order in which they were written, at most `limit`.
    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>>;

    /// Forgets at most `limit` tasks that ended before then, the longest ended first, with their timelines; answers how
    /// many. The ledger stays.
    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32>;

    /// Writes marks down, all or none: where one is there already, that is a conflict.
    fn mark(&self, marks: Vec<Mark>) -> Stored<'_, ()>;

    /// Forgets at most `limit` marks that stood until before `now`, those of the earliest first; answers how many.
    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32>;
}

/// What a call for a write is told from others by. In flight there is one task at most of an application under a key that it gave,
/// and of its calls without a key one at most with the same fingerprint: two of these have one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Whose call it is.
    pub application: String,
    /// The idempotency key that it gave.
    pub key: Option<String>,
    /// Stands for tool, target and arguments: equal exactly if these are.
    pub fingerprint: [u8; 32],
    /// What kind of thing it acts on, and which one: the two name the lane.
    pub resource: String,
    /// See `resource`.
    pub target: String,
}

/// A write that is to be taken on.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Names it.
    pub id: TaskId,
    /// What its call is told from others by.
    pub identity: Identity,
    /// The tool.
    pub tool: String,
    /// The arguments, sealed.
    pub sealed: Vec<u8>,
    /// How it is carried out.
    pub terms: Terms,
    /// When it was asked for.
    pub at: Timestamp,
    /// What is written down with it.
    pub marks: Vec<Mark>,
}

/// Something that happens once: while it stands, it cannot be made again. It stands until it is purged, which is after `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What kind of thing it is; equal keys of two spaces are two marks.
    pub space: &'static str,
    /// Which one.
    pub key: Vec<u8>,
    /// How long it must stand.
    pub until: Timestamp,
}

/// A task as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Names it.
    pub id: TaskId,
    /// Whose it is.
    pub application: String,
    /// The tool.
    pub tool: String,
    /// What kind of thing it acts on.
    pub resource: String,
    /// Which one.
    pub target: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Counts its changes, from 0.
    pub version: u32,
    /// How far it has come.
    pub task: Task,
    /// Its arguments, until it ends.
    pub sealed: Option<Vec<u8>>,
    /// When it was refunded, if it was.
    pub refunded_at: Option<Timestamp>,
}

/// Which tasks a list is to hold.
#[derive(Clone, Debug)]
pub struct Which {
    /// Those of one application; `None` for all.
    pub application: Option<String>,
    /// Those on one target; `None` for all.
    pub target: Option<String>,
    /// Those accepted before that one.
    pub before: Option<TaskId>,
    /// How many at most.
    pub limit: u32,
}

/// A task in flight, as far as a new process must know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Names it.
    pub id: TaskId,
    /// What its call is told from others by.
    pub identity: Identity,
    /// When to look at it next; `None` while an effect was under way.
    pub wake_at: Option<Timestamp>,
}

/// A task in flight that answers a repeated call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Names it.
    pub id: TaskId,
    /// The tool that made it.
    pub tool: String,
    /// What it acts on.
    pub target: String,
    /// What it was asked with.
    pub fingerprint: [u8; 32],
}

/// What became of a [`NewTask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It was taken on.
    Fresh {
        /// When it is due first.
        wake_at: Timestamp,
    },
    /// The application has a task in flight under that key.
    Hit(InFlight),
    /// Another task is in flight on the target.
    Busy {
        /// That task.
        id: TaskId,
        /// Whose it is.
        application: String,
        /// When it ends at the latest.
        deadline_at: Timestamp,
    },
}

/// A task's step from one version to the next.
#[derive(Clone, Debug)]
pub struct Advance {
    /// Which task.
    pub id: TaskId,
    /// The version that it comes from.
    pub version: u32,
    /// What it becomes.
    pub task: Task,
    /// What is written down with it.
    pub entries: Vec<Entry>,
    /// What happened, for the timeline.
    pub what: String,
    /// When.
    pub at: Timestamp,
}

/// Whether a step was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// It was.
    Written,
    /// Somebody else has changed the task: whoever tried must stop.
    Fenced,
}

/// A line of a task's timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at: Timestamp,
    /// The phase that it led to, or the state that it ended in.
    pub phase: &'static str,
    /// What happened.
    pub what: String,
}

/// A line of the ledger: what was charged, taken back or refunded, and for what. It outlives its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Its place, from 1.
    pub number: u64,
    /// The task.
    pub id: TaskId,
    /// Whose account.
    pub application: String,
    /// `charge`, `reversal` or `refund`; of each at most one a task.
    pub kind: &'static str,
    /// When.
    pub at: Timestamp,
}
