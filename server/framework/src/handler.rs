//! What a handler is given and what it gives back.
//!
//! The generated traits are written in these words. A handler never checks who calls, what they may do, or whether the
//! target offers it: a [`Call`] and a [`Target`] cannot be had without those checks.

use super::BoxFuture;
use super::access::Caller;
use super::catalogue::{Catalogue, PolicyDef, ToolDef};
use super::tasks::{LongPoll, Poll, TaskReadError, TaskView, Tasks};
use crate::clock::Timestamp;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;

/// A call as a transport has read it.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// A JSON object.
    pub arguments: &'a RawValue,
    /// Names the request in logs, audit and errors.
    pub request_id: &'a str,
    /// Whether the answer may be held back.
    pub hold: LongPoll,
}

/// Proof that the caller holds the tool's permission.
#[derive(Debug)]
pub struct Grant(&'static ToolDef);

impl Grant {
    pub(super) fn given(tool: &'static ToolDef) -> Self {
        Self(tool)
    }
}

/// One permitted call of one tool.
#[derive(Debug)]
pub struct Call<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// Which tool.
    pub tool: &'static ToolDef,
    /// The contract that the tool belongs to.
    pub catalogue: &'static Catalogue,
    /// Names the request in logs, audit and errors.
    pub request_id: &'a str,
    /// When it arrived.
    pub now: Timestamp,
    pub(super) tasks: &'a dyn Tasks,
    hold: LongPoll,
    target: OnceLock<Box<str>>,
    given: &'a RawValue,
    arguments: OnceLock<Option<Box<RawValue>>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        Grant(tool): Grant,
        caller: &'a Caller,
        catalogue: &'static Catalogue,
        tasks: &'a dyn Tasks,
        asked: ToolCall<'a>,
        now: Timestamp,
    ) -> Self {
        let ToolCall { tool: _, arguments: given, request_id, hold } = asked;
        Self {
            caller,
            tool,
            catalogue,
            request_id,
            now,
            tasks,
            hold,
            target: OnceLock::new(),
            given,
            arguments: OnceLock::new(),
        }
    }

    /// What has become of a task. Held until it ends or `wait` is over; without `wait`, until the poll is due.
    ///
    /// # Errors
    /// See [`TaskReadError`].
    pub async fn task(&self, id: &str, wait: Option<Duration>) -> Result<TaskView, TaskReadError> {
        let interval = Duration::from_secs(self.catalogue.service.poll_interval_seconds.into());
        self.tasks.poll(Poll { caller: self.caller, id, wait, hold: self.hold, interval }).await
    }

    /// Sets the target in the audit line.
    pub(super) fn note_target(&self, target: &str) {
        self.target.get_or_init(|| target.into());
    }

    /// Sets the arguments in the audit line. `None`: the arguments as given.
    pub(super) fn note_arguments(&self, arguments: Option<Box<RawValue>>) {
        self.arguments.get_or_init(|| arguments);
    }

    pub(super) fn noted(&self) -> (Option<&str>, Option<&RawValue>) {
        let arguments = self.arguments.get().map(|noted| noted.as_deref().unwrap_or(self.given));
        (self.target.get().map(Box::as_ref), arguments)
    }
}

/// Proof that the caller can see the target and that it offers what the tool requires. Reads as the view itself.
#[derive(Debug)]
pub struct Target<View> {
    view: View,
    policy: Policy<View>,
}

/// [`Resource::policy`] of the resource that the target is of.
type Policy<View> = fn(&View, &'static ToolDef, PolicyDef) -> PolicyDef;

impl<View> Target<View> {
    pub(super) fn proven(view: View, policy: Policy<View>) -> Self {
        Self { view, policy }
    }
}

impl<View> Deref for Target<View> {
    type Target = View;
    fn deref(&self) -> &View {
        &self.view
    }
}

/// What a tool knows of its target by the time its handler is called: a [`Target`], or `()` where it acts on nothing.
pub trait Proof: Send + Sync {
    /// The policy of a call of `tool`, given those of the contract.
    fn policy(&self, _tool: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        declared
    }
}

impl Proof for () {}

impl<View: Send + Sync> Proof for Target<View> {
    fn policy(&self, tool: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        declared.paced_as((self.policy)(&self.view, tool, declared))
    }
}

/// Something that tools act on, found by its identifier.
pub trait Resource<Id>: Send + Sync + 'static {
    /// What is known of one of them.
    type View: Send + Sync;
    /// The generated enum of its capabilities.
    type Capability: Copy + Send;

    /// Finds what `id` names. It is granted to `caller` by then; a tool that lists must apply the grants itself.
    fn resolve<'a>(&'a self, caller: &'a Caller, id: &'a Id) -> BoxFuture<'a, Result<Self::View, Unresolved>>;

    /// Whether it offers a capability at present: the flag that the wire shows.
    fn flag(view: &Self::View, capability: Self::Capability) -> Flag;

    /// Returns the settle time and the deadline of a write by `tool` on this target. Other fields are ignored. A deadline that is not
    /// after the settle time is moved to keep the declared gap.
    fn policy(_view: &Self::View, _tool: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        declared
    }
}

/// Why a target was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unresolved {
    /// It does not exist. A client is told the same of what is not granted to it.
    NotFound,
    /// Whoever knows could not be reached.
    Unavailable,
}

/// A capability flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flag {
    /// The flag is true.
    Offered,
    /// The flag is false, and why: a lower-case fragment.
    Refused(Cow<'static, str>),
}
