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
pub use act::ActMade;
pub use counts::{RefundSum, TaskCounts, TaskPeriod};
pub use name::ApplicationName;
pub use server::{
    BackupAnswer, CheckRow, Concern, ConsoleLink, ConsoleSession, Diagnosis, FaultRow, ListCommand, OverviewAnswer,
    Readiness, RemedyRow, RetentionRow, ServerFacts, ServerLoad, SessionsEnded, TargetCounts, UnexaminedRow,
};
pub use target::{StateCounts, TargetRow, TaskTarget};
pub(crate) use trail::AuditLine;
pub use trail::{AuditPage, OtherTrail, TrailFault, TrailLine, Verification};

use crate::error::OperatorError;
use crate::view::{AnswerView, Show, answer_types};
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
    Verification(Verification),
    Overview(Box<OverviewAnswer>),
    Doctor(Diagnosis),
    Sessions(Vec<ConsoleSession>),
    Link(ConsoleLink),
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
    Called(CalledTool),
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
    /// The key whose secret it has.
    pub new_key: Option<String>,
}

impl Answered {
    /// Writes an answer.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn of(answer: OperatorAnswer) -> Result<Self, OperatorError> {
        let unwritten = |error| OperatorError::refusal(format!("the answer cannot be written as JSON: {error}"));
        let json = serde_json::to_value(&answer).map_err(unwritten)?;
        let new_key = match &answer {
            OperatorAnswer::NewKey(key) => Some(key.key_id.clone()),
            OperatorAnswer::NewApplication(made) => Some(made.key.key_id.clone()),
            _ => None,
        };
        Ok(Self { json, view: answer.show(), has_fault: answer.has_fault(), new_key })
    }

    /// Makes the answer of a service, which reports a fault with `"sound": false`.
    #[must_use]
    pub fn of_value(json: Value) -> Self {
        #[derive(Default, Deserialize)]
        struct Judgement {
            sound: Option<bool>,
        }
        let Judgement { sound } = json::convert(&json).unwrap_or_default();
        Self { view: AnswerView::of_value(&json), json, has_fault: sound == Some(false), new_key: None }
    }
}

answer_types! {
    /// An application.
    pub struct ApplicationFacts {
        name: ApplicationName,
        id: String => application,
        permissions: Vec<String>,
        suspended_at: Option<Timestamp>,
        labels: Labels,
        /// The targets that it sees, by the plural of the resource.
        ..(sees: BTreeMap<String, SeenTargets>),
    }
}

/// The targets of one resource that an application sees.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum SeenTargets {
    Text(String),
    Count(usize),
    Terms(Vec<String>),
}

answer_types! {
    /// An application in a list.
    pub struct ListedApplication {
        ..(application: ApplicationFacts),
        live_keys: usize,
        requests_per_minute: u32,
    }

    /// An application with its keys.
    pub change ApplicationAnswer {
        ..(application: ApplicationFacts),
        requests_per_minute: u32,
        requests_in_last_minute: Option<u32>,
        created_at: Timestamp,
        keys: Vec<KeyAnswer> => any,
        #[serde(skip_serializing_if = "Option::is_none")]
        latest_acts: Option<Vec<ActRow>>,
        /// Of a change.
        ..(made: Option<ActMade>),
    }

    /// An application that was created with its first key.
    pub struct NewApplicationAnswer {
        ..(application: ApplicationFacts),
        ..(key: NewKeyAnswer),
    }
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

answer_types! {
    /// A key.
    pub change KeyAnswer {
        key_id: String => key,
        application: ApplicationName,
        state: KeyState,
        live_secrets: usize,
        created_at: Timestamp,
        expires_at: Option<Timestamp>,
        last_used_at: Option<Timestamp>,
        last_used_from: Option<IpAddr>,
        labels: Labels,
        /// The live ones, the latest first.
        secrets: Vec<SecretAnswer>,
        #[serde(skip_serializing_if = "Option::is_none")]
        latest_acts: Option<Vec<ActRow>>,
        /// Of a change.
        ..(made: Option<ActMade>),
    }

    /// A key that was created or rotated.
    pub struct NewKeyAnswer {
        key_id: String => key,
        secret: String,
        ..(made: ActMade),
    }

    /// A key that was revoked. Its other facts are in the store, which may not answer.
    pub change RevokedKeyAnswer {
        key_id: String => key,
        state: KeyState,
        ..(made: ActMade),
    }

    pub struct SecretAnswer {
        created_at: Option<Timestamp>,
        ends_at: Option<Timestamp>,
        last_used_at: Option<Timestamp>,
        last_used_from: Option<IpAddr>,
    }

    /// The content of a backup that was restored.
    pub struct RestoreAnswer {
        restored: PathBuf,
        #[serde(skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        as_of: Timestamp,
        /// The engine sends nothing more for tasks that were in flight in the backup.
        ended_as_timeout: u64,
        applications: Vec<RestoredApplication>,
        keys: Vec<KeyAnswer>,
        next_step: String,
    }

    pub struct RestoredApplication {
        name: String,
        id: String,
        permissions: Vec<String>,
    }

    /// A task in a list.
    pub struct TaskRow {
        task_id: String => task,
        application: ApplicationName,
        tool: String,
        ..(target: TaskTarget),
        status: TaskStatus,
        phase: Option<&'static str>,
        attempts: u8,
        created_at: Timestamp,
        finished_at: Option<Timestamp>,
        /// The reason of its end, which `task show` says as well.
        #[serde(skip)]
        why: Option<String> => hidden,
    }

    /// A page of tasks.
    pub struct ListedTasks {
        tasks: Vec<TaskRow>,
        examined: u32 => hidden,
        next: Option<String>,
        note: Option<&'static str>,
    }

    /// A task with its history.
    pub struct TaskAnswer {
        ..(task: TaskRow),
        /// Unless the target names it.
        #[serde(skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        refunded_at: Option<Timestamp>,
        meaning: Option<&'static str>,
        ..(call: Option<TaskCall>),
        ..(history: TaskHistory),
    }

    /// The call that made a task.
    pub struct TaskCall {
        request_id: String => id,
        key_id: String => key,
        arguments: Option<Map<String, Value>>,
    }

    /// A refund.
    pub struct RefundRow {
        refunded_at: Timestamp,
        application: ApplicationName,
        units: u32,
        task_id: String => task,
        number: u64 => hidden,
    }

    /// A found id, with what belongs to it.
    pub enum FoundObject {
        Act { act: Box<ActRow> }
        Task { task: Box<TaskAnswer>, lines: Vec<TrailLine> }
        Key { key: Box<KeyAnswer>, acts: Vec<ActRow>, lines: Vec<TrailLine> }
        Application { application: Box<ApplicationAnswer>, tasks: Vec<TaskRow>, acts: Vec<ActRow> }
        Request { lines: Vec<TrailLine>, task: Option<Box<TaskAnswer>> }
        Target { seen_by: Vec<Viewers>, tasks: Vec<TaskRow>, lines: Vec<TrailLine> }
    }

    /// The applications that see a target.
    pub struct Viewers {
        resource: &'static str => resource,
        applications: Vec<String> => applications,
    }

    /// An act of an operator.
    pub struct ActRow {
        time: Timestamp,
        by: String,
        command: String,
        object: Option<String> => object,
        name: Option<ApplicationName>,
        changes: Changes,
        reason: Option<String>,
        claims: Option<String>,
        channel: &'static str,
        uid: u32,
        act_id: String => id,
        number: u64 => hidden,
    }

    /// A tool in a list.
    pub struct ListedTool {
        tool: &'static str,
        permission: &'static str,
        /// A server with this toolset alone has the tool.
        toolset: Option<&'static str>,
        title: &'static str,
    }

    /// A tool as an agent sees it.
    pub struct ToolAnswer {
        name: &'static str,
        title: &'static str,
        permission: &'static str,
        description: &'static str,
        secret_arguments: &'static [&'static str],
        input_schema: Value => schema,
        output_schema: Value => schema,
    }

    /// The time from which the next start continues.
    pub change ClockAccepted {
        time: Timestamp,
        before: Timestamp,
        ..(made: ActMade),
    }

    /// The start of another history of the store.
    pub change BegunAgain {
        ended_as_timeout: u64,
        keys: Vec<String>,
        ..(made: ActMade),
        next_step: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        lost: Option<String>,
    }

    /// The tables of a new store.
    pub struct StoreMade {
        store: &'static str,
        replica: String,
        next: String,
    }

    /// The guarantees of the server of a store.
    pub struct StoreChecked {
        store: Value,
    }

    /// The rights of an account.
    pub struct RightsGranted {
        account: String,
        rights: &'static str,
    }
}

/// The answer to a command that the service adds.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct OwnAnswer {
    pub value: Value,
    #[serde(skip)]
    pub is_change: bool,
}

/// The result of a tool that an operator called.
#[derive(Clone, Debug, Serialize)]
pub struct CalledTool {
    pub result: Value,
    pub request_id: String,
    /// The same, if the call has left an act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act_id: Option<String>,
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
