//! The port to the engine of tasks. Start at [`Tasks`].

use super::access::Caller;
use super::access::UsedNonce;
use super::advice::Advice;
use super::args::{self, Arguments};
use super::catalogue::{Catalogue, PolicyDef, StateDef, ToolDef};
use super::permissions::PermissionSet;
use super::reply::TargetIds;
pub use super::report::{TaskStatus, UpstreamReport};
use crate::store::Stored;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::fmt::Debug;
use std::future::pending;
use std::time::Duration;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hangup::Hangup;
use toolwarrant_base::keyring::Digest;
use toolwarrant_base::text::{self, Remark, Secret};
use toolwarrant_base::wording::Words;
use toolwarrant_common::TASKS_KEPT_DAYS;

impl TaskStatus {
    /// Returns the contract's words for this status, if it has tasks.
    #[must_use]
    pub fn def(self, catalogue: &Catalogue) -> Option<&'static StateDef> {
        catalogue.states.get(self as usize)
    }
}

pub trait Tasks: Debug + Send + Sync + 'static {
    /// Returns equal digests exactly for equal tools and arguments. `arguments` include secrets.
    fn fingerprint(&self, tool: &str, arguments: &Secret<String>) -> Digest;

    fn repeat<'a>(&'a self, write: &'a WriteRequest<'a>) -> BoxFuture<'a, Result<Option<WriteAnswer>, WriteRefusal>>;

    /// Accepts `command` durably, with the nonce of the write, or returns the task of a duplicate
    /// that came first.
    fn accept<'a>(
        &'a self,
        write: WriteRequest<'a>,
        command: Secret<String>,
    ) -> BoxFuture<'a, Result<WriteAnswer, WriteRefusal>>;

    fn poll<'a>(&'a self, poll: Poll<'a>) -> BoxFuture<'a, Result<TaskView, TaskReadError>>;

    fn list<'a>(&'a self, owner: &'a str, query: TaskQuery<'a>) -> BoxFuture<'a, Result<TaskPage, TaskReadError>>;

    /// Returns the task of a write in flight on a target, of any application.
    fn find_write<'a>(
        &'a self,
        resource: &'a str,
        target: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, TaskReadError>>;

    /// Stores the nonce of a request that is not a read and has not reached [`Self::accept`].
    fn keep_nonce<'a>(&'a self, nonce: &'a UsedNonce) -> Stored<'a, ()>;
}

#[derive(Debug, Clone, Copy)]
pub struct Poll<'a> {
    /// It sees the tasks of its application, and those on targets that its application sees.
    pub caller: &'a Caller,
    pub id: &'a str,
    /// `None`: until the poll is due, but no longer than `hold_at_most`.
    pub wait: Option<Duration>,
    pub hold_at_most: Duration,
    pub hold: LongPoll<'a>,
    pub interval: Duration,
}

#[derive(Debug, Clone, Copy)]
pub enum LongPoll<'a> {
    Allowed,
    /// Until the client closes its side of the connection.
    Until(&'a Hangup),
    /// The rest of a batch waits for the answer.
    Never,
}

/// How long an ended task can be read.
pub const KEPT: Duration = Duration::from_hours(24 * TASKS_KEPT_DAYS as u64);

impl LongPoll<'_> {
    /// Returns once the client has left; never if nothing watches that.
    pub async fn wait_for_hangup(self) {
        match self {
            Self::Until(hangup) => hangup.wait().await,
            Self::Allowed | Self::Never => pending().await,
        }
    }
}

/// The most tasks on a page.
pub const TASK_PAGE_MAX: u16 = 100;

/// Selects tasks of the caller's application. `None` admits all.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskQuery<'a> {
    /// Only this status.
    pub status: Option<TaskStatus>,
    /// Only this resource.
    pub resource: Option<&'a str>,
    /// Only this target.
    pub target: Option<&'a str>,
    /// Only tasks accepted before this one: [`TaskPage::next`] of the page before.
    pub before: Option<&'a str>,
    /// From 1 to [`TASK_PAGE_MAX`].
    pub limit: u16,
}

/// A page of tasks, newest first. It can be short, or even empty, although more follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// The last task that was examined; `None` on the last page.
    pub next: Option<String>,
}

/// A task as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// Its id.
    pub id: String,
    /// The tool that made it.
    pub tool: String,
    /// The probe that verifies it, if there is one.
    pub probe: Option<String>,
    /// The resource of its target.
    pub resource: String,
    /// The id of its target.
    pub target: String,
    /// Its state.
    pub status: TaskStatus,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Its latest end, except for a step in progress and a last reading of the target: a minute at
    /// most.
    pub deadline_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Seconds until the next poll; `None` if it has ended, or on a page.
    pub poll_after_seconds: Option<u64>,
    /// `None` until it has ended.
    pub evidence: Option<Evidence>,
    /// When it was refunded.
    pub refunded_at: Option<Timestamp>,
}

/// The evidence for the outcome of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The probe that was read, or `upstream_answer` if none was.
    pub checked: String,
    /// The reading that would show the effect.
    pub expected: Remark,
    /// The reading that was measured.
    pub observed: Remark,
    /// The upstream's report.
    pub reported: UpstreamReport,
    /// When the reading was taken.
    pub checked_at: Timestamp,
}

impl TargetIds for Evidence {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refund {
    pub units: i64,
    pub refunded_at: Timestamp,
}

impl TargetIds for Refund {}

/// The reason why a task could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskReadError {
    /// No such task, or one that the caller may not see. A client must not learn the difference.
    #[error("there is no such task")]
    NotFound,
    /// The text is for the log.
    #[error("{0}")]
    Broken(String),
}

/// An accepted write.
pub trait WriteCommand {
    /// Returns the name of its tool.
    fn tool(&self) -> &'static str;
    /// Returns its arguments as they are stored.
    fn arguments(&self) -> SerializedArgs;
}

/// Typed arguments as canonical JSON, secrets included, without the idempotency key.
pub type SerializedArgs = serde_json::Result<Secret<String>>;

pub fn serialize_args(args: &impl Serialize) -> SerializedArgs {
    text::to_json(args).map(|(json, _)| Secret::new(json))
}

#[must_use]
pub fn read<A: Arguments>(json: &str) -> Option<A> {
    args::parse_stored(json).ok()
}

pub fn plan<'a>(tool: &'static ToolDef, case: &str, key: Option<&'a str>, args: &impl Serialize) -> Option<Plan<'a>> {
    let (_, policy) = tool.task.as_ref()?.cases.iter().find(|(value, _)| *value == case)?;
    Some(Plan { key, policy, arguments: serialize_args(args).ok()? })
}

#[derive(Debug)]
pub struct Plan<'a> {
    pub key: Option<&'a str>,
    pub policy: &'static PolicyDef,
    pub arguments: Secret<String>,
}

#[derive(Debug)]
pub struct WriteRequest<'a> {
    pub identity: Identity,
    pub tool: &'static str,
    pub policy: PolicyDef,
    pub call: CallFacts,
    pub nonce: Option<&'a UsedNonce>,
    /// When the call arrived.
    pub now: Timestamp,
}

/// At most one task is in flight per application and idempotency key or, without a key, per
/// application and fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub application: String,
    pub key: Option<String>,
    pub fingerprint: Digest,
    /// Resource and target name the target lock.
    pub resource: String,
    pub target: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    pub request_id: String,
    pub key_id: String,
    /// JSON without secrets, as in the audit trail.
    pub arguments: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteAnswer {
    pub task_id: String,
    pub tool: String,
    pub target: String,
    pub accepted_at: Timestamp,
    pub hit: bool,
    /// True if it has the tool, target and arguments of this write.
    pub matches: bool,
}

#[derive(Debug, Clone)]
pub enum WriteRefusal {
    Busy {
        /// The caller sees the target, so it may know this task.
        task_id: String,
        retry_after_seconds: u64,
    },
    UsedNonce,
    Full,
    /// The task was not accepted, and a repeat may succeed. The store has logged the reason.
    Unavailable,
    Broken(String),
}

pub(super) struct WriteResult<'a> {
    pub(super) task: &'a WriteAnswer,
    pub(super) catalogue: &'a Catalogue,
    pub(super) tool: &'a ToolDef,
    pub(super) reader: PermissionSet,
}

impl Serialize for WriteResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let WriteAnswer { task_id, tool, target, accepted_at: _, hit, matches } = self.task;
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
