//! The files as an author writes them, with one struct for each table. `lower` checks them and
//! fills in defaults.
//!
//! The schemas for editors are made from the same structs, so their doc comments are the help texts
//! that editors show.

mod entries;
mod schema;

pub(crate) use entries::{At, FormerNames, Named, Unread, Values};

use schema::{EditorSchema, TableKeys, describe, refer};
use serde_json::{Map, Value, json};

/// Unknown keys are not allowed.
macro_rules! tables {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty,)+ })+) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name { $($(#[doc = $field_doc])* pub(crate) $field: $ty,)+ }

        impl EditorSchema for $name {
            fn schema(tables: &mut Map<String, Value>) -> Value {
                refer(tables, stringify!($name), |tables| {
                    let mut keys = TableKeys::default();
                    $(keys.add::<$ty>(stringify!($field), &[$($field_doc),*], tables);)+
                    keys.table(&[$($doc),*])
                })
            }
        }
    )+};
}

/// Each has the keys that every file of the kind has.
macro_rules! files {
    ($($(#[doc = $doc:literal])* $name:ident $required:tt { $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty,)+ })+) => {$(
        $(#[doc = $doc])*
        #[derive(Debug)]
        pub(crate) struct $name { $($(#[doc = $field_doc])* pub(crate) $field: $ty,)+ }

        impl $name {
            pub(crate) fn schema() -> Value {
                let (mut keys, mut tables) = (TableKeys::default(), Map::new());
                $(keys.add::<$ty>(stringify!($field), &[$($field_doc),*], &mut tables);)+
                keys.file(stringify!($name), &$required, &[$($doc),*], tables)
            }
        }
    )+};
}

macro_rules! words {
    ($($(#[doc = $doc:literal])* $name:ident { $($variant:ident = $word:literal,)+ })+) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
        pub(crate) enum $name { $(#[serde(rename = $word)] $variant,)+ }

        impl EditorSchema for $name {
            fn schema(tables: &mut Map<String, Value>) -> Value {
                let make = |_: &mut _| describe(json!({"type": "string", "enum": [$($word),+]}), &[$($doc),*]);
                refer(tables, stringify!($name), make)
            }
        }
    )+};
}

tables!(
    /// `[service]`: identity.
    Service {
        /// `serverInfo.name`.
        name: At<String>,
        /// The name for people.
        title: At<String>,
        /// The version of the contract, which clients find in `_meta`.
        version: At<String>,
        /// The beginning of the instructions that `initialize` returns to an agent.
        doc: At<String>,
        /// The files of `tools/`, without ending, in the order in which their tools are listed.
        tools: At<Vec<At<String>>>,
    }
    /// `[protocol]`: MCP revisions.
    Protocol {
        /// Revisions that the service speaks. `2025-03-26` must be among them: clients that name no
        /// revision, or an unknown one, get it.
        served: Option<At<Vec<At<String>>>>,
        /// False if a host must not follow tasks by the extension `io.modelcontextprotocol/tasks`.
        tasks: Option<bool>,
    }
    /// `[limits]`: limits for every application.
    Limits {
        /// Request budget of an application in any 60 seconds.
        requests_per_minute: Option<At<u32>>,
        /// Shortest interval between two polls of one task.
        poll_interval_seconds: Option<At<u32>>,
        /// Longest time that a poll without `wait_seconds` is held: less than the read timeout of
        /// any client. At most 50.
        hold_seconds: Option<At<u32>>,
        /// The `wait_seconds` that texts tell agents to use: less than any gateway waits for an
        /// answer. At most 50.
        wait_seconds: Option<At<u32>>,
    }
    /// `[readers]`: the longest texts, in characters, that the clients of this service take whole.
    Readers {
        /// A tool's description.
        description: Option<At<u32>>,
        /// The doc of one argument.
        argument: Option<At<u32>>,
        /// The whole of `tools/list`, as compact JSON.
        list: Option<At<u32>>,
        /// The same with titles and output schemas, as revisions after 2025-03-26 list tools.
        list_with_outputs: Option<At<u32>>,
        /// The instructions of `initialize`.
        instructions: Option<At<u32>>,
        /// The first paragraph of the instructions, which some clients show without the others.
        lead: Option<At<u32>>,
        /// A `brief`.
        brief: Option<At<u32>>,
    }
    /// `[phrase]`: shared sentences. `{NAME}` stands for a name or a number of the contract.
    Phrase {
        /// Descriptions: the permission that a tool needs.
        needs: Option<At<String>>,
        /// Descriptions: the permission and the capability that a tool needs.
        needs_capability: Option<At<String>>,
        /// Descriptions: the effect of a tool that reads on its target.
        read: Option<At<String>>,
        /// Descriptions: the effect of an act.
        act: Option<At<String>>,
        /// Descriptions: the warning about a repeat of an act that is not idempotent.
        act_once: Option<At<String>>,
        /// Descriptions: the result of a tool that makes tasks, and its use.
        task: Option<At<String>>,
        /// Descriptions: the failures of a tool; `{final}` and `{retryable}` list the codes.
        failures: Option<At<String>>,
        /// Instructions: the way to find out whether an operation is possible.
        capability: Option<At<String>>,
        /// Instructions: the result of writes.
        writes: Option<At<String>>,
        /// Instructions: the next step after a failure.
        refused: Option<At<String>>,
        /// Instructions: the failures that concern the key, and those that concern a target.
        forbidden: Option<At<String>>,
        /// Instructions: the number of writes that a target takes.
        busy: Option<At<String>>,
        /// Instructions: the texts in results that others have written.
        untrusted: Option<At<String>>,
        /// Instructions: the handling of secrets.
        secret: Option<At<String>>,
        /// Instructions of a host that can follow tasks by the extension of the protocol.
        followed: Option<At<String>>,
        /// Answers to a host that follows a task: it has not ended.
        under_way: Option<At<String>>,
        /// Answers: the write repeats one in flight.
        same_write: Option<At<String>>,
        /// Answers: the idempotency key belongs to another write in flight.
        other_write: Option<At<String>>,
        /// Answers: the next step for an id that belongs to no task.
        lost_task: Option<At<String>>,
        /// Answers: the next step while a capability is refused that can be restored.
        curable: Option<At<String>>,
    }
    /// `[permission.NAME]`.
    Permission {
        /// The actions that it allows an application.
        doc: At<String>,
        /// Permissions that it includes.
        implies: Option<Vec<At<String>>>,
    }
    /// `[toolset.NAME]`: tools that a server offers only with `--toolsets NAME`.
    Toolset {
        /// Its tools, and who has a use for them.
        doc: At<String>,
        /// The limit of `[readers]` for a server with this toolset, if its clients take more.
        list: Option<At<u32>>,
        /// The same with titles and output schemas.
        list_with_outputs: Option<At<u32>>,
    }
    /// `[resource.NAME]`: a kind of thing that tools act on.
    Resource {
        /// Its meaning.
        doc: At<String>,
        /// The string type of its identifier.
        id: At<String>,
        /// The enum type of its state, for the operator's command `states`.
        state: Option<At<String>>,
        /// The state of one that cannot be read, so that an operator looks at it.
        unreadable: Option<At<String>>,
        /// The capabilities that one may offer, each with its meaning.
        capability: Option<Named<At<String>>>,
        /// Answers: the source of its identifiers.
        find: Option<At<String>>,
    }
    /// `[probe.NAME]`: a reading that verifies a task.
    Probe {
        /// The state that it reads.
        doc: At<String>,
        /// True if it compares with a reading from before the send.
        baseline: Option<bool>,
        /// The next step if that reading failed, so that the task was not sent.
        unread: Option<At<String>>,
        /// The next step if its task ended as `timeout`.
        timeout: Option<At<String>>,
        /// The next step if its task ended as `success`.
        success: Option<At<String>>,
    }
    /// `[state.NAME]`: a state of a task.
    State {
        /// Its meaning in a few words, for descriptions.
        brief: Option<At<String>>,
        /// Its meaning.
        meaning: Option<At<String>>,
        /// The next step.
        next_step: Option<At<String>>,
        /// In place of `next_step`, by the platform's report: `reported.not_sent = "..."`.
        reported: Option<Named<At<String>>>,
    }
    /// `[error.CODE]`. One with a role takes the keys that it leaves out from the framework's.
    Error {
        /// The role by which the framework finds it.
        role: Option<At<String>>,
        /// True if repeating the call can help.
        retryable: Option<bool>,
        /// Retryable errors: seconds to wait if no better value is known.
        retry_after_seconds: Option<At<u32>>,
        /// HTTP status.
        http: Option<At<u16>>,
        /// JSON-RPC error code.
        jsonrpc: Option<i32>,
        /// The event that it reports: a sentence.
        meaning: Option<At<String>>,
        /// Its meaning in a few words, for descriptions.
        brief: Option<At<String>>,
        /// The next step: sentences. `{field}` stands for the value of a field.
        remedy: Option<At<String>>,
        /// Its fields in addition to code, message and retryable.
        fields: Option<Named<Field>>,
    }
    /// `[type.NAME]`.
    Type {
        /// The kind, which decides the other keys that apply.
        kind: At<KindName>,
        /// Its meaning.
        doc: At<String>,
        /// Strings: fewest characters.
        min_length: Option<At<u32>>,
        /// Strings and texts: most characters.
        max_length: Option<At<u32>>,
        /// Strings: the text that every value begins with.
        prefix: Option<At<String>>,
        /// Strings: ASCII characters and ranges, as in `a-z0-9-`.
        charset: Option<At<String>>,
        /// Integers and numbers: smallest.
        min: Option<At<f64>>,
        /// Integers and numbers: largest.
        max: Option<At<f64>>,
        /// Enums: values with their meaning. Maps: the type of each value.
        values: Option<At<Values>>,
        /// Maps: most members.
        max_items: Option<At<u32>>,
        /// JSON: most bytes.
        max_bytes: Option<At<u32>>,
        /// Objects: another object whose fields come first.
        include: Option<At<String>>,
        /// Objects: fields.
        fields: Option<Named<Field>>,
    }
    /// A field of an object or an argument of a tool.
    Field {
        /// `string`, `integer`, `boolean`, `timestamp`, a named type, or one of these in brackets
        /// for a list. Results can also have `url`, an https address, and `picture`, a PNG or JPEG.
        /// The framework has named types of its own, such as `TaskId` and `TaskStatus`.
        r#type: At<String>,
        /// Its meaning.
        doc: At<String>,
        /// Arguments: may be left out.
        optional: Option<At<bool>>,
        /// Results: may be null. Optional arguments of destructive tools: null differs from absent.
        /// The doc says what null means.
        nullable: Option<At<bool>>,
        /// The value appears only in the one place where it belongs.
        secret: Option<At<bool>>,
        /// Results: text from outside, which is cleaned and truncated.
        untrusted: Option<At<bool>>,
        /// Results: text in the service's own words, which may tell an agent what to do.
        ours: Option<At<bool>>,
        /// Results: clients get the doc also, because the name is not enough.
        told: Option<At<bool>>,
        /// Optional arguments: the value if the argument is absent.
        default: Option<At<Value>>,
        /// Lists of arguments: most items.
        max_items: Option<At<u32>>,
        /// Arguments of tools that make tasks: the former name, or a list of them. Tasks that are
        /// in flight at an upgrade have these names. Clients never see or use them.
        formerly: Option<At<FormerNames>>,
    }
    /// `[[tool]]`. The framework has the texts that the tool that reads tasks leaves out.
    Tool {
        /// Its name on the wire.
        name: At<String>,
        /// Its name for people.
        title: Option<At<String>>,
        /// The permission that it needs.
        permission: At<String>,
        /// The toolset that it belongs to. Every server offers a tool without one.
        toolset: Option<At<String>>,
        /// The resource that it acts on.
        target: Option<Target>,
        /// `read`, `act`, `issue`, `task`, or `read_task` for the one tool that reads tasks. An act
        /// changes something at once, and nothing verifies it.
        effect: At<EffectName>,
        /// Acts: true if it can destroy or overwrite something.
        destructive: Option<At<bool>>,
        /// Acts: true if a repeat with the same arguments has no further effect. Then a client may
        /// send it again.
        idempotent: Option<At<bool>>,
        /// Acts: true if it reaches beyond what this service has.
        open_world: Option<At<bool>>,
        /// Its HTTP twin: `METHOD /v1/path/{argument}`, where a word wins over an argument. The
        /// method of a read is GET, of an act POST, PUT, PATCH or DELETE, of an issue POST, of a
        /// task PUT, POST or DELETE. GET and DELETE take the other arguments from the query, which
        /// cannot contain secrets or lists.
        http: Option<At<String>>,
        /// The named object of its result. The result of a task is derived.
        result: Option<At<String>>,
        /// The field of the result that leaves as a block of its own, after one with the others: a
        /// text or a picture. Then clients get no output schema and no structured content.
        body: Option<At<String>>,
        /// Errors that the handler itself returns.
        errors: Option<Vec<At<String>>>,
        /// Its purpose.
        summary: Option<At<String>>,
        /// When to use it, as the continuation of "Use it": `to look for one.`, `when it hangs.`
        use_when: Option<At<String>>,
        /// The alternative, and when to use it: a sentence that names another tool.
        not_when: Option<At<String>>,
        /// Its result: sentences. Those of a task are derived.
        returns: Option<At<String>>,
        /// Other facts that an agent must know.
        notes: Option<Vec<At<String>>>,
        /// The terms of its tasks.
        task: Option<Task>,
        /// Its arguments.
        args: Option<Named<Field>>,
        /// Calls that are valid.
        example: Option<Vec<Example>>,
    }
    /// `target = { ... }`.
    Target {
        /// The resource.
        resource: At<String>,
        /// The argument that contains its identifier.
        arg: At<String>,
        /// The capability that the target must offer.
        requires: Option<At<String>>,
    }
    /// `[tool.task]`.
    Task {
        /// The enum argument whose value selects the case.
        select: Option<At<String>>,
        /// Terms by value. Keys that a case leaves out are taken from `[tool.task]`.
        case: Option<Named<Terms>>,
        /// The probe that verifies it; without a probe it is never verified and never sent again.
        probe: Option<At<String>>,
        /// True if it may be sent again.
        idempotent: Option<bool>,
        /// Longest time until the effect of an accepted request shows, in seconds.
        settle_seconds: Option<u32>,
        /// Longest time from the first possible send to the end of the task, in seconds. No
        /// operation takes longer.
        deadline_seconds: Option<u32>,
        /// The states in which such tasks usually end, if an agent should know.
        usually_ends: Option<Vec<At<String>>>,
    }
    /// `case.VALUE = { ... }`.
    Terms {
        /// The probe that verifies it.
        probe: Option<At<String>>,
        /// True if it may be sent again.
        idempotent: Option<bool>,
        /// Longest time until the effect of an accepted request shows, in seconds.
        settle_seconds: Option<u32>,
        /// Longest time from the first possible send to the end of the task, in seconds. No
        /// operation takes longer.
        deadline_seconds: Option<u32>,
    }
    /// The texts of the tool that reads tasks.
    ReadTask {
        /// Its name for people.
        title: At<String>,
        /// Its HTTP twin.
        http: At<String>,
        /// Its purpose.
        summary: At<String>,
        /// When to use it, as the continuation of "Use it".
        use_when: At<String>,
        /// Its result.
        returns: At<String>,
        /// Other facts that an agent must know.
        notes: Vec<At<String>>,
        /// Calls that are valid.
        example: Vec<Example>,
    }
    /// `[[tool.example]]`.
    Example {
        /// The purpose of the example.
        title: At<String>,
        /// The arguments.
        arguments: At<Map<String, Value>>,
        /// Some members of the result.
        result: Option<At<Map<String, Value>>>,
    }
);

words!(
    /// The kind of a `[type.NAME]`.
    KindName {
        String = "string",
        Text = "text",
        Integer = "integer",
        Number = "number",
        Enum = "enum",
        Object = "object",
        Map = "map",
        Json = "json",
    }
    /// The kind of operation of a tool.
    EffectName {
        Read = "read",
        Act = "act",
        Issue = "issue",
        Task = "task",
        ReadTask = "read_task",
    }
);

files!(
    /// `service.toml`.
    ServiceFile ["service"] {
        service: Option<Service>,
        protocol: Option<Protocol>,
        limits: Option<Limits>,
        readers: Option<Readers>,
        phrase: Option<Phrase>,
        /// Sentences that handlers answer with, by name.
        text: Named<At<String>>,
        /// Numbers that handlers and texts share: `{NAME}` stands for one.
        number: Named<At<u32>>,
        permission: Named<Permission>,
        toolset: Named<Toolset>,
        resource: Named<Resource>,
        probe: Named<Probe>,
        state: Named<State>,
    }
    /// `errors.toml`.
    ErrorsFile [] {
        error: Named<Error>,
    }
    /// `types.toml`.
    TypesFile ["type"] {
        r#type: Named<Type>,
    }
    /// `reserved.toml`: names that were retired and must never return with another meaning.
    ReservedFile [] {
        tools: Option<Vec<At<String>>>,
        errors: Option<Vec<At<String>>>,
        /// Values of enums. No text says one, not even in plain words.
        values: Option<Vec<At<String>>>,
        /// Sentences that say one in its ordinary meaning, each with the reason.
        allowed: Named<At<String>>,
    }
    /// A file of `tools/`.
    ToolsFile ["tool"] {
        tool: Vec<At<Tool>>,
    }
);

/// For keys that a contract leaves out.
#[derive(Debug)]
pub(crate) struct Defaults {
    pub(crate) protocol: Option<Protocol>,
    pub(crate) limits: Option<Limits>,
    pub(crate) readers: Option<Readers>,
    pub(crate) phrase: Option<Phrase>,
    pub(crate) state: Named<State>,
    pub(crate) read_task: Option<ReadTask>,
    pub(crate) error: Named<Error>,
}

#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) service: ServiceFile,
    pub(crate) errors: ErrorsFile,
    pub(crate) types: TypesFile,
    pub(crate) reserved: ReservedFile,
    pub(crate) defaults: Defaults,
    /// Each with its name without ending.
    pub(crate) tools: Vec<(String, ToolsFile)>,
    /// True if every tool in these files could be read.
    pub(crate) is_whole: bool,
}
