//! The contract once nothing about it is in doubt: every reference resolved, every default filled in, order as written.

use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// A whole contract.
#[derive(Debug)]
pub struct Contract {
    /// The folder as its service names it, such as `spec`; empty until whoever loads it says so.
    pub source: String,
    /// Identity, revisions and limits.
    pub service: ServiceSpec,
    /// Sentences that descriptions carry wherever they apply.
    pub phrases: Phrases,
    /// Permissions.
    pub permissions: Vec<Arc<PermissionSpec>>,
    /// What tools act on.
    pub resources: Vec<Arc<ResourceSpec>>,
    /// What can be read to verify a task.
    pub probes: Vec<Arc<ProbeSpec>>,
    /// Error codes: one for each of [`crate::ROLES`], in their order, and then the contract's own.
    pub errors: Vec<Arc<ErrorCode>>,
    /// The states of a task, in the order of [`crate::STATES`]; empty when no tool makes tasks.
    pub states: Vec<State>,
    /// Named types, each after those that it is made of; what arguments of tools of tasks are made of comes last.
    pub types: Vec<Arc<NamedType>>,
    /// The files of `tools/`, as service.toml lists them.
    pub domains: Vec<Domain>,
    /// Every file that was read.
    pub files: Vec<PathBuf>,
}

impl Contract {
    /// Every tool, in the order of the files.
    pub fn tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.domains.iter().flat_map(|domain| &domain.tools)
    }

    /// The tool that reads tasks, which there is if any tool makes them.
    #[must_use]
    pub fn read_tool(&self) -> Option<&ToolSpec> {
        self.tools().find(|tool| matches!(tool.effect, EffectSpec::ReadTask))
    }

    /// The error that plays `role`; every role of [`crate::ROLES`] is played.
    pub fn role(&self, role: &str) -> Option<&Arc<ErrorCode>> {
        self.errors.iter().find(|error| error.role.as_deref() == Some(role))
    }
}

/// Identity, revisions and limits of the service.
#[derive(Debug)]
#[expect(missing_docs, reason = "each field is the key of the same name in service.toml")]
pub struct ServiceSpec {
    pub name: String,
    pub title: String,
    pub version: String,
    pub doc: String,
    pub served: Vec<String>,
    pub accepted: Vec<String>,
    pub requests_per_minute: u32,
    pub poll_interval_seconds: u32,
}

/// Sentences that descriptions carry wherever they apply. Empty where no tool needs them.
#[derive(Debug, Default)]
pub struct Phrases {
    /// In every tool that requires or shows capabilities.
    pub capability: String,
    /// In every tool that requires a capability.
    pub forbidden: String,
    /// In every tool.
    pub retryable: String,
    /// In every tool that makes tasks.
    pub task: String,
}

/// A permission.
#[derive(Debug)]
pub struct PermissionSpec {
    /// Its name.
    pub name: String,
    /// What it lets an application do.
    pub doc: String,
    /// Positions in [`Contract::permissions`] of all that it grants, itself included, ascending.
    pub grants: Vec<usize>,
}

/// What tools act on.
#[derive(Debug)]
pub struct ResourceSpec {
    /// Its name.
    pub name: String,
    /// What it is.
    pub doc: String,
    /// The type of its identifier.
    pub id: Arc<NamedType>,
    /// What it may offer.
    pub capabilities: Vec<Member>,
}

/// A name with its meaning: a capability, a value of an enum.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name on the wire.
    pub name: String,
    /// What it means.
    pub doc: String,
}

/// What can be read to verify a task.
#[derive(Debug)]
pub struct ProbeSpec {
    /// Its name.
    pub name: String,
    /// What it reads.
    pub doc: String,
    /// Whether it compares with a reading from before the send.
    pub baseline: bool,
}

/// An error code.
#[derive(Debug)]
pub struct ErrorCode {
    /// The code on the wire.
    pub code: String,
    /// What the framework finds it by.
    pub role: Option<String>,
    /// Whether repeating the call can help.
    pub retryable: bool,
    /// HTTP status.
    pub http: u16,
    /// JSON-RPC code.
    pub jsonrpc: i32,
    /// What happened.
    pub meaning: String,
    /// What to do next: a phrase without a full stop.
    pub remedy: String,
    /// What it carries beyond code, message and retryable.
    pub fields: Vec<Field>,
}

/// A state of a task.
#[derive(Debug)]
pub struct State {
    /// Its name on the wire.
    pub name: String,
    /// What it means.
    pub meaning: String,
    /// What to do next: a sentence.
    pub next_step: String,
}

/// A named type.
#[derive(Debug)]
pub struct NamedType {
    /// Its name, UpperCamelCase.
    pub name: String,
    /// What it is.
    pub doc: String,
    /// What values it has.
    pub kind: Kind,
}

/// What values a named type has.
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

/// Which strings a type has. Lengths in characters.
#[derive(Debug)]
pub struct StringSpec {
    /// Shortest.
    pub min: usize,
    /// Longest.
    pub max: usize,
    /// What every value begins with.
    pub prefix: String,
    /// ASCII ranges that the rest is made of; empty: any character.
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
    /// A named type.
    Named(Arc<NamedType>),
    /// A list.
    List(Box<Type>),
}

impl Type {
    /// What a list is made of, or the type itself.
    #[must_use]
    pub fn element(&self) -> &Self {
        match self {
            Self::List(inner) => inner.element(),
            other => other,
        }
    }

    /// The named type that it is, if it is one.
    #[must_use]
    pub fn named(&self) -> Option<&Arc<NamedType>> {
        match self {
            Self::Named(named) => Some(named),
            _ => None,
        }
    }

    /// The object that it is, or is a list of.
    #[must_use]
    pub fn object(&self) -> Option<&Arc<NamedType>> {
        self.element().named().filter(|named| matches!(named.kind, Kind::Object(_)))
    }
}

/// An argument of a tool or a field of an object.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name on the wire.
    pub name: String,
    /// What it is.
    pub doc: String,
    /// What values it has.
    pub ty: Type,
    /// Arguments only: may be absent, null or empty.
    pub optional: bool,
    /// Results only: may be null.
    pub nullable: bool,
    /// Never shown anywhere but where it belongs.
    pub secret: bool,
    /// Written by somebody outside: cleaned and capped.
    pub untrusted: bool,
    /// Taken when an optional argument is absent; fits the type.
    pub default: Option<Value>,
}

/// A file of `tools/`: what one trait of handlers is made of.
#[derive(Debug)]
pub struct Domain {
    /// The file's name without its ending.
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
    /// Where it stands: `spec/tools/x.toml:7`.
    pub source: String,
    /// The permission that it needs.
    pub permission: Arc<PermissionSpec>,
    /// What it acts on.
    pub target: Option<TargetSpec>,
    /// What kind of operation it is.
    pub effect: EffectSpec,
    /// Its twin under `/v1`, if it has one.
    pub http: Option<Http>,
    /// What it does.
    pub summary: String,
    /// When to use it.
    pub use_when: String,
    /// When not to, and what instead.
    pub not_when: String,
    /// What else an agent must know.
    pub notes: Vec<String>,
    /// Its arguments, derived ones included.
    pub args: Vec<Field>,
    /// What it answers with: a named object, or for tasks a derived one.
    pub result: Arc<NamedType>,
    /// Errors that come of the tool itself, not of the checks before it.
    pub own_errors: Vec<Arc<ErrorCode>>,
    /// Every error that a call can end with, derived ones first.
    pub errors: Vec<Arc<ErrorCode>>,
    /// Calls that work.
    pub examples: Vec<Example>,
}

impl ToolSpec {
    /// Whether it tells of tasks: makes them, or reads them.
    #[must_use]
    pub fn tells_of_tasks(&self) -> bool {
        matches!(self.effect, EffectSpec::Task(_) | EffectSpec::ReadTask)
    }

    /// Its terms, where it makes tasks.
    #[must_use]
    pub fn task(&self) -> Option<&TaskSpec> {
        match &self.effect {
            EffectSpec::Task(task) => Some(task),
            EffectSpec::Read | EffectSpec::ReadTask | EffectSpec::Issue => None,
        }
    }

    /// The hints of `tools/list`, which follow from the effect. All tools reach beyond this server.
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

/// What a client may assume of a tool before it reads the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HintsSpec {
    /// It changes nothing.
    pub read_only: bool,
    /// It can undo what is there.
    pub destructive: bool,
    /// A repeat with the same arguments changes nothing more.
    pub idempotent: bool,
}

/// What a tool acts on.
#[derive(Debug)]
pub struct TargetSpec {
    /// The resource.
    pub resource: Arc<ResourceSpec>,
    /// The argument that names it.
    pub arg: String,
    /// The capability that it must offer.
    pub requires: Option<String>,
}

/// What kind of operation a tool is.
#[derive(Debug)]
pub enum EffectSpec {
    /// Changes nothing.
    Read,
    /// Tells what has become of a task. It is the framework's: no handler is asked.
    ReadTask,
    /// Creates something and answers with it at once.
    Issue,
    /// Is accepted as a task.
    Task(TaskSpec),
}

/// How a tool's tasks are carried out.
#[derive(Debug)]
pub struct TaskSpec {
    /// The argument whose value selects the case.
    pub select: Option<String>,
    /// Terms by value; a single entry with an empty value where nothing is selected.
    pub cases: Vec<(String, PolicySpec)>,
    /// The states in which such tasks usually end, where that is worth saying.
    pub usually_ends: Vec<String>,
}

/// Terms under which an operation is sent, verified and ended.
#[derive(Debug, Clone)]
pub struct PolicySpec {
    /// What is read; `None` is blind.
    pub probe: Option<Arc<ProbeSpec>>,
    /// Whether it may be sent again.
    pub idempotent: bool,
    /// Longest time that an accepted request takes to show, in seconds.
    pub settle_seconds: u32,
    /// Time after the first possible send at which the task ends, in seconds; no operation takes longer.
    pub deadline_seconds: u32,
}

/// A route under `/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// The method.
    pub method: String,
    /// The path, with `{argument}` for path parameters.
    pub path: String,
}

impl Http {
    /// The arguments that stand in the path.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

/// A call that works.
#[derive(Debug)]
pub struct Example {
    /// What it shows.
    pub title: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Some members of the result.
    pub result: Map<String, Value>,
}
