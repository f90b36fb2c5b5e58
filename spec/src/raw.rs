//! The files as they are written, with one struct for each table. `lower` checks them and fills in defaults.
//!
//! `editor` makes the schemas for editors from the same structs, so their doc comments are the help texts that editors show.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};

/// A value and its place in the file.
#[derive(Debug, Clone)]
pub(crate) struct At<T>(toml::Spanned<T>);

impl<T> At<T> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.0.span()
    }
}

impl<T> Deref for At<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.get_ref()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        toml::Spanned::deserialize(deserializer).map(Self)
    }
}

/// A table of named entries, in the order of the file.
#[derive(Debug, Clone)]
pub(crate) struct Named<T> {
    pub(crate) entries: Vec<(At<String>, T)>,
    pub(crate) unread: Unread,
}

/// Entries that could not be read. Their problems are already reported, so a use of one is not reported as unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread {
    /// Entries by name.
    pub(crate) names: Vec<String>,
    /// Whether the whole file is broken, so that it may contain any name.
    pub(crate) anything: bool,
}

impl Unread {
    pub(crate) fn may_be(&self, name: &str) -> bool {
        self.anything || self.names.iter().any(|unread| unread == name)
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), unread: Unread::default() }
    }
}

impl<T> Named<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&At<String>, &T)> {
        self.entries.iter().map(|(name, value)| (name, value))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|(name, _)| name.as_str())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Named<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of named entries")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Named { entries, unread: Unread::default() })
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Declares the struct for a table. Unknown keys are not allowed.
macro_rules! table {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty,)+ }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, serde::Deserialize)]
        #[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name { $($(#[doc = $field_doc])* pub(crate) $field: $ty,)+ }
    };
}

table!(
    /// `[service]`: identity.
    Service {
        /// `serverInfo.name`.
        name: At<String>,
        /// For people.
        title: At<String>,
        /// `serverInfo.version`.
        version: At<String>,
        /// The beginning of what `initialize` tells an agent.
        doc: At<String>,
        /// The files of `tools/`, without ending, in the order in which their tools are listed.
        tools: At<Vec<At<String>>>,
    }
);
table!(
    /// `[protocol]`: MCP revisions.
    Protocol {
        /// Revisions that `initialize` agrees to; the first is the fallback.
        served: Option<At<Vec<String>>>,
        /// Revisions that a client may name in `MCP-Protocol-Version`.
        accepted: Option<At<Vec<String>>>,
    }
);
table!(
    /// `[limits]`: what holds for every application.
    Limits {
        /// Request budget of an application in any 60 seconds.
        requests_per_minute: Option<At<u32>>,
        /// Shortest interval between two polls of one task.
        poll_interval_seconds: Option<At<u32>>,
    }
);
table!(
    /// `[phrase]`: sentences that every description carries to which they apply.
    Phrase {
        /// For tools that require or show capabilities.
        capability: Option<At<String>>,
        /// For tools that require a capability.
        forbidden: Option<At<String>>,
        /// For every tool.
        retryable: Option<At<String>>,
        /// For tools that make tasks: how to poll.
        task: Option<At<String>>,
    }
);
table!(
    /// `[permission.NAME]`.
    Permission {
        /// What it lets an application do.
        doc: At<String>,
        /// Permissions that come with it.
        implies: Option<Vec<At<String>>>,
    }
);
table!(
    /// `[resource.NAME]`: what tools act on.
    Resource {
        /// What it is.
        doc: At<String>,
        /// The string type of its identifier.
        id: At<String>,
        /// What it may offer, each with its meaning.
        capability: Option<Named<At<String>>>,
    }
);
table!(
    /// `[probe.NAME]`: what can be read to verify a task.
    Probe {
        /// What it reads.
        doc: At<String>,
        /// Whether it compares with a reading from before the send.
        baseline: Option<bool>,
    }
);
table!(
    /// `[state.NAME]`: a state of a task.
    State {
        /// What it means.
        meaning: Option<At<String>>,
        /// What to do next.
        next_step: Option<At<String>>,
    }
);
table!(
    /// `[error.CODE]`. One that plays a role, or has the code of the framework's own, takes from it each key that it leaves out.
    Error {
        /// What the framework finds it by.
        role: Option<At<String>>,
        /// Whether repeating the call can help.
        retryable: Option<bool>,
        /// HTTP status.
        http: Option<At<u16>>,
        /// JSON-RPC error code.
        jsonrpc: Option<i32>,
        /// What happened: a sentence.
        meaning: Option<At<String>>,
        /// What to do next: a phrase without a full stop.
        remedy: Option<At<String>>,
        /// What it carries beyond code, message and retryable.
        fields: Option<Named<Field>>,
    }
);
table!(
    /// `[type.NAME]`.
    Type {
        /// Which of the other keys apply.
        kind: At<KindName>,
        /// What it is.
        doc: At<String>,
        /// Strings: fewest characters.
        min_length: Option<At<u32>>,
        /// Strings: most characters.
        max_length: Option<At<u32>>,
        /// Strings: what every value begins with.
        prefix: Option<At<String>>,
        /// Strings: ASCII characters and ranges, as in `a-z0-9-`.
        charset: Option<At<String>>,
        /// Integers: smallest.
        min: Option<At<i64>>,
        /// Integers: largest.
        max: Option<At<i64>>,
        /// Enums: values with their meaning.
        values: Option<Named<At<String>>>,
        /// Objects: another object whose fields come first.
        include: Option<At<String>>,
        /// Objects: fields.
        fields: Option<Named<Field>>,
    }
);

/// What kind of type a `[type.NAME]` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum KindName {
    String,
    Integer,
    Enum,
    Object,
}

table!(
    /// A field of an object or an argument of a tool.
    Field {
        /// `string`, `integer`, `boolean`, a named type, or one of these in brackets for a list. In results also `timestamp` and `url`,
        /// which is an https address.
        r#type: At<String>,
        /// What it is.
        doc: At<String>,
        /// Arguments: may be left out.
        optional: Option<At<bool>>,
        /// Results: may be null; the doc says what null means.
        nullable: Option<At<bool>>,
        /// Shown nowhere but where it belongs.
        secret: Option<At<bool>>,
        /// Results: text by somebody outside, cleaned and capped.
        untrusted: Option<At<bool>>,
        /// Results: text by this service itself, which may say what to do.
        ours: Option<At<bool>>,
        /// Optional arguments: taken when absent.
        default: Option<At<Value>>,
    }
);
table!(
    /// `[[tool]]`. One that reads tasks has words of the framework's for what it leaves out.
    Tool {
        /// Its name on the wire.
        name: At<String>,
        /// Its name for people.
        title: Option<At<String>>,
        /// The permission that it needs.
        permission: At<String>,
        /// What it acts on.
        target: Option<Target>,
        /// `read`, `issue`, `task`, or `read_task` for the one tool that reads tasks.
        effect: At<EffectName>,
        /// Its twin: `METHOD /v1/path/{argument}`.
        http: Option<At<String>>,
        /// The named object that it answers with; a task's is derived.
        result: Option<At<String>>,
        /// Errors that the handler itself returns.
        errors: Option<Vec<At<String>>>,
        /// What it does.
        summary: Option<At<String>>,
        /// When to use it, after "Use it when".
        use_when: Option<At<String>>,
        /// When not to, and what instead, after "Do not use it when".
        not_when: Option<At<String>>,
        /// What else an agent must know.
        notes: Option<Vec<At<String>>>,
        /// How its tasks are carried out.
        task: Option<Task>,
        /// Its arguments.
        args: Option<Named<Field>>,
        /// Calls that work.
        example: Option<Vec<Example>>,
    }
);

/// What kind of operation a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum EffectName {
    Read,
    Issue,
    Task,
    ReadTask,
}

table!(
    /// `target = { ... }`.
    Target {
        /// The resource.
        resource: At<String>,
        /// The argument that names it.
        arg: At<String>,
        /// The capability that it must offer.
        requires: Option<At<String>>,
    }
);
table!(
    /// `[tool.task]`.
    Task {
        /// The enum argument whose value selects the case.
        select: Option<At<String>>,
        /// Terms by value; what one leaves out is taken from `[tool.task]`.
        case: Option<Named<Terms>>,
        /// What is read to verify it; without a probe it is never verified and never sent again.
        probe: Option<At<String>>,
        /// Whether it may be sent again.
        idempotent: Option<bool>,
        /// Longest time that an accepted request takes to show.
        settle_seconds: Option<u32>,
        /// Time after the first possible send at which the task ends; no operation takes longer.
        deadline_seconds: Option<u32>,
        /// The states in which such tasks usually end, where that is worth saying.
        usually_ends: Option<Vec<At<String>>>,
    }
);
table!(
    /// `case.VALUE = { ... }`.
    Terms {
        /// What is read to verify it.
        probe: Option<At<String>>,
        /// Whether it may be sent again.
        idempotent: Option<bool>,
        /// Longest time that an accepted request takes to show.
        settle_seconds: Option<u32>,
        /// Time after the first possible send at which the task ends; no operation takes longer.
        deadline_seconds: Option<u32>,
    }
);
table!(
    /// The words of the tool that reads tasks.
    ReadTask {
        /// Its name for people.
        title: At<String>,
        /// Its twin.
        http: At<String>,
        /// What it does.
        summary: At<String>,
        /// After "Use it when".
        use_when: At<String>,
        /// After "Do not use it when".
        not_when: At<String>,
        /// What else an agent must know.
        notes: Vec<At<String>>,
        /// Calls that work.
        example: Vec<Example>,
    }
);
table!(
    /// `[[tool.example]]`.
    Example {
        /// What it shows.
        title: At<String>,
        /// The arguments.
        arguments: At<Map<String, Value>>,
        /// Some members of the result.
        result: Option<At<Map<String, Value>>>,
    }
);

/// `service.toml`.
#[derive(Debug)]
#[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
pub(crate) struct ServiceFile {
    pub(crate) service: Option<Service>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) limits: Option<Limits>,
    pub(crate) phrase: Option<At<Phrase>>,
    pub(crate) permission: Named<Permission>,
    pub(crate) resource: Named<Resource>,
    pub(crate) probe: Named<Probe>,
    pub(crate) state: Named<State>,
}

/// `errors.toml`.
#[derive(Debug)]
#[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
pub(crate) struct ErrorsFile {
    pub(crate) error: Named<Error>,
}

/// `types.toml`.
#[derive(Debug)]
#[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
pub(crate) struct TypesFile {
    pub(crate) r#type: Named<Type>,
}

/// `reserved.toml`: names that were retired and must never return with another meaning.
#[derive(Debug)]
#[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
pub(crate) struct ReservedFile {
    pub(crate) tools: Option<Vec<At<String>>>,
    pub(crate) errors: Option<Vec<At<String>>>,
}

/// A file of `tools/`.
#[derive(Debug)]
#[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
pub(crate) struct ToolsFile {
    pub(crate) tool: Vec<At<Tool>>,
    /// Whether the file has tools that could not be read.
    #[cfg_attr(feature = "editor", schemars(skip))]
    pub(crate) broken: bool,
}

/// The framework's defaults for what a contract leaves out.
#[derive(Debug)]
pub(crate) struct Defaults {
    pub(crate) protocol: Option<Protocol>,
    pub(crate) limits: Option<Limits>,
    pub(crate) phrase: Option<Phrase>,
    pub(crate) state: Named<State>,
    pub(crate) read_task: Option<ReadTask>,
    pub(crate) error: Named<Error>,
}

/// All files.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) service: ServiceFile,
    pub(crate) errors: ErrorsFile,
    pub(crate) types: TypesFile,
    pub(crate) reserved: ReservedFile,
    pub(crate) defaults: Defaults,
    /// The files of `tools/`, each with its name without ending.
    pub(crate) tools: Vec<(String, ToolsFile)>,
}
