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
pub use toolwarrant_common::ToolHints;

#[derive(Debug)]
pub struct Contract {
    pub service: ServiceSpec,
    pub readers: ReadersSpec,
    pub phrases: Phrases,
    pub texts: Vec<(String, String)>,
    pub numbers: Vec<(String, u32)>,
    pub permissions: Vec<Arc<PermissionSpec>>,
    pub toolsets: Vec<Arc<ToolsetSpec>>,
    pub resources: Vec<Arc<ResourceSpec>>,
    pub probes: Vec<Arc<ProbeSpec>>,
    /// In the order of [`crate::ROLES`], and then the contract's own.
    pub errors: Vec<Arc<ErrorCode>>,
    pub states: Vec<State>,
    /// Each follows those that it is made of.
    pub types: Vec<Arc<NamedType>>,
    pub domains: Vec<Domain>,
    /// Version and digest. `None` also if the record cannot be read.
    pub released: Option<[String; 2]>,
    pub reserved: ReservedSpec,
    /// Texts with placeholders, by the text with their values.
    pub written: HashMap<String, String>,
    pub files: Vec<PathBuf>,
}

impl Contract {
    pub fn tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.domains.iter().flat_map(|domain| &domain.tools)
    }

    #[must_use]
    pub fn read_tool(&self) -> Option<&ToolSpec> {
        self.tools().find(|tool| matches!(tool.effect, EffectSpec::ReadTask))
    }

    /// The tools of a server with this toolset, or with none.
    pub fn tools_with<'a>(&'a self, toolset: Option<&'a ToolsetSpec>) -> impl Iterator<Item = &'a ToolSpec> {
        self.tools().filter(move |tool| match (&tool.toolset, toolset) {
            (Some(own), Some(on)) => own.name == on.name,
            (own, _) => own.is_none(),
        })
    }

    pub fn callers(&self, tool: &ToolSpec) -> impl Iterator<Item = &str> {
        let may_call = |held: &&Arc<PermissionSpec>| held.grants.contains(&tool.permission.index);
        self.permissions.iter().filter(may_call).map(|held| held.name.as_str())
    }

    /// Returns true if arguments contain the type.
    #[must_use]
    pub fn is_argument(&self, name: &str) -> bool {
        let mut found = false;
        let args = self.tools().flat_map(|tool| &tool.args);
        args.for_each(|field| field.ty.visit(&mut |ty| found |= ty.name == name));
        found
    }

    pub fn role(&self, role: &str) -> Option<&Arc<ErrorCode>> {
        self.errors.iter().find(|error| error.role.as_deref() == Some(role))
    }
}

#[derive(Debug)]
pub struct ServiceSpec {
    pub name: String,
    pub title: String,
    pub version: String,
    pub doc: String,
    pub served: Vec<&'static str>,
    /// True if a host may follow tasks by the extension of the protocol.
    pub follows: bool,
    pub requests_per_minute: u32,
    pub poll_interval_seconds: u32,
    pub hold_seconds: u32,
    pub wait_seconds: u32,
}

#[derive(Debug)]
pub struct PermissionSpec {
    pub name: String,
    pub doc: String,
    /// The position in [`Contract::permissions`].
    pub index: usize,
    /// Only those that its declaration names.
    pub implies: Vec<String>,
    /// Positions in [`Contract::permissions`], its own included, ascending.
    pub grants: Vec<usize>,
}

#[derive(Debug)]
pub struct ToolsetSpec {
    pub name: String,
    pub doc: String,
    /// The position in [`Contract::toolsets`].
    pub index: usize,
    /// The limits of a server with this toolset, in characters.
    pub list: u32,
    pub list_with_outputs: u32,
}

#[derive(Debug)]
pub struct ResourceSpec {
    pub name: String,
    pub doc: String,
    pub id: Arc<NamedType>,
    pub states: Vec<Member>,
    /// One of the states.
    pub unreadable: Option<String>,
    pub capabilities: Vec<Member>,
    /// Where a client finds an identifier.
    pub find: String,
}

#[derive(Debug, Clone)]
pub struct Member {
    pub name: String,
    pub doc: String,
}

#[derive(Debug)]
pub struct ProbeSpec {
    pub name: String,
    pub doc: String,
    /// True if it compares with a reading from before the send.
    pub baseline: bool,
    /// The next step if the reading before the send failed.
    pub unread: String,
    /// The next step if its task ended as `timeout`.
    pub timeout: String,
    /// The next step if its task ended as `success`.
    pub success: String,
}

#[derive(Debug)]
pub struct ErrorCode {
    pub code: String,
    pub role: Option<String>,
    pub retryable: bool,
    pub retry_after_seconds: u32,
    pub http: u16,
    pub jsonrpc: i32,
    pub meaning: String,
    pub brief: String,
    pub remedy: String,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct State {
    pub name: String,
    pub brief: String,
    pub meaning: String,
    pub next_step: String,
    /// Replaces `next_step`, by the platform's report.
    pub reported: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct NamedType {
    pub name: String,
    pub doc: String,
    pub kind: Kind,
}

#[derive(Debug)]
pub enum Kind {
    String(StringSpec),
    Integer {
        min: i64,
        /// Inclusive, as `min`.
        max: i64,
    },
    Enum(Vec<Member>),
    Object(Vec<Field>),
    /// A string with lines, with the most characters that it has.
    Text(usize),
    /// Finite. Inclusive bounds, if any.
    Number {
        min: Option<f64>,
        max: Option<f64>,
    },
    /// An object whose members are not named.
    Map {
        values: Type,
        max_items: usize,
    },
    /// Any JSON object, with the most bytes that it has.
    Json(usize),
}

/// Lengths are in characters.
#[derive(Debug)]
pub struct StringSpec {
    pub min: usize,
    pub max: usize,
    pub prefix: String,
    pub charset: Vec<(char, char)>,
}

#[derive(Debug, Clone)]
pub enum Type {
    String,
    Integer,
    Boolean,
    Timestamp,
    Url,
    Picture,
    Named(Arc<NamedType>),
    List(Box<Type>),
}

impl Type {
    #[must_use]
    pub fn element(&self) -> &Self {
        match self {
            Self::List(inner) => inner.element(),
            other => other,
        }
    }

    #[must_use]
    pub fn as_named(&self) -> Option<&Arc<NamedType>> {
        match self {
            Self::Named(named) => Some(named),
            _ => None,
        }
    }

    /// Returns true for a value that no path or query can hold.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        match self {
            Self::List(_) => true,
            Self::Named(named) => {
                matches!(named.kind, Kind::Text(_) | Kind::Object(_) | Kind::Map { .. } | Kind::Json(_))
            }
            Self::String | Self::Integer | Self::Boolean | Self::Timestamp | Self::Url | Self::Picture => false,
        }
    }

    /// Passes the named types that a value contains to `visit`, an outer one first.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a NamedType)) {
        let Some(named) = self.element().as_named() else { return };
        visit(named);
        match &named.kind {
            Kind::Object(fields) => fields.iter().for_each(|field| field.ty.visit(visit)),
            Kind::Map { values, .. } => values.visit(visit),
            _ => {}
        }
    }

    #[must_use]
    pub fn object(&self) -> Option<&Arc<NamedType>> {
        self.element().as_named().filter(|named| matches!(named.kind, Kind::Object(_)))
    }
}

#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub doc: String,
    pub ty: Type,
    /// Arguments only: may be absent, null or empty.
    pub optional: bool,
    /// Of an argument: null differs from absent.
    pub nullable: bool,
    /// The value appears only in the one place where it belongs.
    pub secret: bool,
    /// Text from outside, which is cleaned and truncated.
    pub untrusted: bool,
    /// Results only: text in the service's own words. Every other text is `untrusted` or `secret`.
    pub ours: bool,
    /// Results only: clients get the doc.
    pub told: bool,
    /// Results only: the framework fills it in; absent if it is zero.
    pub derived: bool,
    /// Lists of arguments only.
    pub max_items: Option<usize>,
    pub default: Option<Value>,
    /// Arguments only: the names in tasks of former contracts.
    pub formerly: Vec<String>,
}

/// Its tools share a handler trait.
#[derive(Debug)]
pub struct Domain {
    pub name: String,
    pub tools: Vec<ToolSpec>,
}

#[derive(Debug)]
pub struct ToolSpec {
    pub name: String,
    pub title: String,
    /// `spec/tools/x.toml:7`.
    pub source: String,
    pub permission: Arc<PermissionSpec>,
    pub toolset: Option<Arc<ToolsetSpec>>,
    /// The bit of its callers: that of its permission, or one of the permission in the toolset.
    pub right: usize,
    pub target: Option<TargetSpec>,
    pub effect: EffectSpec,
    pub http: Option<Http>,
    pub summary: String,
    /// Follows "Use it".
    pub use_when: String,
    pub not_when: String,
    pub returns: String,
    pub notes: Vec<String>,
    pub args: Vec<Field>,
    /// A named type or, for tools of tasks, a derived one.
    pub result: Arc<NamedType>,
    /// The field of the result that leaves as a block of its own.
    pub body: Option<BodySpec>,
    pub own_errors: Vec<Arc<ErrorCode>>,
    pub errors: Vec<Arc<ErrorCode>>,
    pub examples: Vec<Example>,
}

impl ToolSpec {
    /// Returns true if each caller of this tool may call the other one, on every server.
    #[must_use]
    pub fn implies(&self, other: &Self) -> bool {
        let is_offered = |set: &Arc<ToolsetSpec>| self.toolset.as_ref().is_some_and(|own| own.index == set.index);
        self.permission.grants.contains(&other.permission.index) && other.toolset.as_ref().is_none_or(is_offered)
    }

    #[must_use]
    pub fn tells_of_tasks(&self) -> bool {
        matches!(self.effect, EffectSpec::Task(_) | EffectSpec::ReadTask)
    }

    #[must_use]
    pub fn task(&self) -> Option<&TaskSpec> {
        match &self.effect {
            EffectSpec::Task(task) => Some(task),
            EffectSpec::Read | EffectSpec::ReadTask | EffectSpec::Act(_) | EffectSpec::Issue => None,
        }
    }

    /// Treats every tool but an act as one that reaches beyond this server.
    #[must_use]
    pub fn hints(&self) -> ToolHints {
        match &self.effect {
            EffectSpec::Read | EffectSpec::ReadTask => ToolHints::READ,
            EffectSpec::Act(declared) => *declared,
            EffectSpec::Issue => ToolHints::ISSUE,
            EffectSpec::Task(task) => ToolHints::task(task.cases.iter().all(|(_, terms)| terms.idempotent)),
        }
    }
}

#[derive(Debug)]
pub struct BodySpec {
    pub field: String,
    pub is_picture: bool,
}

#[derive(Debug)]
pub struct TargetSpec {
    pub resource: Arc<ResourceSpec>,
    pub arg: String,
    pub requires: Option<String>,
}

#[derive(Debug)]
pub enum EffectSpec {
    Read,
    /// The framework does it without a handler.
    ReadTask,
    /// It changes something at once, and nothing verifies it.
    Act(ToolHints),
    Issue,
    Task(TaskSpec),
}

impl EffectSpec {
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadTask => "read_task",
            Self::Act(_) => "act",
            Self::Issue => "issue",
            Self::Task(_) => "task",
        }
    }
}

#[derive(Debug)]
pub struct TaskSpec {
    pub select: Option<String>,
    /// By value of `select`. A single entry with an empty value applies to all calls.
    pub cases: Vec<(String, PolicySpec)>,
    pub usually_ends: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct PolicySpec {
    /// `None`: it is never verified and never sent again.
    pub probe: Option<Arc<ProbeSpec>>,
    pub idempotent: bool,
    /// Longest time until the effect of an accepted request shows.
    pub settle_seconds: u32,
    /// Longest time from the first possible send to the end of the task.
    pub deadline_seconds: u32,
}

#[derive(Debug)]
pub struct Example {
    pub title: String,
    pub arguments: Map<String, Value>,
    pub result: Map<String, Value>,
}
