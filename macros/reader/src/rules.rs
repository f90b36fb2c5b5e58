//! The rules that every contract must keep, and the names that the framework reserves: roles and
//! task states.

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal,)+) => {
        /// Messages about a problem name its id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $($(#[doc = $doc])+ $name,)+ }

        impl Rule {
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii_start(),)+ }
            }
        }
    };
}

rules! {
    /// Every required file exists, and every file is UTF-8.
    Unreadable = "unreadable",
    /// A file that service.toml lists is in the folder `tools`.
    MissingFile = "missing-file",
    /// A file in the folder `tools` is listed in service.toml.
    UnlistedFile = "unlisted-file",
    /// Every file is TOML.
    Syntax = "syntax",
    /// Every key is known and has the right type, and no required key is missing.
    Shape = "shape",
    /// Types are UpperCamelCase. Tools, arguments, fields and values have the names that clients
    /// know, of the characters `A-Za-z0-9_-`. All other names are lower_snake_case and no Rust
    /// keywords. A name is short enough for every client. A file can have the name of a tool on
    /// every system.
    Name = "name",
    /// A name is declared once.
    DuplicateName = "duplicate-name",
    /// A name in reserved.toml is never used again.
    ReservedName = "reserved-name",
    /// A permission is declared in service.toml.
    UnknownPermission = "unknown-permission",
    /// A toolset is declared in service.toml, and has a tool.
    Toolset = "toolset",
    /// A resource is declared in service.toml.
    UnknownResource = "unknown-resource",
    /// A capability is declared by the target's resource.
    UnknownCapability = "unknown-capability",
    /// A probe is declared in service.toml.
    UnknownProbe = "unknown-probe",
    /// A type is declared in types.toml.
    UnknownType = "unknown-type",
    /// An error is declared in errors.toml or belongs to the framework.
    UnknownError = "unknown-error",
    /// A role is one that the framework has.
    UnknownRole = "unknown-role",
    /// A revision of the protocol is one that the framework speaks.
    UnknownRevision = "unknown-revision",
    /// The contract serves clients that name no revision, or an unknown one.
    NoFallback = "no-fallback",
    /// A tool refers only to arguments that it has.
    UnknownArgument = "unknown-argument",
    /// Each role of the framework is played by exactly one error, which has a code of its own. No
    /// other error has the status of `handed_over`.
    Role = "role",
    /// Permissions do not imply each other in a circle.
    ImpliesCycle = "implies-cycle",
    /// A type does not contain itself.
    TypeCycle = "type-cycle",
    /// Every text that an agent or a maintainer reads is present.
    MissingText = "missing-text",
    /// A text is one line of characters that appear as they are, without markup.
    PlainText = "plain-text",
    /// A word in backticks or with `_` is a name of the contract.
    UnknownWord = "unknown-word",
    /// No text says a retired value of an enum, except in a sentence that reserved.toml allows.
    RetiredWord = "retired-word",
    /// A placeholder has a meaning where it stands.
    UnknownPlaceholder = "unknown-placeholder",
    /// A tool's texts name only tools that every caller of it may call.
    HiddenTool = "hidden-tool",
    /// A `use_when` goes on after the words `Use it`.
    UseWhen = "use-when",
    /// A `not_when` names another tool.
    NoAlternative = "no-alternative",
    /// The next step after a state that is not final, or not certain, names the tool to call.
    NextStepNamesATool = "next-step-names-a-tool",
    /// A retryable error has a delay in seconds.
    RetryableWithoutDelay = "retryable-without-delay",
    /// No name is too long for clients, and the names of a service are not too many in all.
    TooLong = "too-long",
    /// A description is short enough for clients.
    DescriptionTooLong = "description-too-long",
    /// The doc of an argument is short enough.
    ArgumentTooLong = "argument-too-long",
    /// A brief is short enough.
    BriefTooLong = "brief-too-long",
    /// The whole list of tools fits what clients take.
    ListTooLong = "list-too-long",
    /// The whole list of tools with their output schemas fits what clients take.
    ListWithOutputsTooLong = "list-with-outputs-too-long",
    /// The instructions fit what clients take.
    InstructionsTooLong = "instructions-too-long",
    /// The first paragraph of the instructions fits where it is shown alone.
    InstructionsLead = "instructions-lead",
    /// Bounds leave more than one value, and numbers lie within their limits.
    Bounds = "bounds",
    /// The flags of a field fit each other, the field's type and its place.
    Field = "field",
    /// A text in a result or an error is marked with its author: `untrusted`, `secret` or `ours`.
    /// An address is a `url`.
    UnmarkedText = "unmarked-text",
    /// A field that may be null says what null means.
    UnexplainedNull = "unexplained-null",
    /// The body of a tool is a field of its result: a text, or a picture. No other field is a
    /// picture.
    Body = "body",
    /// An example fits the schemas of its tool.
    Example = "example",
    /// An HTTP twin is `METHOD /v1/path`, its method fits the effect, and each argument is allowed
    /// where the twin puts it.
    Http = "http",
    /// A request matches one HTTP twin, and a path always uses the same names for its arguments.
    DuplicateRoute = "duplicate-route",
    /// The target's argument is of the resource's identifier type and required.
    Target = "target",
    /// An act declares `destructive`, `idempotent` and `open_world`, and no other tool does.
    Act = "act",
    /// A tool has task terms exactly if its effect is `task`, and it then has a target.
    Task = "task",
    /// The cases of a task cover every value of the argument that selects them.
    CaseNotTotal = "case-not-total",
    /// One tool reads tasks. Its arguments, result and errors are derived.
    ReadTask = "read-task",
    /// An operation that must not be sent twice is verified by a probe that compares with a
    /// baseline.
    NoBaseline = "no-baseline",
}

impl Rule {
    /// Returns true if the rule bounds the length of a text that clients read.
    pub(crate) fn is_of_length(self) -> bool {
        self == Self::InstructionsLead || self.id().ends_with("-too-long")
    }
}

/// Each is played by one error of the contract.
pub const ROLES: [&str; 26] = [
    "unauthenticated",
    "forbidden",
    "not_supported",
    "rate_limited",
    "invalid_argument",
    "not_found",
    "target_busy",
    "upstream_unavailable",
    "overloaded",
    "handed_over",
    "internal",
    OUTCOME_UNKNOWN,
    "parse_error",
    "invalid_request",
    "unsupported_version",
    "header_mismatch",
    "missing_capability",
    "method_not_found",
    "invalid_params",
    "unknown_tool",
    "method_not_allowed",
    "origin_not_allowed",
    "no_route",
    "body_too_large",
    "unsupported_media_type",
    "request_timeout",
];

/// Only a contract with an act that is not idempotent has it.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";

/// The newest first.
pub const REVISIONS: [&str; 4] = ["2026-07-28", "2025-11-25", "2025-06-18", FALLBACK];

/// Every contract serves it to clients that name no revision, or an unknown one.
pub const FALLBACK: &str = "2025-03-26";

/// The platform's reports about a write.
pub(crate) const REPORTS: [&str; 5] = ["success", "failure", "no_answer", "not_sent", "busy"];

/// The runtime defines these types; generated code only names them.
pub const RUNTIME_TYPES: [&str; 4] = ["Evidence", "Refund", "TaskStatus", "UpstreamReport"];

/// Only the first is not terminal.
pub const STATES: [&str; 6] = ["dispatched", "success", "success_unverified", "failed", "failed_silent", "timeout"];

/// The first three are only parts of documents: fields cannot have them.
pub(crate) const FRAMEWORK_TYPES: &str = "Remark Task TaskAccepted Evidence IdempotencyKey Permission Probe Refund TaskId TaskStatus UpstreamReport \
    WaitSeconds";
