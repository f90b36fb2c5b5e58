//! The answers to commands: a type for each. `--json` shows what the type serializes. The text and
//! the console show its columns, see [`columns`].

mod act;
mod columns;
mod counts;
mod name;
mod server;
mod target;
mod trail;

pub use crate::history::{Counts, LastDay, Period};
pub use crate::upstreams::UpstreamRow;
pub use act::{ActMade, WithAct};
pub use counts::{RefundSum, TaskCounts, TaskPeriod};
pub use name::ApplicationName;
pub use server::{
    BackupAnswer, CheckRow, Concern, ConsoleLink, ConsoleSession, Diagnosis, FaultRow, ListCommand, OverviewAnswer,
    Readiness, RemedyRow, RetentionRow, ServerFacts, ServerLoad, SessionsEnded, TargetCounts, UnexaminedRow,
};
pub use target::{StateCounts, TargetRow, TaskTarget};
pub(crate) use trail::AuditLine;
pub use trail::{AuditPage, AuditTail, OtherTrail, TrailFault, TrailLine, Verification};

use crate::error::OperatorError;
use crate::view::{AnswerView, Show};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_core::act::Changes;
use toolwarrant_core::store::Labels;
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_postgres::ReplicaRun;
use toolwarrant_tasks::history::TaskHistory;

macro_rules! answers {
    ($($name:ident($type:ty),)*) => {
        /// The answer to a command.
        #[derive(Clone, Debug, Serialize)]
        #[serde(untagged)]
        pub enum OperatorAnswer {
            $($name($type),)*
        }

        impl Show for OperatorAnswer {
            fn show(&self) -> AnswerView {
                match self {
                    $(Self::$name(answer) => answer.show(),)*
                }
            }
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
    NewApplication(Box<NewApplicationAnswer>),
    Keys(Vec<KeyAnswer>),
    Key(Box<KeyAnswer>),
    NewKey(NewKeyAnswer),
    RevokedKey(RevokedKeyAnswer),
    Targets(Vec<TargetRow>),
    States(StateCounts),
    Tasks(ListedTasks),
    TaskCounts(TaskCounts),
    Task(Box<TaskAnswer>),
    Refunds(Vec<RefundRow>),
    RefundSums(Vec<RefundSum>),
    FoundObject(FoundObject),
    Acts(Vec<ActRow>),
    Audit(AuditPage),
    AuditTail(AuditTail),
    Verification(Verification),
    Overview(Box<OverviewAnswer>),
    Doctor(Diagnosis),
    Sessions(Vec<ConsoleSession>),
    Link(WithAct<ConsoleLink>),
    Tools(Vec<ListedTool>),
    Tool(Box<ToolAnswer>),
    AuditLines(Vec<TrailLine>),
    Backup(BackupAnswer),
    Restore(RestoreAnswer),
    ClockAccepted(ClockAccepted),
    Runs(Vec<ReplicaRun>),
    BegunAgain(BegunAgain),
    StoreMade(StoreMade),
    StoreChecked(StoreChecked),
    Granted(RightsGranted),
    SessionsEnded(SessionsEnded),
    Ready(Readiness),
    Own(OwnAnswer),
}

impl OperatorAnswer {
    fn has_fault(&self) -> bool {
        match self {
            Self::Doctor(found) => !found.healthy,
            Self::Verification(found) => !found.sound,
            Self::Own(OwnAnswer { value, .. }) => Answered::of_value(value.clone()).has_fault,
            _ => false,
        }
    }
}

/// An answer as the socket carries it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// For programs.
    pub json: Value,
    /// For people.
    pub view: AnswerView,
    /// True if it reports a fault.
    pub has_fault: bool,
}

impl Answered {
    /// Writes an answer.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn of(answer: OperatorAnswer) -> Result<Self, OperatorError> {
        let unwritten = |error| OperatorError::refusal(format!("the answer cannot be written as JSON: {error}"));
        let json = serde_json::to_value(&answer).map_err(unwritten)?;
        Ok(Self { json, view: answer.show(), has_fault: answer.has_fault() })
    }

    /// Makes the answer of a service, which reports a fault with `"sound": false`.
    #[must_use]
    pub fn of_value(json: Value) -> Self {
        #[derive(Default, Deserialize)]
        struct Judgement {
            sound: Option<bool>,
        }
        let Judgement { sound } = json::convert(&json).unwrap_or_default();
        Self { view: AnswerView::of_value(&json), json, has_fault: sound == Some(false) }
    }
}

/// An application.
#[derive(Clone, Debug, Serialize)]
pub struct ApplicationFacts {
    pub name: ApplicationName,
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

/// An application that was created with its first key.
#[derive(Clone, Debug, Serialize)]
pub struct NewApplicationAnswer {
    #[serde(flatten)]
    pub application: ApplicationFacts,
    pub key_id: String,
    pub secret: String,
    pub act_id: String,
    pub note: String,
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
    pub application: ApplicationName,
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

/// The content of a backup that was restored.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreAnswer {
    pub(crate) restored: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    pub(crate) as_of: Timestamp,
    /// The engine sends nothing more for tasks that were in flight in the backup.
    pub(crate) ended_as_timeout: u64,
    pub(crate) applications: Vec<RestoredApplication>,
    pub(crate) keys: Vec<KeyAnswer>,
    pub(crate) next_step: String,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct RestoredApplication {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) permissions: Vec<String>,
}

/// A task in a list.
#[derive(Clone, Debug, Serialize)]
pub struct TaskRow {
    pub task_id: String,
    pub application: ApplicationName,
    pub tool: String,
    #[serde(flatten)]
    pub target: TaskTarget,
    pub status: TaskStatus,
    pub phase: Option<&'static str>,
    pub attempts: u8,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// The reason of its end, which `task show` says as well.
    #[serde(skip)]
    pub why: Option<String>,
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
    /// Unless the target names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
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
    pub application: ApplicationName,
    pub units: u32,
    pub task_id: String,
    pub number: u64,
}

/// A found id, with what belongs to it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FoundObject {
    Act { act: Box<ActRow> },
    Task { task: Box<TaskAnswer>, lines: Vec<TrailLine> },
    Key { key: Box<KeyAnswer>, acts: Vec<ActRow>, lines: Vec<TrailLine> },
    Application { application: Box<ApplicationAnswer>, tasks: Vec<TaskRow>, acts: Vec<ActRow> },
    Request { lines: Vec<TrailLine>, task: Option<Box<TaskAnswer>> },
    Target(FoundTarget),
}

/// A found target.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FoundTarget {
    pub seen_by: Vec<Viewers>,
    pub tasks: Vec<TaskRow>,
    pub lines: Vec<TrailLine>,
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
    pub name: Option<ApplicationName>,
    pub changes: Changes,
    pub reason: Option<String>,
    pub claims: Option<String>,
    pub channel: &'static str,
    pub uid: u32,
    pub act_id: String,
    pub number: u64,
}

/// A tool in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedTool {
    pub tool: &'static str,
    pub permission: &'static str,
    pub title: &'static str,
}

/// A tool as an agent sees it.
#[derive(Clone, Debug, Serialize)]
pub struct ToolAnswer {
    pub name: &'static str,
    pub title: &'static str,
    pub permission: &'static str,
    pub description: &'static str,
    pub secret_arguments: &'static [&'static str],
    pub input_schema: Value,
    pub output_schema: Value,
}

/// The time from which the next start continues.
#[derive(Clone, Debug, Serialize)]
pub struct ClockAccepted {
    pub time: Timestamp,
    pub before: Timestamp,
    #[serde(flatten)]
    pub made: ActMade,
}

/// The start of another history of the store.
#[derive(Clone, Debug, Serialize)]
pub struct BegunAgain {
    pub ended_as_timeout: u64,
    pub keys: Vec<String>,
    #[serde(flatten)]
    pub made: ActMade,
    pub next_step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// The tables of a new store.
#[derive(Clone, Debug, Serialize)]
pub struct StoreMade {
    pub store: &'static str,
    pub replica: String,
    pub next: String,
}

/// The guarantees of the server of a store.
#[derive(Clone, Debug, Serialize)]
pub struct StoreChecked {
    pub store: Value,
}

/// The rights of an account.
#[derive(Clone, Debug, Serialize)]
pub struct RightsGranted {
    pub account: String,
    pub rights: &'static str,
}

/// The answer to a command that the service adds.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct OwnAnswer {
    pub value: Value,
    #[serde(skip)]
    pub is_change: bool,
}

impl Show for OwnAnswer {
    fn show(&self) -> AnswerView {
        match AnswerView::of_value(&self.value) {
            AnswerView::Facts(facts)
                if self.is_change && !facts.iter().any(|(_, view)| matches!(view, AnswerView::Table(_))) =>
            {
                AnswerView::Line(facts)
            }
            shown => shown,
        }
    }
}
