//! What the pipeline asks of whoever keeps tasks: whether a write is in flight already, and to accept one.

use super::BoxFuture;
use super::args::{self, Arguments};
use super::catalogue::{Catalogue, Terms, ToolDef};
use super::text::Secret;
use crate::clock::Timestamp;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::fmt::Debug;

/// Keeps tasks.
pub trait Tasks: Debug + Send + Sync + 'static {
    /// The task in flight that `proposal` repeats, if there is one. Touches nothing else.
    fn repeat<'a>(&'a self, proposal: &'a Proposal<'a>) -> BoxFuture<'a, Result<Option<Accepted>, NotAccepted>>;

    /// Accepts `command`, durably, and decides races again: the answer may be a task that came first.
    fn accept<'a>(
        &'a self,
        proposal: &'a Proposal<'a>,
        command: Secret<String>,
    ) -> BoxFuture<'a, Result<Accepted, NotAccepted>>;
}

/// A generated command: a write that a handler found sound.
pub trait Command {
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

/// How a call of `tool` is carried out: by its terms for `case`.
pub fn plan<'a>(tool: &'static ToolDef, case: &str, key: Option<&'a str>, args: &impl Serialize) -> Option<Plan<'a>> {
    let (_, terms) = tool.task.as_ref()?.cases.iter().find(|(value, _)| *value == case)?;
    Some(Plan { key, terms, arguments: written(args).ok()? })
}

/// How one call of a tool of tasks is to be carried out.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The idempotency key that the client gave.
    pub key: Option<&'a str>,
    /// The terms of this call.
    pub terms: &'static Terms,
    /// The typed arguments as canonical JSON, secrets included, without the key.
    pub arguments: Secret<String>,
}

/// A write that wants to become a task.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// The application whose task it is.
    pub application: &'a str,
    /// The tool.
    pub tool: &'static str,
    /// What kind of thing it acts on.
    pub resource: &'static str,
    /// Which one.
    pub target: Box<str>,
    /// The idempotency key: given, or derived from application, tool and arguments by whoever keeps the tasks.
    pub key: Option<Box<str>>,
    /// The terms.
    pub terms: &'static Terms,
    /// The typed arguments as canonical JSON, secrets included.
    pub arguments: Secret<String>,
    /// When the call arrived.
    pub now: Timestamp,
}

/// A task that answers a write.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// Names it.
    pub task_id: String,
    /// The tool that made it.
    pub tool: String,
    /// What it acts on.
    pub target: String,
    /// Its state.
    pub status: &'static str,
    /// Whether it was in flight before.
    pub hit: bool,
    /// Whether it is for the same tool, target and arguments.
    pub matches: bool,
}

/// Why a write did not become a task.
#[derive(Debug, Clone)]
pub enum NotAccepted {
    /// Another write on the same target is in flight.
    Busy {
        /// That task, if the caller may see it.
        task_id: Option<String>,
        /// When a repeat is worth while.
        retry_after_seconds: u64,
    },
    /// There is no room for more tasks.
    Full,
    /// It failed; why is for the log.
    Broken(String),
}

impl Accepted {
    /// The result that a client sees.
    pub(super) fn shown<'a>(&'a self, catalogue: &'a Catalogue, tool: &'a ToolDef) -> impl Serialize + 'a {
        Shown { task: self, catalogue, tool }
    }
}

struct Shown<'a> {
    task: &'a Accepted,
    catalogue: &'a Catalogue,
    tool: &'a ToolDef,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Accepted { task_id, tool, target, status, hit, matches } = self.task;
        let state = self.catalogue.states.iter().find(|state| state.name == *status);
        let next = state.map_or("", |state| state.next_step);
        let mut map = serializer.serialize_map(Some(9))?;
        map.serialize_entry("task_id", task_id)?;
        map.serialize_entry("tool", tool)?;
        map.serialize_entry(self.tool.target.as_ref().map_or("target", |target| target.arg), target)?;
        map.serialize_entry("status", status)?;
        map.serialize_entry("terminal", &(*status != "dispatched"))?;
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

/// Keeps none: for contracts whose tools make no tasks.
#[derive(Debug, Clone, Copy)]
pub struct NoTasks;

impl Tasks for NoTasks {
    fn repeat<'a>(&'a self, _: &'a Proposal<'a>) -> BoxFuture<'a, Result<Option<Accepted>, NotAccepted>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn accept<'a>(&'a self, _: &'a Proposal<'a>, _: Secret<String>) -> BoxFuture<'a, Result<Accepted, NotAccepted>> {
        Box::pin(std::future::ready(Err(NotAccepted::Full)))
    }
}
