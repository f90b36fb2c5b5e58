//! The answers to commands: a type for each, which a text, `--json` and the console show.

mod trail;

pub use crate::history::{Counts, LastDay, Period};
pub use crate::upstreams::UpstreamRow;
pub use trail::{AuditLine, AuditPage, AuditTail, LineOperator, OtherTrail, TrailFault, Verification};

use crate::error::OperatorError;
use clap::ValueEnum;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_core::act::{Changes, Role};
use toolwarrant_core::store::Labels;
use toolwarrant_tasks::history::TaskHistory;

/// The act of a change.
#[derive(Clone, Debug, Serialize)]
pub struct ActMade {
    pub act_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An answer to a change.
#[derive(Clone, Debug, Serialize)]
pub struct WithAct<T> {
    #[serde(flatten)]
    pub answer: T,
    #[serde(flatten)]
    pub made: ActMade,
}

macro_rules! answers {
    ($($name:ident($type:ty),)*) => {
        /// The answer to a command. On the socket it is its content. `Shown` is never read: the
        /// schemas of tools, changes of whole stores, and the answers of a service's own commands.
        #[derive(Clone, Debug, Serialize)]
        #[serde(untagged)]
        pub enum OperatorAnswer {
            $($name($type),)*
        }
        $(impl From<$type> for OperatorAnswer {
            fn from(answer: $type) -> Self {
                Self::$name(answer)
            }
        }
        impl TryFrom<OperatorAnswer> for $type {
            type Error = OperatorError;

            fn try_from(answer: OperatorAnswer) -> Result<Self, OperatorError> {
                match answer {
                    OperatorAnswer::$name(answer) => Ok(answer),
                    _ => Err(OperatorError::refusal("the command has another answer")),
                }
            }
        })*
    };
}

answers! {
    Applications(Vec<ListedApplication>),
    Application(Box<ApplicationAnswer>),
    Keys(Vec<KeyAnswer>),
    Key(Box<KeyAnswer>),
    NewKey(NewKeyAnswer),
    RevokedKey(RevokedKeyAnswer),
    Targets(Vec<TargetRow>),
    States(StateCounts),
    Tasks(ListedTasks),
    Task(Box<TaskAnswer>),
    Refunds(Vec<RefundRow>),
    FoundObject(FoundObject),
    Acts(Vec<ActRow>),
    Audit(AuditPage),
    AuditTail(AuditTail),
    Verification(Verification),
    Overview(Box<OverviewAnswer>),
    Doctor(Diagnosis),
    Sessions(Vec<ConsoleSession>),
    Link(WithAct<ConsoleLink>),
    Shown(Value),
}

/// An application.
#[derive(Clone, Debug, Serialize)]
pub struct ApplicationFacts {
    pub name: String,
    pub id: String,
    pub permissions: Vec<String>,
    pub suspended_at: Option<Timestamp>,
    pub labels: Labels,
    /// The targets that it sees, by the plural of the resource.
    #[serde(flatten)]
    pub sees: BTreeMap<String, SeenTargets>,
}

/// The targets of one resource that an application sees.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum SeenTargets {
    Text(String),
    Count(usize),
    Terms(Vec<String>),
}

/// An application in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedApplication {
    #[serde(flatten)]
    pub application: ApplicationFacts,
    pub live_keys: usize,
    pub requests_per_minute: u32,
}

/// An application with its keys.
#[derive(Clone, Debug, Serialize)]
pub struct ApplicationAnswer {
    #[serde(flatten)]
    pub application: ApplicationFacts,
    pub requests_per_minute: u32,
    pub requests_in_last_minute: Option<u32>,
    pub created_at: Timestamp,
    pub keys: Vec<KeyAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_acts: Option<Vec<ActRow>>,
    /// Of a change.
    #[serde(flatten)]
    pub made: Option<ActMade>,
}

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

/// A key.
#[derive(Clone, Debug, Serialize)]
pub struct KeyAnswer {
    pub key_id: String,
    pub application: String,
    pub state: KeyState,
    pub live_secrets: usize,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub last_used_from: Option<IpAddr>,
    pub labels: Labels,
    /// The live ones, the latest first.
    pub secrets: Vec<SecretAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_acts: Option<Vec<ActRow>>,
    /// Of a change.
    #[serde(flatten)]
    pub made: Option<ActMade>,
}

/// A key that was created or rotated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewKeyAnswer {
    pub key_id: String,
    pub secret: String,
    pub act_id: String,
    pub note: String,
}

/// A key that was revoked.
#[derive(Clone, Debug, Serialize)]
pub struct RevokedKeyAnswer {
    pub key_id: String,
    pub state: KeyState,
    #[serde(flatten)]
    pub made: ActMade,
}

#[derive(Clone, Debug, Serialize)]
pub struct SecretAnswer {
    pub created_at: Option<Timestamp>,
    pub ends_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub last_used_from: Option<IpAddr>,
}

/// A target in a list.
#[derive(Clone, Debug, Serialize)]
pub struct TargetRow {
    /// The first field.
    #[serde(skip)]
    pub id: String,
    /// The fields that the service shows.
    #[serde(flatten)]
    pub shown: Map<String, Value>,
    pub unreadable_since: Option<Timestamp>,
    pub applications: Vec<String>,
}

/// The numbers of targets.
#[derive(Clone, Debug, Serialize)]
pub struct StateCounts {
    pub count: u64,
    pub states: BTreeMap<&'static str, u64>,
    pub offers: BTreeMap<&'static str, u64>,
    pub prefixes: BTreeMap<String, u64>,
}

/// A task in a list.
#[derive(Clone, Debug, Serialize)]
pub struct TaskRow {
    pub task_id: String,
    pub application: String,
    pub tool: String,
    /// The target by the name of its argument or, if the contract has several resources, `resource`
    /// and `target`.
    #[serde(flatten)]
    pub names: BTreeMap<&'static str, String>,
    pub status: &'static str,
    pub phase: Option<&'static str>,
    pub attempts: u8,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    #[serde(skip)]
    pub target: String,
}

/// A page of tasks.
#[derive(Clone, Debug, Serialize)]
pub struct ListedTasks {
    pub tasks: Vec<TaskRow>,
    pub examined: u32,
    pub next: Option<String>,
    pub note: Option<&'static str>,
}

/// A task with its history.
#[derive(Clone, Debug, Serialize)]
pub struct TaskAnswer {
    #[serde(flatten)]
    pub task: TaskRow,
    pub resource: String,
    pub refunded_at: Option<Timestamp>,
    pub meaning: Option<&'static str>,
    #[serde(flatten)]
    pub call: Option<TaskCall>,
    #[serde(flatten)]
    pub history: TaskHistory,
}

/// The call that made a task.
#[derive(Clone, Debug, Serialize)]
pub struct TaskCall {
    pub request_id: String,
    pub key_id: String,
    pub arguments: Option<Map<String, Value>>,
}

/// A refund.
#[derive(Clone, Debug, Serialize)]
pub struct RefundRow {
    pub refunded_at: Timestamp,
    pub application: String,
    pub units: u32,
    pub task_id: String,
    pub number: u64,
}

/// A found id, with what belongs to it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FoundObject {
    Act { act: Box<ActRow> },
    Task { task: Box<TaskAnswer>, lines: Vec<Value> },
    Key { key: Box<KeyAnswer>, acts: Vec<ActRow>, lines: Vec<Value> },
    Application { application: Box<ApplicationAnswer>, tasks: Vec<TaskRow>, acts: Vec<ActRow> },
    Request { lines: Vec<Value>, task: Option<Box<TaskAnswer>> },
    Target(FoundTarget),
}

/// A found target.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FoundTarget {
    pub seen_by: Vec<Viewers>,
    pub tasks: Vec<TaskRow>,
    pub lines: Vec<Value>,
}

/// The applications that see a target.
#[derive(Clone, Debug, Serialize)]
pub struct Viewers {
    pub resource: &'static str,
    pub applications: Vec<String>,
}

/// An act of an operator.
#[derive(Clone, Debug, Serialize)]
pub struct ActRow {
    pub time: Timestamp,
    pub by: String,
    pub command: String,
    pub object: Option<String>,
    pub name: Option<String>,
    pub changes: Changes,
    pub reason: Option<String>,
    pub claims: Option<String>,
    pub channel: &'static str,
    pub uid: u32,
    pub act_id: String,
    pub number: u64,
}

/// The overview of a server.
#[derive(Clone, Debug, Serialize)]
pub struct OverviewAnswer {
    #[serde(flatten)]
    pub server: ServerFacts,
    pub targets: Vec<TargetCounts>,
    pub needs_a_look: Vec<Concern>,
}

/// The targets of a resource, by state.
#[derive(Clone, Debug, Serialize)]
pub struct TargetCounts {
    pub resource: &'static str,
    pub count: u64,
    pub states: BTreeMap<&'static str, u64>,
}

/// A thing that is not as it should be.
#[derive(Clone, Debug, Serialize)]
pub struct Concern {
    pub count: usize,
    pub what: String,
    pub see: ListCommand,
}

/// The command that lists what a concern is about.
#[derive(Clone, Debug)]
pub struct ListCommand {
    pub words: Vec<&'static str>,
    pub flags: Vec<(&'static str, String)>,
}

impl Serialize for ListCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let flags = self.flags.iter().map(|(name, value)| format!(" --{name}={value}"));
        serializer.serialize_str(&(self.words.join(" ") + &flags.collect::<String>()))
    }
}

/// The state of a server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerFacts {
    pub ready: bool,
    pub why_not: Option<String>,
    pub remark: Option<String>,
    /// While it serves.
    #[serde(flatten)]
    pub load: Option<ServerLoad>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_day: Option<LastDay>,
}

/// The load of a server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerLoad {
    pub started_at: Timestamp,
    pub tasks_in_flight: usize,
    pub held_polls: usize,
    pub connections: usize,
    pub engine_lag_seconds: u64,
    pub audit_seal_age_seconds: u64,
    pub upstreams: Vec<UpstreamRow>,
}

/// The result of the doctor.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Diagnosis {
    pub healthy: bool,
    pub checks: Vec<Value>,
    pub faults: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_examined: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Value>,
    pub remedies: Vec<Value>,
    /// The amount of data that grows, its oldest entry, and the time for which it is stored.
    pub kept: Vec<Value>,
}

/// A link into the console.
#[derive(Clone, Debug, Serialize)]
pub struct ConsoleLink {
    pub link: String,
    pub role: Role,
    pub works_once_until: Timestamp,
    pub from_another_machine: Option<String>,
}

/// A session of the console.
#[derive(Clone, Debug, Serialize)]
pub struct ConsoleSession {
    pub session: String,
    pub by: String,
    pub role: Role,
    pub began_at: Timestamp,
    pub used_at: Timestamp,
    pub ends_at: Timestamp,
}

/// The judgement in an answer.
#[derive(Default, Deserialize)]
struct Judgement {
    healthy: Option<bool>,
    sound: Option<bool>,
}

/// Returns true if an answer, as the socket carries it, reports a fault.
#[must_use]
pub fn has_fault(answer: &Value) -> bool {
    let Judgement { healthy, sound } = json::convert(answer).unwrap_or_default();
    healthy == Some(false) || sound == Some(false)
}
