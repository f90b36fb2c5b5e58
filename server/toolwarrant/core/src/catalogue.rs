//! The contract at run time: static data that the generator writes. Lists are in the order of the
//! contract. Start at [`Catalogue`].

pub use super::permissions::PermissionSet;
pub use toolwarrant_common::ToolHints;

use super::advice::Advice;
use super::args::{ArgumentErrors, StringRule};
use super::report::UpstreamReport;
use super::revision::Revision;
use toolwarrant_base::wording::Words;
use toolwarrant_common::ToolItem;

/// A whole contract.
#[derive(Debug)]
pub struct Catalogue {
    /// Identity, revisions and limits.
    pub service: ServiceDef,
    /// All permissions. A [`PermissionSet`] has one bit for each.
    pub permissions: &'static [PermissionDef],
    /// All toolsets.
    pub toolsets: &'static [ToolsetDef],
    /// All resources.
    pub resources: &'static [ResourceDef],
    /// All tools.
    pub tools: &'static [ToolDef],
    /// The commands that tasks store.
    pub commands: &'static [CommandDef],
    /// The tool that reads tasks, if hosts may follow tasks by the extension of the protocol.
    pub followed: Option<&'static ToolDef>,
    /// The framework's own error codes.
    pub roles: Roles,
    /// The texts for each task status, in the order of [`TaskStatus`](super::tasks::TaskStatus).
    /// Empty if no tool makes tasks.
    pub states: &'static [StateDef],
    /// All probes.
    pub probes: &'static [ProbeDef],
    /// The wording of the framework's own answers.
    pub phrases: PhraseDefs,
    /// The OpenAPI document of `/v1`, as compact JSON. It contains `"servers":[{"url":"/"}]`
    /// exactly once, which code that serves the routes below another path replaces with its URL.
    pub openapi: &'static str,
    /// The public document of the contract.
    pub contract: ContractDef,
}

#[derive(Clone, Copy, Debug)]
pub struct ContractDef {
    pub path: &'static str,
    /// SHA-256 of the facts, in hexadecimal digits.
    pub digest: &'static str,
    /// With its quotation marks.
    pub etag: &'static str,
    /// Compact JSON.
    pub document: &'static str,
}

impl Catalogue {
    /// Finds a resource by its exact name.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<&'static ResourceDef> {
        self.resources.iter().find(|resource| resource.name == name)
    }

    /// Returns the names of all resources.
    #[must_use]
    pub fn resource_names(&self) -> Vec<&'static str> {
        self.resources.iter().map(|resource| resource.name).collect()
    }

    /// Finds a tool by its exact name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&'static ToolDef> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Checks that the contract can read a stored command of `tool`. The error shows no values.
    pub fn judge_stored(&self, tool: &str, arguments: &str) -> Result<(), String> {
        let command = self.commands.iter().find(|command| command.tool == tool);
        let command = command.ok_or_else(|| format!("no tool `{tool}` makes tasks"))?;
        (command.judge)(arguments).map_err(|why| why.as_str().to_owned())
    }
}

#[derive(Debug)]
pub struct ServiceDef {
    pub name: &'static str,
    pub title: &'static str,
    pub version: &'static str,
    /// `serverInfo.description` has the sentences that name no tool.
    pub doc: Advice,
    pub instructions: &'static [Advice],
    /// The newest first. They include [`Revision::FALLBACK`].
    pub served: &'static [Revision],
    /// The default, in any 60 seconds.
    pub requests_per_minute: u32,
    pub poll_interval_seconds: u32,
    /// For a poll without `wait_seconds`.
    pub hold_seconds: u32,
}

#[derive(Debug)]
pub struct PermissionDef {
    pub name: &'static str,
    pub doc: &'static str,
    pub bit: PermissionSet,
    /// With all that it implies.
    pub grants: PermissionSet,
}

#[derive(Debug)]
pub struct ToolsetDef {
    pub name: &'static str,
    pub doc: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ErrorDef {
    pub code: &'static str,
    /// `None`: it is not retryable.
    pub retry_after_seconds: Option<u32>,
    /// Under `/v1`, and of refusals before JSON-RPC is read.
    pub http: u16,
    pub jsonrpc: i32,
    pub meaning: &'static str,
    /// `{field}` stands for the value of a field.
    pub remedy: Advice,
}

impl ErrorDef {
    #[must_use]
    pub const fn retryable(&self) -> bool {
        self.retry_after_seconds.is_some()
    }
}

/// The contract assigns the codes, so the framework knows no code by name.
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
    /// Nothing was done, so a balancer may repeat the request elsewhere. No other error has this
    /// status.
    pub handed_over: &'static ErrorDef,
    pub internal: &'static ErrorDef,
    /// Only of a contract with an act that is not idempotent.
    pub outcome_unknown: Option<&'static ErrorDef>,
    pub parse_error: &'static ErrorDef,
    pub invalid_request: &'static ErrorDef,
    pub unsupported_version: &'static ErrorDef,
    pub header_mismatch: &'static ErrorDef,
    pub missing_capability: &'static ErrorDef,
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

#[derive(Debug)]
pub struct ResourceDef {
    pub name: &'static str,
    pub doc: &'static str,
    /// The rule for their ids.
    pub ids: StringRule,
    /// Empty if the contract declares none.
    pub states: &'static [&'static str],
    /// The state of one that cannot be read.
    pub unreadable: Option<&'static str>,
    pub capabilities: &'static [&'static str],
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
    /// The description for clients.
    pub description: &'static str,
    /// The hints that `tools/list` gives a client.
    pub hints: ToolHints,
    /// True if it changes something at once, and nothing verifies it.
    pub acts: bool,
    /// The permission that it needs.
    pub permission: &'static PermissionDef,
    /// The position of its toolset, if it has one.
    pub toolset: Option<usize>,
    /// The bit that its callers have: that of its permission, or one of the permission in the
    /// toolset.
    pub right: PermissionSet,
    /// The target that it acts on, if any.
    pub target: Option<TargetDef>,
    /// All error codes that a call can end with.
    pub errors: &'static [&'static ErrorDef],
    /// Its route under `/v1`, if it has one.
    pub http: Option<HttpDef>,
    /// Checks arguments, a JSON object.
    pub judge: fn(&str) -> Result<(), ArgumentErrors>,
    /// The arguments whose values are secret.
    pub secrets: &'static [&'static str],
    /// The schema of its arguments, as JSON.
    pub input_schema: &'static str,
    /// The schema of its result, as JSON. `tools/list` has none of a tool with a body.
    pub output_schema: &'static str,
    /// The field of its result that leaves as a block of its own.
    pub body: Option<BodyDef>,
    /// The execution of its tasks, if it makes tasks.
    pub task: Option<TaskDef>,
}

impl ToolDef {
    /// Returns true if a second call can do what the first has done, and nothing would notice.
    #[must_use]
    pub const fn acts_once(&self) -> bool {
        self.acts && !self.hints.idempotent
    }

    pub(crate) fn list_item(&self) -> ToolItem<'_> {
        let Self { name, title, description, input_schema: input, output_schema, body, hints, .. } = *self;
        ToolItem { name, title, description, input, output: body.is_none().then_some(output_schema), hints }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyDef {
    pub field: &'static str,
    /// Otherwise it is a text.
    pub is_picture: bool,
}

#[derive(Debug)]
pub struct TargetDef {
    pub resource: &'static str,
    pub arg: &'static str,
    pub requires: Option<&'static str>,
}

#[derive(Debug)]
pub struct HttpDef {
    pub method: &'static str,
    pub path: &'static str,
}

#[derive(Debug)]
pub struct TaskDef {
    /// One for each value of the argument that selects it. A single entry with an empty value
    /// applies to all calls.
    pub cases: &'static [(&'static str, PolicyDef)],
}

#[derive(Debug)]
pub struct CommandDef {
    pub tool: &'static str,
    pub judge: fn(&str) -> Result<(), Words>,
}

/// The policy for sending, verifying and ending one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyDef {
    /// The probe that verifies it. Without one, it is never verified and never sent again.
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
    /// Returns this policy with the times of `other`. If its deadline is not after its settle time,
    /// this gap stays.
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

#[derive(Debug)]
pub struct StateDef {
    pub name: &'static str,
    pub meaning: &'static str,
    pub next_step: Advice,
    /// Replaces `next_step`, by the report of the upstream.
    pub reported: &'static [(UpstreamReport, Advice)],
}

#[derive(Debug)]
pub struct ProbeDef {
    pub name: &'static str,
    /// If the reading from before the send failed, so that nothing was sent.
    pub unread: Advice,
    pub timeout: Advice,
    pub success: Advice,
}

#[derive(Debug)]
pub struct PhraseDefs {
    /// The host can follow tasks by itself.
    pub followed: Advice,
    /// A task that a host follows has not ended.
    pub under_way: Advice,
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
