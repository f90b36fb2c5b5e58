//! The port to the engine of tasks. It finds a duplicate write, accepts a write, and reads a task.

use super::access::Caller;
use super::access::UsedNonce;
use super::advice::Advice;
use super::args::{self, Arguments};
use super::catalogue::{Catalogue, PolicyDef, StateDef, ToolDef};
use super::generated::values;
use super::permissions::PermissionSet;
use super::reply::TargetIds;
pub use super::report::UpstreamReport;
use crate::store::Stored;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::time::Duration;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hangup::Hangup;
use toolwarrant_base::keyring::Digest;
use toolwarrant_base::text::{self, Remark, Secret};
use toolwarrant_base::wording::Words;

/// The status of a task, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It was accepted and has not ended.
    Dispatched,
    /// The effect was measured.
    Success,
    /// The upstream reported success, and the effect cannot be measured.
    SuccessUnverified,
    /// The upstream reported failure, or no request was sent.
    Failed,
    /// The upstream reported success, and a measurement shows that the effect is absent. The only
    /// status that is refunded.
    FailedSilent,
    /// The outcome is unknown.
    Timeout,
}
values!(TaskStatus {
    Dispatched = "dispatched",
    Success = "success",
    SuccessUnverified = "success_unverified",
    Failed = "failed",
    FailedSilent = "failed_silent",
    Timeout = "timeout",
});

impl TaskStatus {
    /// The statuses of an ended task.
    pub const ENDS: &'static [Self] = Self::ALL.split_at(1).1;

    /// Returns true if the task has ended. The status then never changes again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Dispatched)
    }

    /// Returns the contract's words for this status; `None` if the contract has no tasks.
    #[must_use]
    pub fn def(self, catalogue: &Catalogue) -> Option<&'static StateDef> {
        catalogue.states.get(self as usize)
    }
}

/// Accepts tasks and reads them.
pub trait Tasks: Debug + Send + Sync + 'static {
    /// Returns the fingerprint of a call. Two fingerprints are equal exactly if tool and arguments
    /// are equal. `arguments` are typed arguments as canonical JSON, secrets included.
    fn fingerprint(&self, tool: &str, arguments: &Secret<String>) -> Digest;

    /// Finds the task in flight that a write repeats, if there is one. Changes nothing.
    fn repeat<'a>(&'a self, write: &'a WriteRequest<'a>) -> BoxFuture<'a, Result<Option<WriteAnswer>, WriteRefusal>>;

    /// Accepts `command`, durably, and stores the nonce of the write with it. If a duplicate was
    /// accepted first in a race, returns its task.
    fn accept<'a>(
        &'a self,
        write: WriteRequest<'a>,
        command: Secret<String>,
    ) -> BoxFuture<'a, Result<WriteAnswer, WriteRefusal>>;

    /// Reads a task that the caller may see. The answer may be held until the task ends, within the
    /// limits of `poll`.
    fn poll<'a>(&'a self, poll: Poll<'a>) -> BoxFuture<'a, Result<TaskView, TaskReadError>>;

    /// Reads a page of the tasks of the application `owner`.
    fn list<'a>(&'a self, owner: &'a str, query: TaskQuery<'a>) -> BoxFuture<'a, Result<TaskPage, TaskReadError>>;

    /// Stores the nonce of a request that is not a read and has not reached [`Self::accept`].
    fn keep_nonce<'a>(&'a self, nonce: &'a UsedNonce) -> Stored<'a, ()>;
}

/// A request to read a task.
#[derive(Debug, Clone, Copy)]
pub struct Poll<'a> {
    /// The caller. It sees the tasks of its application, and those on targets that its application
    /// sees.
    pub caller: &'a Caller,
    /// The id of the task.
    pub id: &'a str,
    /// The time to wait for the end of the task. `None`: until the poll is due, but no longer than
    /// `hold_at_most`.
    pub wait: Option<Duration>,
    /// The longest hold of a poll without `wait`.
    pub hold_at_most: Duration,
    /// The permission to hold the answer.
    pub hold: LongPoll<'a>,
    /// The shortest interval between two polls.
    pub interval: Duration,
}

/// The permission to hold an answer until the task ends.
#[derive(Debug, Clone, Copy)]
pub enum LongPoll<'a> {
    /// The answer may be held.
    Allowed,
    /// The answer may be held until the client closes its side of the connection.
    Until(&'a Hangup),
    /// The answer must not be held: the rest of a batch waits for it.
    Never,
}

/// The most tasks on a page.
pub const TASK_PAGE_MAX: u16 = 100;

/// Selects tasks of the caller's application. A field that is `None` admits all.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskQuery<'a> {
    /// Only those with this status.
    pub status: Option<TaskStatus>,
    /// Only those on targets of this resource.
    pub resource: Option<&'a str>,
    /// Only those on targets with this id.
    pub target: Option<&'a str>,
    /// Only those that were accepted before this task: [`TaskPage::next`] of the page before.
    pub before: Option<&'a str>,
    /// The most tasks to return: from 1 to [`TASK_PAGE_MAX`].
    pub limit: u16,
}

/// A page of tasks, newest first. It examines a limited number of tasks, so it can be short, or
/// even empty, although more tasks follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// The id of the last task that was examined; `None` if this page is the last.
    pub next: Option<String>,
}

/// A task as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// Its id.
    pub id: String,
    /// The tool that made it.
    pub tool: String,
    /// The resource of its target.
    pub resource: String,
    /// The id of its target.
    pub target: String,
    /// Its state.
    pub status: TaskStatus,
    /// The time when it was accepted.
    pub created_at: Timestamp,
    /// The latest time at which it ends, except for a step in progress and a last reading of the
    /// target, which take at most a minute.
    pub deadline_at: Timestamp,
    /// The time when it ended.
    pub finished_at: Option<Timestamp>,
    /// Seconds until the next poll; `None` if it has ended, or on a page of tasks.
    pub poll_after_seconds: Option<u64>,
    /// The evidence for its outcome; `None` if it has not ended.
    pub evidence: Option<Evidence>,
    /// The time of its refund, if it was refunded.
    pub refunded_at: Option<Timestamp>,
}

/// The evidence for the outcome of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The name of the probe that was read, or `upstream_answer` if none was.
    pub checked: String,
    /// The reading that would show the effect.
    pub expected: Remark,
    /// The reading that was measured.
    pub observed: Remark,
    /// The upstream's report about the write.
    pub reported: UpstreamReport,
    /// The time of the reading.
    #[serde(rename = "checked_at")]
    pub at: Timestamp,
}

impl TargetIds for Evidence {}

/// A refund, as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refund {
    /// The number of units that it gives back.
    pub units: i64,
    /// The time of the refund.
    pub refunded_at: Timestamp,
}

impl TargetIds for Refund {}

/// The reason why a task could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskReadError {
    /// The task does not exist, or the caller may not see it. A client must not learn the
    /// difference.
    #[error("there is no such task")]
    NotFound,
    /// The task could not be read. The text is for the log.
    #[error("{0}")]
    Broken(String),
}

/// A generated command: a write that a handler approved.
pub trait WriteCommand {
    /// Returns the name of its tool.
    fn tool(&self) -> &'static str;
    /// Returns its arguments as JSON.
    fn arguments(&self) -> SerializedArgs;
}

/// Typed arguments as canonical JSON, secrets included, without the idempotency key.
pub type SerializedArgs = serde_json::Result<Secret<String>>;

/// Writes typed arguments as JSON.
///
/// # Errors
/// They cannot be written as JSON.
pub fn serialize_args(args: &impl Serialize) -> SerializedArgs {
    text::to_json(args).map(|(json, _)| Secret::new(json))
}

/// Parses JSON from [`serialize_args`], also of a former contract. Returns `None` if the contract
/// has changed and no longer allows it.
#[must_use]
pub fn read<A: Arguments>(json: &str) -> Option<A> {
    args::parse_stored(json).ok()
}

/// Plans a call of `tool` with its policy for `case`. Returns `None` if it has no such policy.
pub fn plan<'a>(tool: &'static ToolDef, case: &str, key: Option<&'a str>, args: &impl Serialize) -> Option<Plan<'a>> {
    let (_, policy) = tool.task.as_ref()?.cases.iter().find(|(value, _)| *value == case)?;
    Some(Plan { key, policy, arguments: serialize_args(args).ok()? })
}

/// The plan of a call that makes a task.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The idempotency key, if the client gave one.
    pub key: Option<&'a str>,
    /// The policy of this call.
    pub policy: &'static PolicyDef,
    /// The typed arguments as canonical JSON, secrets included, without the key.
    pub arguments: Secret<String>,
}

/// A write that may become a task.
#[derive(Debug)]
pub struct WriteRequest<'a> {
    /// Its identity.
    pub identity: Identity,
    /// The tool.
    pub tool: &'static str,
    /// The policy: that of the contract, with the times that `Resource::policy` returns.
    pub policy: PolicyDef,
    /// The facts of the call.
    pub call: CallFacts,
    /// The nonce of a signed request.
    pub nonce: Option<&'a UsedNonce>,
    /// The time when the call arrived.
    pub now: Timestamp,
}

/// The identity of a write. At most one task is in flight per application and idempotency key or,
/// without a key, per application and fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The calling application.
    pub application: String,
    /// The idempotency key, if one was given.
    pub key: Option<String>,
    /// The [fingerprint](Tasks::fingerprint) of the call.
    pub fingerprint: Digest,
    /// The resource of the target. Resource and target name the target lock.
    pub resource: String,
    /// The id of the target.
    pub target: String,
}

/// The facts of the call that made a task, for its operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// The id of the request.
    pub request_id: String,
    /// The id of the key.
    pub key_id: String,
    /// The arguments as JSON, as the audit trail has them: without secrets.
    pub arguments: Option<String>,
}

/// The answer to a write: a task in flight, which is new or the one that the write repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteAnswer {
    /// Its id.
    pub task_id: String,
    /// The tool that made it.
    pub tool: String,
    /// The id of its target.
    pub target: String,
    /// True if it was already in flight.
    pub hit: bool,
    /// True if it has the tool, target and arguments of this write.
    pub matches: bool,
}

/// The reason why a write did not become a task.
#[derive(Debug, Clone)]
pub enum WriteRefusal {
    /// Another write on the same target is in flight.
    Busy {
        /// The id of that task. The caller may know it, because the caller sees the target.
        task_id: String,
        /// Seconds after which a repeat may succeed.
        retry_after_seconds: u64,
    },
    /// The nonce of the request was used in an earlier run.
    UsedNonce,
    /// Too many tasks are in flight.
    Full,
    /// The store cannot write at present, and the task was not accepted. A repeat may succeed. The
    /// store has logged the reason.
    Unavailable,
    /// The write could not be accepted. The text is for the log.
    Broken(String),
}

/// The result of a write that a client sees.
pub(super) struct WriteResult<'a> {
    pub(super) task: &'a WriteAnswer,
    pub(super) catalogue: &'a Catalogue,
    /// The tool that was called.
    pub(super) tool: &'a ToolDef,
    pub(super) reader: PermissionSet,
}

impl Serialize for WriteResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let WriteAnswer { task_id, tool, target, hit, matches } = self.task;
        let status = TaskStatus::Dispatched;
        let Self { task: _, catalogue, tool: own, reader } = *self;
        let phrases = &catalogue.phrases;
        let poll = status.def(catalogue).map_or(Advice::NONE, |state| state.next_step);
        let next = match (hit, matches) {
            (false, _) => [Advice::NONE, poll],
            (true, true) => [phrases.same_write, poll],
            (true, false) => [phrases.other_write, Advice::NONE],
        };
        let next = next.map(|advice| advice.for_reader(reader));
        let next: Vec<_> = next.into_iter().filter(|words| !words.as_str().is_empty()).collect();
        let next = Words::list(&next, " ");
        let mut map = serializer.serialize_map(Some(9))?;
        map.serialize_entry("task_id", task_id)?;
        map.serialize_entry("tool", tool)?;
        map.serialize_entry(own.target.as_ref().map_or("target", |target| target.arg), target)?;
        map.serialize_entry("status", status.as_str())?;
        map.serialize_entry("terminal", &status.is_terminal())?;
        map.serialize_entry("idempotent_hit", hit)?;
        map.serialize_entry("request_matches", matches)?;
        map.serialize_entry("poll_after_seconds", &catalogue.service.poll_interval_seconds)?;
        map.serialize_entry("next_step", &next)?;
        map.end()
    }
}
