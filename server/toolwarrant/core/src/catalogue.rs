//! The contract at run time: static data that the generator writes and the pipeline reads.
//!
//! Start at [`Catalogue`].

pub use super::permissions::PermissionSet;

use super::advice::Advice;
use super::args::ArgumentErrors;
use super::report::UpstreamReport;
use super::revision::Revision;
use toolwarrant_base::wording::Words;

/// A whole contract. The generator writes it as one `static`.
#[derive(Debug)]
pub struct Catalogue {
    /// Identity, revisions and limits.
    pub service: ServiceDef,
    /// All permissions, in the order of the contract. A [`PermissionSet`] has one bit for each.
    pub permissions: &'static [PermissionDef],
    /// All resources, in the order of the contract.
    pub resources: &'static [ResourceDef],
    /// All tools, in the order of the contract.
    pub tools: &'static [ToolDef],
    /// The commands that tasks store.
    pub commands: &'static [CommandDef],
    /// The error codes that the framework itself answers with.
    pub roles: Roles,
    /// The meaning of each task status and what to do next, in the order of
    /// [`TaskStatus`](super::tasks::TaskStatus). Empty if no tool makes tasks.
    pub states: &'static [StateDef],
    /// All probes, in the order of the contract.
    pub probes: &'static [ProbeDef],
    /// The wording of the framework's own answers.
    pub phrases: PhraseDefs,
    /// The OpenAPI document of `/v1`, as compact JSON. It contains `"servers":[{"url":"/"}]`
    /// exactly once. Code that serves the routes below another path replaces this with its URL,
    /// quoted as JSON.
    pub openapi: &'static str,
    /// The document of the contract.
    pub contract: ContractDef,
}

/// The document of the contract, which is public: its facts, and the changes since the last
/// release.
#[derive(Clone, Copy, Debug)]
pub struct ContractDef {
    /// The path of the document.
    pub path: &'static str,
    /// The SHA-256 of the facts, in hexadecimal digits.
    pub digest: &'static str,
    /// The strong entity tag of the document, with its quotation marks.
    pub etag: &'static str,
    /// The document, as compact JSON.
    pub document: &'static str,
}

impl Catalogue {
    /// Finds a resource by its exact name.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<&'static ResourceDef> {
        self.resources.iter().find(|resource| resource.name == name)
    }

    /// Returns the names of all resources, in the order of the contract.
    #[must_use]
    pub fn resource_names(&self) -> Vec<&'static str> {
        self.resources.iter().map(|resource| resource.name).collect()
    }

    /// Finds a tool by its exact name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&'static ToolDef> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Checks that the contract can read a stored command of `tool`.
    ///
    /// # Errors
    /// The reason why it cannot. It shows no values.
    pub fn judge_stored(&self, tool: &str, arguments: &str) -> Result<(), String> {
        let command = self.commands.iter().find(|command| command.tool == tool);
        let command = command.ok_or_else(|| format!("no tool `{tool}` makes tasks"))?;
        (command.judge)(arguments).map_err(|why| why.as_str().to_owned())
    }
}

/// Identity, revisions and limits of the service.
#[derive(Debug)]
pub struct ServiceDef {
    /// `serverInfo.name`.
    pub name: &'static str,
    /// `serverInfo.title`.
    pub title: &'static str,
    /// `serverInfo.version`.
    pub version: &'static str,
    /// The sentences that say what the service is. `serverInfo.description` has those that name no
    /// tool.
    pub doc: Advice,
    /// The paragraphs of the instructions that `initialize` gives an agent.
    pub instructions: &'static [Advice],
    /// The revisions of the protocol that the service supports, the newest first. They include
    /// [`Revision::FALLBACK`].
    pub served: &'static [Revision],
    /// Default request budget of an application in any 60 seconds.
    pub requests_per_minute: u32,
    /// Shortest interval between two polls of one task, in seconds.
    pub poll_interval_seconds: u32,
    /// Longest time that a poll without `wait_seconds` is held, in seconds.
    pub hold_seconds: u32,
}

/// A permission.
#[derive(Debug)]
pub struct PermissionDef {
    /// Its name on the wire and on the command line.
    pub name: &'static str,
    /// The actions that it allows.
    pub doc: &'static str,
    /// Its bit.
    pub bit: PermissionSet,
    /// The permissions that it gives to an application: itself and all that it implies.
    pub grants: PermissionSet,
}

/// An error code.
#[derive(Debug, PartialEq, Eq)]
pub struct ErrorDef {
    /// The code on the wire.
    pub code: &'static str,
    /// Delay before a repeat in seconds, if no better value is known. `None`: it is not retryable.
    pub retry_after_seconds: Option<u32>,
    /// The HTTP status under `/v1`, and of refusals before JSON-RPC is read.
    pub http: u16,
    /// JSON-RPC error code, for failures of the protocol.
    pub jsonrpc: i32,
    /// The meaning of the code, in one sentence.
    pub meaning: &'static str,
    /// The advice to the caller. `{field}` stands for the value of a field of the failure.
    pub remedy: Advice,
}

impl ErrorDef {
    /// Returns true if a repeat of the call can help.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        self.retry_after_seconds.is_some()
    }
}

/// The error codes that the framework answers with. The contract gives each a role, so the
/// framework does not know codes by name.
#[derive(Debug)]
pub struct Roles {
    pub unauthenticated: &'static ErrorDef,
    pub forbidden: &'static ErrorDef,
    pub not_supported: &'static ErrorDef,
    pub rate_limited: &'static ErrorDef,
    pub invalid_argument: &'static ErrorDef,
    pub not_found: &'static ErrorDef,
    pub target_busy: &'static ErrorDef,
    pub upstream_unavailable: &'static ErrorDef,
    pub overloaded: &'static ErrorDef,
    pub internal: &'static ErrorDef,
    pub parse_error: &'static ErrorDef,
    pub invalid_request: &'static ErrorDef,
    pub unsupported_version: &'static ErrorDef,
    pub header_mismatch: &'static ErrorDef,
    pub method_not_found: &'static ErrorDef,
    pub invalid_params: &'static ErrorDef,
    pub unknown_tool: &'static ErrorDef,
    pub method_not_allowed: &'static ErrorDef,
    pub origin_not_allowed: &'static ErrorDef,
    pub no_route: &'static ErrorDef,
    pub body_too_large: &'static ErrorDef,
    pub unsupported_media_type: &'static ErrorDef,
    pub request_timeout: &'static ErrorDef,
}

/// A kind of target that tools act on.
#[derive(Debug)]
pub struct ResourceDef {
    /// Its name, such as `printer`.
    pub name: &'static str,
    /// Its description.
    pub doc: &'static str,
    /// Returns true if a text has the form of an id of this resource.
    pub admits: fn(&str) -> bool,
    /// The states that one can be in, in the order of the contract; empty if it does not say.
    pub states: &'static [&'static str],
    /// The capabilities that one may offer, in the order of the contract.
    pub capabilities: &'static [&'static str],
    /// Advice for finding an id.
    pub find: Advice,
}

/// A tool.
#[derive(Debug)]
pub struct ToolDef {
    /// Its position in [`Catalogue::tools`].
    pub index: usize,
    /// Its name on the wire.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The description for clients: all that they must know of it.
    pub description: &'static str,
    /// The hints that `tools/list` gives a client.
    pub hints: ToolHints,
    /// The permission that it needs.
    pub permission: &'static PermissionDef,
    /// The target that it acts on, if any.
    pub target: Option<TargetDef>,
    /// All error codes that a call can end with.
    pub errors: &'static [&'static ErrorDef],
    /// Its route under `/v1`, if it has one.
    pub http: Option<HttpDef>,
    /// Checks that arguments, a JSON object, are valid for it.
    pub judge: fn(&str) -> Result<(), ArgumentErrors>,
    /// The arguments whose values are secret.
    pub secrets: &'static [&'static str],
    /// The schema of its arguments, as JSON.
    pub input_schema: &'static str,
    /// The schema of its result, as JSON.
    pub output_schema: &'static str,
    /// The execution of its tasks, if it makes tasks.
    pub task: Option<TaskDef>,
}

/// The hints of `tools/list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolHints {
    /// True if it changes nothing.
    pub read_only: bool,
    /// True if it can destroy existing data.
    pub destructive: bool,
    /// True if a repeat with the same arguments has no further effect.
    pub idempotent: bool,
}

/// The target of a tool.
#[derive(Debug)]
pub struct TargetDef {
    /// The resource, such as `printer`.
    pub resource: &'static str,
    /// The argument that holds its id.
    pub arg: &'static str,
    /// The capability that the target must offer, if one is required.
    pub requires: Option<&'static str>,
}

/// A route under `/v1`.
#[derive(Debug)]
pub struct HttpDef {
    /// The method.
    pub method: &'static str,
    /// The path, with `{argument}` for path parameters.
    pub path: &'static str,
}

/// The execution of the tasks of a tool.
#[derive(Debug)]
pub struct TaskDef {
    /// The policy for each value of the argument that selects one. A single entry with an empty
    /// value applies to all calls.
    pub cases: &'static [(&'static str, PolicyDef)],
}

/// A command that tasks store.
#[derive(Debug)]
pub struct CommandDef {
    /// The tool that makes these tasks.
    pub tool: &'static str,
    /// Checks that stored arguments can be read.
    pub judge: fn(&str) -> Result<(), Words>,
}

/// The policy for sending, verifying and ending one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyDef {
    /// The probe that verifies the operation. Without a probe, it is never verified and never sent
    /// again.
    pub probe: Option<&'static str>,
    /// True if the probe compares with a reading from before the send.
    pub baseline: bool,
    /// True if it may be sent again after the first send can no longer take effect.
    pub idempotent: bool,
    /// Longest time until the effect of an accepted request shows, in seconds.
    pub settle_seconds: u32,
    /// Longest time from the first possible send to the end of the task, in seconds.
    pub deadline_seconds: u32,
}

impl PolicyDef {
    /// Returns this policy with the times of `other`. If the deadline of `other` is not after its
    /// settle time, the gap between the two stays that of this policy.
    #[must_use]
    pub fn with_times_of(self, other: Self) -> Self {
        let Self { settle_seconds, deadline_seconds, .. } = other;
        let room = self.deadline_seconds.saturating_sub(self.settle_seconds).max(1);
        let settle_seconds = settle_seconds.min(u32::MAX - room);
        let sound = deadline_seconds > settle_seconds;
        let deadline_seconds = if sound { deadline_seconds } else { settle_seconds + room };
        Self { settle_seconds, deadline_seconds, ..self }
    }
}

/// The contract's texts for a task status.
#[derive(Debug)]
pub struct StateDef {
    /// Its name on the wire.
    pub name: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// Advice for the next step.
    pub next_step: Advice,
    /// Advice that replaces `next_step`, by the report of the upstream.
    pub reported: &'static [(UpstreamReport, Advice)],
}

/// A probe.
#[derive(Debug)]
pub struct ProbeDef {
    /// Its name.
    pub name: &'static str,
    /// Advice if its reading from before the send failed, so that nothing was sent.
    pub unread: Advice,
    /// Advice if its task ended as `timeout`.
    pub timeout: Advice,
    /// Advice if its task ended as `success`.
    pub success: Advice,
}

/// The framework's own answers, in the contract's words.
#[derive(Debug)]
pub struct PhraseDefs {
    /// The write repeats a task in flight.
    pub same_write: Advice,
    /// The idempotency key belongs to another write in flight.
    pub other_write: Advice,
    /// No task has this id.
    pub lost_task: Advice,
    /// A capability is refused, and there is a remedy.
    pub curable: Advice,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_decides_how_long_a_write_takes_and_no_other_part_of_its_policy() {
        let policy = |settle_seconds, deadline_seconds| PolicyDef {
            probe: Some("paper"),
            baseline: true,
            idempotent: false,
            settle_seconds,
            deadline_seconds,
        };
        let declared = policy(10, 60);
        let other =
            |settle, deadline| PolicyDef { probe: None, baseline: false, idempotent: true, ..policy(settle, deadline) };
        assert_eq!(declared.with_times_of(other(10, 60)), declared);
        assert_eq!(declared.with_times_of(other(90, 600)), policy(90, 600));
        assert_eq!(declared.with_times_of(other(0, 1)), policy(0, 1));
        for deadline in [0, 89, 90] {
            assert_eq!(declared.with_times_of(other(90, deadline)), policy(90, 140), "deadline {deadline}");
        }
        assert_eq!(declared.with_times_of(other(u32::MAX, 7)), policy(u32::MAX - 50, u32::MAX));
    }
}
