//! The port to whatever keeps tasks: find a duplicate write, accept a write, read a task.

use super::BoxFuture;
use super::access::Caller;
use super::args::{self, Arguments};
use super::catalogue::{Catalogue, PolicyDef, StateDef, ToolDef};
use super::generated::names;
use super::text::Secret;
use crate::clock::Timestamp;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::fmt::Debug;
use std::time::Duration;

/// The state of a task, as everybody outside sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskStatus {
    /// It was accepted and has not ended.
    Dispatched,
    /// The effect was measured.
    Success,
    /// The upstream says so, and there is no means to measure.
    SuccessUnverified,
    /// The upstream says that it failed, or nothing ever left.
    Failed,
    /// The upstream says that it succeeded, and the effect is measurably absent.
    FailedSilent,
    /// Nobody can say.
    Timeout,
}
names!(TaskStatus {
    Dispatched = "dispatched",
    Success = "success",
    SuccessUnverified = "success_unverified",
    Failed = "failed",
    FailedSilent = "failed_silent",
    Timeout = "timeout",
});

impl TaskStatus {
    /// Whether it never changes again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Dispatched)
    }

    /// What the contract says of it; `None` where it has no tasks.
    #[must_use]
    pub fn def(self, catalogue: &Catalogue) -> Option<&'static StateDef> {
        catalogue.states.get(self as usize)
    }
}

/// What the upstream said of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpstreamReport {
    /// It is done.
    Success,
    /// It failed.
    Failure,
    /// Nothing that could be understood; it may have been done.
    NoAnswer,
    /// Nothing was asked of it: no request ever left.
    NotSent,
}
names!(UpstreamReport {
    Success = "success",
    Failure = "failure",
    NoAnswer = "no_answer",
    NotSent = "not_sent",
});

/// Keeps tasks.
pub trait Tasks: Debug + Send + Sync + 'static {
    /// The task in flight that `proposal` repeats, if there is one. Touches nothing else.
    fn repeat<'a>(
        &'a self,
        proposal: &'a WriteRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, WriteRefusal>>;

    /// Accepts `command`, durably, and decides races again: the answer may be a task that came first.
    fn accept<'a>(
        &'a self,
        proposal: &'a WriteRequest<'a>,
        command: Secret<String>,
    ) -> BoxFuture<'a, Result<AcceptedTask, WriteRefusal>>;

    /// What has become of a task, if the caller may see it. The answer may be held: until the task ends, or as `poll` says.
    fn poll<'a>(&'a self, poll: Poll<'a>) -> BoxFuture<'a, Result<TaskView, TaskReadError>>;
}

/// A question about a task.
#[derive(Debug, Clone, Copy)]
pub struct Poll<'a> {
    /// Who asks: they see what their application made, and what acts on targets that it sees.
    pub caller: &'a Caller,
    /// The task.
    pub id: &'a str,
    /// How long to wait for its end; left out, until the poll is due.
    pub wait: Option<Duration>,
    /// Whether the answer may be held at all.
    pub hold: LongPoll,
    /// The shortest interval between two polls.
    pub interval: Duration,
}

/// Whether an answer may be held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongPoll {
    /// It may.
    Allowed,
    /// Others wait for it: the rest of a batch.
    Never,
}

/// What is told of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// The tool that made it.
    pub tool: String,
    /// What kind of thing it acts on.
    pub resource: String,
    /// Which one.
    pub target: String,
    /// Its state.
    pub status: TaskStatus,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it ends at the latest.
    pub deadline_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// When to poll again; `None` once it has ended.
    pub poll_after_seconds: Option<u64>,
    /// What its end rests on.
    pub evidence: Option<Evidence>,
    /// When it was refunded, if it was.
    pub refunded_at: Option<Timestamp>,
}

/// What the end of a task rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The name of the probe that was read, or `upstream_answer` where nothing could be.
    pub checked: String,
    /// What would have shown the effect.
    pub expected: String,
    /// What was seen.
    pub observed: String,
    /// What the upstream said.
    pub reported: UpstreamReport,
    /// When it was seen.
    pub at: Timestamp,
}

/// Why nothing is told of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskReadError {
    /// There is none, or it is none of the caller's; the two must not be told apart.
    NotFound,
    /// It could not be read; why is for the log.
    Broken(String),
}

/// A generated command: a write that a handler found sound.
pub trait WriteCommand {
    /// The tool that it belongs to.
    fn tool(&self) -> &'static str;
    /// Its arguments as JSON.
    fn arguments(&self) -> Written;
}

/// Typed arguments as canonical JSON, secrets included, without the idempotency key.
pub type Written = serde_json::Result<Secret<String>>;

/// Writes `args` down.
///
/// # Errors
/// If they cannot be written as JSON.
pub fn written(args: &impl Serialize) -> Written {
    serde_json::to_string(args).map(Secret::new)
}

/// Takes back what [`written`] wrote; `None` if a change of the contract no longer admits it.
#[must_use]
pub fn read<A: Arguments>(json: &str) -> Option<A> {
    args::parse(json).ok().map(|taken| taken.args)
}

/// How a call of `tool` is carried out: by its policy for `case`.
pub fn plan<'a>(tool: &'static ToolDef, case: &str, key: Option<&'a str>, args: &impl Serialize) -> Option<Plan<'a>> {
    let (_, policy) = tool.task.as_ref()?.cases.iter().find(|(value, _)| *value == case)?;
    Some(Plan { key, policy, arguments: written(args).ok()? })
}

/// How one call of a tool of tasks is to be carried out.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The idempotency key that the client gave.
    pub key: Option<&'a str>,
    /// The policy of this call.
    pub policy: &'static PolicyDef,
    /// The typed arguments as canonical JSON, secrets included, without the key.
    pub arguments: Secret<String>,
}

/// A write that wants to become a task.
#[derive(Debug)]
pub struct WriteRequest<'a> {
    /// The application whose task it is.
    pub application: &'a str,
    /// The tool.
    pub tool: &'static str,
    /// What kind of thing it acts on.
    pub resource: &'static str,
    /// Which one.
    pub target: Box<str>,
    /// The idempotency key, if one was given; without one the call is known by application, tool and arguments.
    pub key: Option<Box<str>>,
    /// The policy: the contract's, with the times that `Resource::policy` returns.
    pub policy: PolicyDef,
    /// The typed arguments as canonical JSON, secrets included.
    pub arguments: Secret<String>,
    /// When the call arrived.
    pub now: Timestamp,
}

/// A task that answers a write.
#[derive(Debug, Clone)]
pub struct AcceptedTask {
    /// Names it.
    pub task_id: String,
    /// The tool that made it.
    pub tool: String,
    /// What it acts on.
    pub target: String,
    /// Its state.
    pub status: TaskStatus,
    /// Whether it was in flight before.
    pub hit: bool,
    /// Whether it is for the same tool, target and arguments.
    pub matches: bool,
}

/// Why a write did not become a task.
#[derive(Debug, Clone)]
pub enum WriteRefusal {
    /// Another write on the same target is in flight.
    Busy {
        /// The id of that task. The caller may know it, because the caller sees the target.
        task_id: String,
        /// When a repeat is worth while.
        retry_after_seconds: u64,
    },
    /// There is no room for more tasks.
    Full,
    /// It failed; why is for the log.
    Broken(String),
}

impl AcceptedTask {
    /// The result that a client sees.
    pub(super) fn shown<'a>(&'a self, catalogue: &'a Catalogue, tool: &'a ToolDef) -> impl Serialize + 'a {
        Shown { task: self, catalogue, tool }
    }
}

struct Shown<'a> {
    task: &'a AcceptedTask,
    catalogue: &'a Catalogue,
    tool: &'a ToolDef,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let AcceptedTask { task_id, tool, target, status, hit, matches } = self.task;
        let next = status.def(self.catalogue).map_or("", |state| state.next_step);
        let mut map = serializer.serialize_map(Some(9))?;
        map.serialize_entry("task_id", task_id)?;
        map.serialize_entry("tool", tool)?;
        map.serialize_entry(self.tool.target.as_ref().map_or("target", |target| target.arg), target)?;
        map.serialize_entry("status", status.as_str())?;
        map.serialize_entry("terminal", &status.is_terminal())?;
        map.serialize_entry("idempotent_hit", hit)?;
        map.serialize_entry("request_matches", matches)?;
        map.serialize_entry("poll_after_seconds", &self.catalogue.service.poll_interval_seconds)?;
        if *matches {
            map.serialize_entry("next_step", next)?;
        } else {
            map.serialize_entry("next_step", &format!("Nothing of this call was sent. {next}"))?;
        }
        map.end()
    }
}
