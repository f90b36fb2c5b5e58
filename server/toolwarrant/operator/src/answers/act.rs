//! The act of a command, in its answer.

use serde::Serialize;

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
