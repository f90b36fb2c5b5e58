//! The selections of commands that list something.

use crate::when::{TimePoint, span};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use toolwarrant_core::tasks::TaskStatus;

/// Selects keys.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyQuery {
    /// Only keys of this application
    pub app: Option<String>,
    /// Only keys in this state
    #[arg(long, value_name = "STATE", value_enum)]
    pub state: Option<KeyState>,
    /// Only keys that were not used for this time span, such as 90d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub unused_for: Option<Duration>,
    /// Only keys that end, or whose older secret ends, within this time span
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub ends_within: Option<Duration>,
    /// Only keys whose latest secret is older than this time span
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub older_than: Option<Duration>,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It can be used.
    Live,
    /// It is refused until `key resume`.
    Suspended,
    /// Its end has passed.
    Expired,
    /// It has no secrets any more.
    Revoked,
    /// It has been off since a restore, until `key confirm`.
    Unconfirmed,
}

pub(super) fn parse_span(text: &str) -> Result<Duration, &'static str> {
    span(text).ok_or("expected a time span such as 30m, 12h or 90d")
}

/// Selects targets.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetQuery {
    /// Only {targets} that this application sees
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Only {targets} whose ids begin so
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Only {targets} after this one
    #[arg(long, value_name = "{TARGET}")]
    pub after: Option<String>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u16,
}

/// Selects lines of the audit trail.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditQuery {
    /// Only calls of this application: a name or an id
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Only calls with this key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only calls with this {target}, and acts on this application or key
    #[arg(long = "on", value_name = "ID")]
    pub target: Option<String>,
    /// Only lines with this outcome: ok, or the code of a failure
    #[arg(long, value_name = "OUTCOME")]
    pub outcome: Option<String>,
    /// Only the call with this request id
    #[arg(long, value_name = "ID")]
    pub request: Option<String>,
    /// Only calls that made or read this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// Only acts of this user, as the server's machine names it
    #[arg(long, value_name = "USER")]
    pub operator: Option<String>,
    /// Only lines at this time or later: 2h, 2026-11-22, or 2026-11-22T18:00 with Z or +02:00
    #[arg(long, value_name = "TIME")]
    pub since: Option<TimePoint>,
    /// Only lines before this time, in the same forms
    #[arg(long, value_name = "TIME")]
    pub until: Option<TimePoint>,
    /// Only lines before this place: the `next` of the page before
    #[arg(long, value_name = "PLACE")]
    pub before: Option<String>,
    /// Maximum number of lines
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// Selects acts.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActQuery {
    /// Only those of this user, as the server's machine names it
    #[arg(long, value_name = "USER")]
    pub by: Option<String>,
    /// Only those on this application or key: a name or an id
    #[arg(long, value_name = "OBJECT")]
    pub on: Option<String>,
    /// Only those of this command, such as "key revoke", or of all that begin so, such as key
    #[arg(long, value_name = "WORDS")]
    pub command: Option<String>,
    /// Only those at this time or later: 2h, 2026-11-22, or 2026-11-22T18:00 with Z or +02:00
    #[arg(long, value_name = "TIME")]
    pub since: Option<TimePoint>,
    /// Only those before this time, in the same forms
    #[arg(long, value_name = "TIME")]
    pub until: Option<TimePoint>,
    /// Only those before the act with this number: the next page
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
}

/// Selects tasks.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskListQuery {
    /// Only tasks of this application: a name or an id
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Only tasks of this tool
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only tasks with this status; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_parser = parse_status)]
    pub statuses: Vec<String>,
    /// Only tasks in flight
    #[arg(long, conflicts_with = "statuses")]
    pub in_flight: bool,
    /// Only tasks on targets of this resource
    #[arg(long, value_name = "RESOURCE")]
    pub resource: Option<String>,
    /// Only tasks on this {target}
    #[arg(long = "{target}", value_name = "{TARGET}")]
    pub target: Option<String>,
    /// Only tasks accepted at this time or later: 2h, 2026-11-22, or 2026-11-22T18:00 with Z or
    /// +02:00
    #[arg(long, value_name = "TIME")]
    pub since: Option<TimePoint>,
    /// Only tasks accepted before this time, in the same forms
    #[arg(long, value_name = "TIME")]
    pub until: Option<TimePoint>,
    /// Only tasks accepted before this one: the `next` of the page before
    #[arg(long, value_name = "TASK")]
    pub before: Option<String>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

fn parse_status(text: &str) -> Result<String, String> {
    let names: Vec<_> = TaskStatus::ALL.iter().map(|status| status.as_str()).collect();
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected one of {}", names.join(", "))),
    }
}

/// Selects refunds.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefundQuery {
    /// Only refunds of this application: a name or an id
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Only refunds at this time or later: 2h, 2026-11-22, or 2026-11-22T18:00 with Z or +02:00
    #[arg(long, value_name = "TIME")]
    pub since: Option<TimePoint>,
    /// Only refunds before this time, in the same forms
    #[arg(long, value_name = "TIME")]
    pub until: Option<TimePoint>,
    /// Only refunds before the one with this number: the next page
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
}
