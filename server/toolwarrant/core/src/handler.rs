//! The types that the generated handler traits use.
//!
//! A handler checks neither the caller nor its permissions nor the capabilities of the target. The
//! pipeline makes a [`Call`] and a [`Target`] only after these checks.

use super::access::{Access, Caller, Granted};
use super::advice::Advice;
use super::catalogue::{Catalogue, PolicyDef, ToolDef};
use super::reply::{Frame, Recipient, Sight, TargetIds, find_refused};
use super::tasks::{CallFacts, LongPoll, Poll, TaskPage, TaskQuery, TaskReadError, TaskView, Tasks};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_base::text::Remark;
use toolwarrant_base::wording::{Echo, Words};
use toolwarrant_base::words;

#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    pub tool: &'a str,
    pub arguments: &'a RawValue,
    pub request_id: &'a str,
    pub hold: LongPoll<'a>,
    pub frame: Frame<'a>,
}

/// Proof that the caller holds the tool's permission.
#[derive(Debug)]
pub struct Grant(&'static ToolDef);

impl Grant {
    pub(super) fn new(tool: &'static ToolDef) -> Self {
        Self(tool)
    }
}

/// A permitted call of a tool.
pub struct Call<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The tool.
    pub tool: &'static ToolDef,
    /// The contract of the tool.
    pub catalogue: &'static Catalogue,
    /// The id of the request in logs, audit and errors.
    pub request_id: &'a str,
    /// When the call arrived.
    pub now: Timestamp,
    pub(super) frame: Frame<'a>,
    pub(super) around: Around<'a>,
    hold: LongPoll<'a>,
    target: OnceLock<Box<str>>,
    given: &'a RawValue,
    arguments: OnceLock<Option<Box<RawValue>>>,
    /// The item of the answer about arguments that were left out.
    left_out: OnceLock<Box<str>>,
    task_id: OnceLock<Box<str>>,
    /// Targets of tasks that the handler has listed, by resource and id. A result may show them.
    of_tasks: Mutex<BTreeSet<(String, String)>>,
    /// Set when the handler of a tool that acts or issues begins.
    begun: OnceLock<()>,
}

#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) catalogue: &'static Catalogue,
    pub(super) tasks: &'a dyn Tasks,
    pub(super) access: &'a Access,
    pub(super) clock: &'a Clock,
    /// By the process's clock, and by the later of both.
    pub(super) arrived: (Timestamp, Timestamp),
}

impl<'a> Call<'a> {
    pub(super) fn new(Grant(tool): Grant, caller: &'a Caller, asked: ToolCall<'a>, around: Around<'a>) -> Self {
        let ToolCall { tool: _, arguments: given, request_id, hold, frame } = asked;
        Self {
            caller,
            tool,
            catalogue: around.catalogue,
            request_id,
            now: around.arrived.0,
            frame,
            around,
            hold,
            target: OnceLock::new(),
            given,
            arguments: OnceLock::new(),
            left_out: OnceLock::new(),
            task_id: OnceLock::new(),
            of_tasks: Mutex::default(),
            begun: OnceLock::new(),
        }
    }

    /// Returns true if the caller may see every target in `value`, such as a row of a list. A list
    /// shows the rows that pass. The pipeline refuses a result with any other.
    pub fn sees(&self, value: &impl TargetIds) -> bool {
        find_refused(value, |resource, id| self.caller.application.grants.covers(resource, id)).is_none()
    }

    pub(super) async fn task(&self, id: &str, wait: Option<Duration>) -> Result<TaskView, TaskReadError> {
        let service = &self.catalogue.service;
        let [interval, hold_at_most] =
            [service.poll_interval_seconds, service.hold_seconds].map(|seconds| Duration::from_secs(seconds.into()));
        let poll = Poll { caller: self.caller, id, wait, hold_at_most, hold: self.hold, interval };
        let task = self.around.tasks.poll(poll).await?;
        self.note_task(id);
        Ok(task)
    }

    /// Returns a page of the tasks of the caller's application, newest first.
    ///
    /// # Errors
    /// `NotFound` if `query.before` is no id of a task; `Broken` if the tasks cannot be read.
    pub async fn tasks(&self, query: TaskQuery<'_>) -> Result<TaskPage, TaskReadError> {
        let page = self.around.tasks.list(&self.caller.application.id, query).await?;
        let targets = page.tasks.iter().map(|task| (task.resource.clone(), task.target.clone()));
        ignore_poison(self.of_tasks.lock()).extend(targets);
        Ok(page)
    }

    /// Returns the task of a write in flight on the target of this call, of any application. The
    /// caller sees the target, so it may know the task.
    ///
    /// # Errors
    /// The tasks cannot be read.
    pub async fn find_write(&self) -> Result<Option<Words>, TaskReadError> {
        let (Some(target), Some(id)) = (&self.tool.target, self.target.get()) else { return Ok(None) };
        let found = self.around.tasks.find_write(target.resource, id).await?;
        Ok(found.map(|task_id| words![Echo::of(&task_id)]))
    }

    /// Notes that from here on the call may have changed or issued something.
    pub(super) fn begin(&self) {
        if !self.tool.hints.read_only {
            self.begun.get_or_init(|| ());
        }
    }

    pub(super) fn has_acted(&self) -> bool {
        self.begun.get().is_some()
    }

    pub(super) fn note_target(&self, target: &str) {
        self.target.get_or_init(|| target.into());
    }

    pub(super) fn note_arguments(&self, arguments: Option<Box<RawValue>>) {
        self.arguments.get_or_init(|| arguments);
    }

    pub(super) fn note_left_out(&self, names: &[String]) {
        let names: Vec<_> = names.iter().map(|name| words!["`", Echo::of(name), "`"]).collect();
        let text = words!["Left out, because this tool has no such argument: ", Words::list(&names, ", "), "."];
        let item = json!({"type": "text", "text": text.as_str()});
        self.left_out.get_or_init(|| format!(",{item}").into());
    }

    pub(super) fn note_task(&self, task_id: &str) {
        self.task_id.get_or_init(|| task_id.into());
    }

    pub(super) fn facts(&self) -> CallFacts {
        let (_, arguments, _) = self.notes();
        CallFacts {
            request_id: self.request_id.to_string(),
            key_id: self.caller.key_id.to_string(),
            arguments: arguments.map(|arguments| arguments.get().to_owned()),
        }
    }

    pub(super) fn notes(&self) -> (Option<&str>, Option<&RawValue>, Option<&str>) {
        let arguments = self.arguments.get().map(|noted| noted.as_deref().unwrap_or(self.given));
        (self.target.get().map(Box::as_ref), arguments, self.task_id.get().map(Box::as_ref))
    }
}

impl<'a> From<&'a Call<'_>> for Frame<'a> {
    fn from(call: &'a Call<'_>) -> Self {
        match call.left_out.get() {
            Some(items) => call.frame.with_more(items),
            None => call.frame,
        }
    }
}

impl<'a> From<&'a Call<'a>> for Recipient<'a> {
    fn from(call: &'a Call<'a>) -> Self {
        let grants = &call.caller.application.grants;
        let all = call.catalogue.resources.iter().all(|resource| grants.of(resource.name).is_some_and(Granted::is_all));
        Self { frame: call.into(), sight: (!all).then_some(call as &dyn Sight), body: call.tool.body }
    }
}

/// The target is granted, or that of a task which this call has read.
impl Sight for Call<'_> {
    fn admits(&self, resource: &str, id: &str) -> bool {
        self.caller.application.grants.covers(resource, id)
            || ignore_poison(self.of_tasks.lock()).contains(&(resource.to_owned(), id.to_owned()))
    }
}

/// Proof that the caller may see the target, and that it offers the required capability.
/// Dereferences to the view.
#[derive(Debug)]
pub struct Target<View> {
    view: View,
    policy: Policy<View>,
}

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

pub trait Proof: Send + Sync {
    fn policy(&self, _tool: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        declared
    }
}

impl Proof for () {}

impl<View: Send + Sync> Proof for Target<View> {
    fn policy(&self, tool: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        declared.with_times_of((self.policy)(&self.view, tool, declared))
    }
}

/// Finds the targets of one resource, and reports their capabilities.
pub trait Resource<Id>: Send + Sync + 'static {
    /// The view that a handler gets.
    type View: Send + Sync;
    /// The generated enum of its capabilities.
    type Capability: Copy + Send;

    /// Finds a target that is granted. Tools that list targets filter them with [`Call::sees`].
    fn resolve(&self, caller: &Caller, id: &Id) -> impl Future<Output = Result<Self::View, Unresolved>> + Send;

    /// Returns the present flag of a capability. Clients see the same flag.
    fn flag(view: &Self::View, capability: Self::Capability) -> Flag;

    /// Returns the seconds after which an unavailable target is worth another call. Default: those
    /// of the error code.
    fn retry_after_seconds(&self, _id: &Id) -> Option<u64> {
        None
    }

    /// Returns the settle time and the deadline of a write; other fields are ignored. A deadline
    /// that is not after the settle time is moved to keep the declared gap.
    fn policy(_view: &Self::View, _tool: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        declared
    }
}

/// The reason why a target was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unresolved {
    /// No target has this id. A target that is not granted gets the same answer.
    NotFound,
    /// A target had this id and is gone. It has the id again if it comes back.
    Left,
    /// The upstream that knows the target could not be reached, for this reason. The log and the
    /// doctor have it; clients do not.
    Unavailable(Remark),
}

/// The flag of a capability of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flag {
    /// The flag is true.
    Offered,
    /// The flag is false, for this reason: a lower-case fragment.
    Refused(&'static str),
    /// The flag is false, and something can change that.
    Curable {
        /// The reason: a lower-case fragment.
        why: &'static str,
        /// The remedy: a text of the contract.
        cure: Advice,
    },
    /// The flag is false for this reason, a lower-case fragment, and becomes true by itself. Calls
    /// are refused as `upstream_unavailable`.
    Passing(&'static str),
    /// The flag was true when last read, and the upstream cannot be reached. Calls are refused as
    /// `upstream_unavailable`.
    Unreachable,
}

impl Flag {
    /// Returns the reason why the flag is false; `None` if it is true.
    #[must_use]
    pub const fn refusal(&self) -> Option<&'static str> {
        match self {
            Self::Offered | Self::Unreachable => None,
            Self::Refused(why) | Self::Passing(why) | Self::Curable { why, cure: _ } => Some(why),
        }
    }
}
