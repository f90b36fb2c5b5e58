//! The answers to commands: a type for each, which a text, `--json` and the console show.

pub use crate::command::{
    ActRow, ApplicationAnswer, AuditLine, AuditPage, AuditTail, Concern, FoundObject, FoundTarget, KeyAnswer,
    ListCommand, ListedApplication, ListedTasks, NewKeyAnswer, OverviewAnswer, RefundRow, RevokedKeyAnswer,
    StateCounts, TargetCounts, TargetRow, TaskAnswer, TaskCall, TaskRow, Verification,
};
pub use crate::console::{ConsoleLink, ConsoleSession};
pub use crate::doctor::Diagnosis;
use crate::error::OperatorError;
pub use crate::history::{Counts, LastDay, Period};
pub use crate::metrics::{ServerFacts, ServerLoad};
pub use crate::upstreams::UpstreamRow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwarrant_base::json;

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
