//! The checked contract: references are resolved, defaults are filled in, and the order is that of
//! the files.

mod http;
mod words;

pub use http::Http;
pub use words::{Phrases, ReadersSpec, ReservedSpec};

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A whole contract.
#[derive(Debug)]
pub struct Contract {
    /// Identity, revisions and limits.
    pub service: ServiceSpec,
    /// The longest texts that clients take.
    pub readers: ReadersSpec,
    /// Sentences that several tools share.
    pub phrases: Phrases,
    /// Sentences that handlers answer with, by name.
    pub texts: Vec<(String, String)>,
    /// Numbers that handlers and texts share, by name.
    pub numbers: Vec<(String, u32)>,
    /// Permissions.
    pub permissions: Vec<Arc<PermissionSpec>>,
    /// The kinds of things that tools act on.
    pub resources: Vec<Arc<ResourceSpec>>,
    /// The readings that verify tasks.
    pub probes: Vec<Arc<ProbeSpec>>,
    /// Error codes: one for each of [`crate::ROLES`], in their order, and then the contract's own.
    pub errors: Vec<Arc<ErrorCode>>,
    /// The states of a task, in the order of [`crate::STATES`]; empty if no tool makes tasks.
    pub states: Vec<State>,
    /// Named types, each after those that it is made of: those of resources, of the framework, and
    /// the contract's own.
    pub types: Vec<Arc<NamedType>>,
    /// The files of `tools/`, as service.toml lists them.
    pub domains: Vec<Domain>,
    /// The version and the digest of the record that was released last; `None` if there is no such
    /// record, or it cannot be read.
    pub released: Option<[String; 2]>,
    /// The names that were retired.
    pub reserved: ReservedSpec,
    /// Texts as they are written, with placeholders, by the text with their values.
    pub written: HashMap<String, String>,
    /// Every file that was read.
    pub files: Vec<PathBuf>,
}

impl Contract {
    /// Returns all tools, in the order of the files.
    pub fn tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.domains.iter().flat_map(|domain| &domain.tools)
    }

    /// Finds the tool that reads tasks. There is one if any tool makes tasks.
    #[must_use]
    pub fn read_tool(&self) -> Option<&ToolSpec> {
        self.tools().find(|tool| matches!(tool.effect, EffectSpec::ReadTask))
    }

    /// Returns the permissions with which a key may call the tool: the one that it needs, and those
    /// that imply it.
    pub fn callers(&self, tool: &ToolSpec) -> impl Iterator<Item = &str> {
        let may_call = |held: &&Arc<PermissionSpec>| held.grants.contains(&tool.permission.index);
        self.permissions.iter().filter(may_call).map(|held| held.name.as_str())
    }

    /// Finds the error that plays a role. Every role of [`crate::ROLES`] is played.
    pub fn role(&self, role: &str) -> Option<&Arc<ErrorCode>> {
        self.errors.iter().find(|error| error.role.as_deref() == Some(role))
    }
}

/// Identity, revisions and limits of the service.
#[derive(Debug)]
pub struct ServiceSpec {
    pub name: String,
    pub title: String,
    pub version: String,
    pub doc: String,
    pub served: Vec<&'static str>,
    pub requests_per_minute: u32,
    pub poll_interval_seconds: u32,
    pub hold_seconds: u32,
    pub wait_seconds: u32,
}

/// A permission.
#[derive(Debug)]
pub struct PermissionSpec {
    /// Its name.
    pub name: String,
    /// The actions that it allows an application.
    pub doc: String,
    /// Its position in [`Contract::permissions`].
    pub index: usize,
    /// The permissions that its declaration names under `implies`.
    pub implies: Vec<String>,
    /// Positions in [`Contract::permissions`] of all permissions that it grants, including itself,
    /// ascending.
    pub grants: Vec<usize>,
}

/// A kind of thing that tools act on.
#[derive(Debug)]
pub struct ResourceSpec {
    /// Its name.
    pub name: String,
    /// Its meaning.
    pub doc: String,
    /// The type of its identifier.
    pub id: Arc<NamedType>,
    /// The states that one can be in; empty if the contract does not say.
    pub states: Vec<Member>,
    /// The capabilities that one may offer.
    pub capabilities: Vec<Member>,
    /// Where a client finds an identifier; empty if the contract does not say.
    pub find: String,
}

/// A name with its meaning: a capability, a value of an enum.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name on the wire.
    pub name: String,
    /// Its meaning.
    pub doc: String,
}

/// A reading that verifies a task.
#[derive(Debug)]
pub struct ProbeSpec {
    /// Its name.
    pub name: String,
    /// The state that it reads.
    pub doc: String,
    /// True if it compares with a reading from before the send.
    pub baseline: bool,
    /// The next step if that reading failed; empty if there is no special one.
    pub unread: String,
    /// The next step if its task ended as `timeout`; empty if there is no special one.
    pub timeout: String,
    /// The next step if its task ended as `success`; empty if there is no special one.
    pub success: String,
}

/// An error code.
#[derive(Debug)]
pub struct ErrorCode {
    /// The code on the wire.
    pub code: String,
    /// The role that it plays for the framework, if it has one.
    pub role: Option<String>,
    /// True if repeating the call can help.
    pub retryable: bool,
    /// Seconds to wait before a repeat if no better value is known; 0 if it is not retryable.
    pub retry_after_seconds: u32,
    /// HTTP status.
    pub http: u16,
    /// JSON-RPC code.
    pub jsonrpc: i32,
    /// The event that it reports.
    pub meaning: String,
    /// Its meaning in a few words, for descriptions; may be empty.
    pub brief: String,
    /// The next step: sentences. `{field}` stands for the value of a field.
    pub remedy: String,
    /// Its fields besides code, message and retryable.
    pub fields: Vec<Field>,
}

/// A state of a task.
#[derive(Debug)]
pub struct State {
    /// Its name on the wire.
    pub name: String,
    /// Its meaning in a few words, for descriptions.
    pub brief: String,
    /// Its meaning.
    pub meaning: String,
    /// The next step: sentences.
    pub next_step: String,
    /// The next step by the platform's report, in place of `next_step`.
    pub reported: Vec<(String, String)>,
}

/// A named type.
#[derive(Debug)]
pub struct NamedType {
    /// Its name, UpperCamelCase.
    pub name: String,
    /// Its meaning.
    pub doc: String,
    /// Its kind and the rule for its values.
    pub kind: Kind,
}

/// The kind of a named type, with the rule for its values.
#[derive(Debug)]
pub enum Kind {
    /// Text.
    String(StringSpec),
    /// A number from `min` to `max`.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// One of some strings.
    Enum(Vec<Member>),
    /// Fields.
    Object(Vec<Field>),
}

/// The rule for the strings of a type. Lengths are in characters.
#[derive(Debug)]
pub struct StringSpec {
    /// Shortest length.
    pub min: usize,
    /// Greatest length.
    pub max: usize,
    /// The text that every value begins with.
    pub prefix: String,
    /// The ASCII ranges of the characters after the prefix. Empty: any character.
    pub charset: Vec<(char, char)>,
}

/// The type of a field.
#[derive(Debug, Clone)]
pub enum Type {
    /// Any text.
    String,
    /// Any 64-bit integer.
    Integer,
    /// true or false.
    Boolean,
    /// RFC 3339 in UTC.
    Timestamp,
    /// Results only: the https address of a page.
    Url,
    /// A named type.
    Named(Arc<NamedType>),
    /// A list.
    List(Box<Type>),
}

impl Type {
    /// Returns the type of a list's items, or the type itself.
    #[must_use]
    pub fn element(&self) -> &Self {
        match self {
            Self::List(inner) => inner.element(),
            other => other,
        }
    }

    /// Returns the named type, if it is one.
    #[must_use]
    pub fn as_named(&self) -> Option<&Arc<NamedType>> {
        match self {
            Self::Named(named) => Some(named),
            _ => None,
        }
    }

    /// Returns the object type, if this is one or a list of one.
    #[must_use]
    pub fn object(&self) -> Option<&Arc<NamedType>> {
        self.element().as_named().filter(|named| matches!(named.kind, Kind::Object(_)))
    }
}

/// An argument of a tool or a field of an object.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name on the wire.
    pub name: String,
    /// Its meaning.
    pub doc: String,
    /// The type of its value.
    pub ty: Type,
    /// Arguments only: may be absent, null or empty.
    pub optional: bool,
    /// Results only: may be null.
    pub nullable: bool,
    /// True if the value appears only in the one place where it belongs.
    pub secret: bool,
    /// True if it is text from outside, which is cleaned and truncated.
    pub untrusted: bool,
    /// Results only: true if it is text in the service's own words. Every other text is `untrusted`
    /// or `secret`.
    pub ours: bool,
    /// Results only: true if clients get the doc, because the name is not enough.
    pub told: bool,
    /// The value of an absent optional argument. It fits the type.
    pub default: Option<Value>,
    /// Arguments only: the names that it has in tasks of former contracts.
    pub formerly: Vec<String>,
}

/// A file of `tools/`. Its tools share a handler trait.
#[derive(Debug)]
pub struct Domain {
    /// The name of the file without its ending.
    pub name: String,
    /// Its tools.
    pub tools: Vec<ToolSpec>,
}

/// A tool.
#[derive(Debug)]
pub struct ToolSpec {
    /// Its name on the wire.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its place: `spec/tools/x.toml:7`.
    pub source: String,
    /// The permission that it needs.
    pub permission: Arc<PermissionSpec>,
    /// The resource that it acts on.
    pub target: Option<TargetSpec>,
    /// The kind of operation.
    pub effect: EffectSpec,
    /// Its twin under `/v1`, if it has one.
    pub http: Option<Http>,
    /// Its purpose.
    pub summary: String,
    /// When to use it; follows "Use it".
    pub use_when: String,
    /// The alternative, and when to use it; empty if no other tool could be meant.
    pub not_when: String,
    /// Its result in words; empty for tools that make tasks.
    pub returns: String,
    /// Other facts that an agent must know.
    pub notes: Vec<String>,
    /// Its arguments, including derived ones.
    pub args: Vec<Field>,
    /// The object type of its result: a named one or, for tools of tasks, a derived one.
    pub result: Arc<NamedType>,
    /// Errors of the tool itself, without those of the checks before it.
    pub own_errors: Vec<Arc<ErrorCode>>,
    /// Every error that a call can end with, derived ones first.
    pub errors: Vec<Arc<ErrorCode>>,
    /// Calls that are valid.
    pub examples: Vec<Example>,
}

impl ToolSpec {
    /// Returns true if the tool makes or reads tasks.
    #[must_use]
    pub fn tells_of_tasks(&self) -> bool {
        matches!(self.effect, EffectSpec::Task(_) | EffectSpec::ReadTask)
    }

    /// Returns the terms of its tasks, if it makes any.
    #[must_use]
    pub fn task(&self) -> Option<&TaskSpec> {
        match &self.effect {
            EffectSpec::Task(task) => Some(task),
            EffectSpec::Read | EffectSpec::ReadTask | EffectSpec::Issue => None,
        }
    }

    /// Returns the hints of `tools/list`, which follow from the effect. All tools reach beyond this
    /// server.
    #[must_use]
    pub fn hints(&self) -> HintsSpec {
        match &self.effect {
            EffectSpec::Read | EffectSpec::ReadTask => {
                HintsSpec { read_only: true, destructive: false, idempotent: true }
            }
            EffectSpec::Issue => HintsSpec { read_only: false, destructive: false, idempotent: false },
            EffectSpec::Task(task) => {
                let idempotent = task.cases.iter().all(|(_, terms)| terms.idempotent);
                HintsSpec { read_only: false, destructive: true, idempotent }
            }
        }
    }
}

/// The hints that `tools/list` gives a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HintsSpec {
    /// It changes nothing.
    pub read_only: bool,
    /// It can destroy existing data.
    pub destructive: bool,
    /// A repeat with the same arguments has no further effect.
    pub idempotent: bool,
}

/// The target of a tool.
#[derive(Debug)]
pub struct TargetSpec {
    /// The resource.
    pub resource: Arc<ResourceSpec>,
    /// The argument that contains its identifier.
    pub arg: String,
    /// The capability that the target must offer.
    pub requires: Option<String>,
}

/// The kind of operation of a tool.
#[derive(Debug)]
pub enum EffectSpec {
    /// Changes nothing.
    Read,
    /// Reads a task. The framework does it without a handler.
    ReadTask,
    /// Creates something and returns it at once.
    Issue,
    /// Makes a task.
    Task(TaskSpec),
}

impl EffectSpec {
    /// Returns its name in a contract.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadTask => "read_task",
            Self::Issue => "issue",
            Self::Task(_) => "task",
        }
    }
}

/// The terms of a tool's tasks.
#[derive(Debug)]
pub struct TaskSpec {
    /// The argument whose value selects the case.
    pub select: Option<String>,
    /// The policy for each value of that argument. A single entry with an empty value applies to
    /// all calls.
    pub cases: Vec<(String, PolicySpec)>,
    /// The states in which such tasks usually end, if an agent should know.
    pub usually_ends: Vec<String>,
}

/// The rules by which one operation is sent, verified and ended.
#[derive(Debug, Clone)]
pub struct PolicySpec {
    /// The probe that verifies it. `None`: it is never verified and never sent again.
    pub probe: Option<Arc<ProbeSpec>>,
    /// True if it may be sent again.
    pub idempotent: bool,
    /// Longest time until the effect of an accepted request shows, in seconds.
    pub settle_seconds: u32,
    /// Longest time from the first possible send to the end of the task, in seconds.
    pub deadline_seconds: u32,
}

/// A call that is valid.
#[derive(Debug)]
pub struct Example {
    /// The purpose of the example.
    pub title: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Some members of the result.
    pub result: Map<String, Value>,
}
