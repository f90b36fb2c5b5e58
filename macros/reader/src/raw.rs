//! The files as they are written, with one struct for each table. `lower` checks them and fills in defaults.
//!
//! `editor` makes the schemas for editors from the same structs, so their doc comments are the help texts that editors show.

mod entries;

pub(crate) use entries::{At, Named, Unread};

use serde_json::{Map, Value};

/// Declares the structs for tables. Unknown keys are not allowed.
macro_rules! tables {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty,)+ })+) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, serde::Deserialize)]
        #[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name { $($(#[doc = $field_doc])* pub(crate) $field: $ty,)+ }
    )+};
}

tables!(
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
    /// `[protocol]`: MCP revisions.
    Protocol {
        /// Revisions that are served. `2025-03-26` is among them: it is served to clients that name none, or an unknown one.
        served: Option<At<Vec<At<String>>>>,
    }
    /// `[limits]`: what holds for every application.
    Limits {
        /// Request budget of an application in any 60 seconds.
        requests_per_minute: Option<At<u32>>,
        /// Shortest interval between two polls of one task.
        poll_interval_seconds: Option<At<u32>>,
        /// Longest time that a poll without `wait_seconds` is held: less than the read timeout of any client. At most 50.
        hold_seconds: Option<At<u32>>,
        /// The `wait_seconds` that texts tell agents to use: less than any gateway waits for an answer. At most 50.
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
        /// The first paragraph of the instructions, which some clients show alone.
        lead: Option<At<u32>>,
        /// A `brief`.
        brief: Option<At<u32>>,
    }
    /// `[phrase]`: sentences that several tools share. A placeholder in braces stands for a name or a number of the contract.
    Phrase {
        /// Descriptions: the permission that a tool needs.
        needs: Option<At<String>>,
        /// Descriptions: the permission and the capability that a tool needs.
        needs_capability: Option<At<String>>,
        /// Descriptions: what a tool that reads does to its target.
        read: Option<At<String>>,
        /// Descriptions: what a tool returns that makes tasks, and what to do with it.
        task: Option<At<String>>,
        /// Descriptions: how a tool fails; `{final}` and `{retryable}` list the codes.
        failures: Option<At<String>>,
        /// Instructions: by what to decide whether an operation is possible.
        capability: Option<At<String>>,
        /// Instructions: what writes return.
        writes: Option<At<String>>,
        /// Instructions: what to do after a failure.
        refused: Option<At<String>>,
        /// Instructions: the failures that concern the key, and those that concern a target.
        forbidden: Option<At<String>>,
        /// Instructions: how many writes a target takes.
        busy: Option<At<String>>,
        /// Instructions: which texts in results are written by others.
        untrusted: Option<At<String>>,
        /// Instructions: how to treat secrets.
        secret: Option<At<String>>,
        /// Answers: the write repeats one in flight.
        same_write: Option<At<String>>,
        /// Answers: the idempotency key is that of another write in flight.
        other_write: Option<At<String>>,
        /// Answers: what to do with the id of no task.
        lost_task: Option<At<String>>,
        /// Answers: what to do while a capability is refused for which there is a cure.
        curable: Option<At<String>>,
    }
    /// `[permission.NAME]`.
    Permission {
        /// What it lets an application do.
        doc: At<String>,
        /// Permissions that come with it.
        implies: Option<Vec<At<String>>>,
    }
    /// `[resource.NAME]`: what tools act on.
    Resource {
        /// What it is.
        doc: At<String>,
        /// The string type of its identifier.
        id: At<String>,
        /// What it may offer, each with its meaning.
        capability: Option<Named<At<String>>>,
        /// Answers: where to take an identifier from.
        find: Option<At<String>>,
    }
    /// `[probe.NAME]`: what can be read to verify a task.
    Probe {
        /// What it reads.
        doc: At<String>,
        /// Whether it compares with a reading from before the send.
        baseline: Option<bool>,
        /// What to do next where that reading failed, so that nothing was sent.
        unread: Option<At<String>>,
        /// What to do next where its task ended as `timeout`.
        timeout: Option<At<String>>,
    }
    /// `[state.NAME]`: a state of a task.
    State {
        /// What it means, in a few words for descriptions.
        brief: Option<At<String>>,
        /// What it means.
        meaning: Option<At<String>>,
        /// What to do next.
        next_step: Option<At<String>>,
        /// What to do next instead, by what the platform reported: `reported.not_sent = "..."`.
        reported: Option<Named<At<String>>>,
    }
    /// `[error.CODE]`. One that plays a role, or has the code of the framework's own, takes from it each key that it leaves out.
    Error {
        /// What the framework finds it by.
        role: Option<At<String>>,
        /// Whether repeating the call can help.
        retryable: Option<bool>,
        /// Retryable errors: seconds to wait where nothing better is known.
        retry_after_seconds: Option<At<u32>>,
        /// HTTP status.
        http: Option<At<u16>>,
        /// JSON-RPC error code.
        jsonrpc: Option<i32>,
        /// What happened: a sentence.
        meaning: Option<At<String>>,
        /// What it means, in a few words for descriptions.
        brief: Option<At<String>>,
        /// What to do next: sentences. `{field}` stands for the value of a field.
        remedy: Option<At<String>>,
        /// What it carries beyond code, message and retryable.
        fields: Option<Named<Field>>,
    }
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
        /// Results: clients are told the doc too, because the name does not say it.
        told: Option<At<bool>>,
        /// Optional arguments: taken when absent.
        default: Option<At<Value>>,
    }
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
        /// Its twin: `METHOD /v1/path/{argument}`, where a word wins over an argument. The method of a read is GET, of an issue POST, of a
        /// task PUT, POST or DELETE. GET and DELETE take the other arguments from the query, where no secret and no list can stand.
        http: Option<At<String>>,
        /// The named object that it answers with; a task's is derived.
        result: Option<At<String>>,
        /// Errors that the handler itself returns.
        errors: Option<Vec<At<String>>>,
        /// What it does.
        summary: Option<At<String>>,
        /// What it is for, after "Use it": `to look for one.`, `when it hangs.`
        use_when: Option<At<String>>,
        /// What to use instead, and when: a sentence that names another tool.
        not_when: Option<At<String>>,
        /// What it returns: sentences. A task's is derived.
        returns: Option<At<String>>,
        /// What else an agent must know.
        notes: Option<Vec<At<String>>>,
        /// How its tasks are carried out.
        task: Option<Task>,
        /// Its arguments.
        args: Option<Named<Field>>,
        /// Calls that work.
        example: Option<Vec<Example>>,
    }
    /// `target = { ... }`.
    Target {
        /// The resource.
        resource: At<String>,
        /// The argument that names it.
        arg: At<String>,
        /// The capability that it must offer.
        requires: Option<At<String>>,
    }
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
    /// The words of the tool that reads tasks.
    ReadTask {
        /// Its name for people.
        title: At<String>,
        /// Its twin.
        http: At<String>,
        /// What it does.
        summary: At<String>,
        /// After "Use it".
        use_when: At<String>,
        /// What it returns.
        returns: At<String>,
        /// What else an agent must know.
        notes: Vec<At<String>>,
        /// Calls that work.
        example: Vec<Example>,
    }
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

/// `service.toml`.
#[derive(Debug)]
#[cfg_attr(feature = "editor", derive(schemars::JsonSchema))]
pub(crate) struct ServiceFile {
    pub(crate) service: Option<Service>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) limits: Option<Limits>,
    pub(crate) readers: Option<Readers>,
    pub(crate) phrase: Option<Phrase>,
    /// Sentences that handlers answer with, by name.
    pub(crate) text: Named<At<String>>,
    /// Numbers that handlers and texts share: `{NAME}` stands for one.
    pub(crate) number: Named<At<u32>>,
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
    pub(crate) readers: Option<Readers>,
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
