//! The outcomes of a send, as an executor reports them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolwarrant_base::text::Remark;

/// The outcome of a send. The texts are cleaned, and for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// No byte has left, with the reason.
    NotSent(Remark),
    /// The upstream refused the request.
    Refused(Refusal),
    /// The upstream reported success.
    Ok,
    /// The upstream reported a failure, with its text, which clients read in the evidence.
    Err(Remark),
    /// The upstream is working on it. The string is its name for the operation, stored byte for
    /// byte and sent back unchanged.
    Pending(String),
    /// The request may have left, and there is no intelligible answer.
    NoAnswer(Remark),
    /// The upstream does not know the outcome, and never will. The engine reads the target, and
    /// does not send again.
    Unsure(Remark),
}

/// A refusal of a request by the upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The upstream's code, such as an HTTP status. Evidence shows it.
    pub code: i64,
    /// The upstream's text, cleaned, for the operator.
    pub why: Remark,
    /// True if such a refusal is known to come before the upstream acts. Then the engine tries
    /// again. Otherwise it reads the target, and does not send again.
    pub precedes_act: bool,
    /// True if the upstream may take the same request later. The charge is taken back if a reading
    /// shows that nothing was done.
    #[serde(default)]
    pub is_busy: bool,
}

impl Sent {
    pub(crate) fn remark_mut(&mut self) -> Option<&mut Remark> {
        match self {
            Self::NotSent(text) | Self::Err(text) | Self::NoAnswer(text) | Self::Unsure(text) => Some(text),
            Self::Refused(refusal) => Some(&mut refusal.why),
            Self::Ok | Self::Pending(_) => None,
        }
    }
}

/// Writes a list, because JSON has no word for an optional null.
pub(super) fn write_answer<S: Serializer>(answer: &Option<Option<Sent>>, out: S) -> Result<S::Ok, S::Error> {
    answer.as_slice().serialize(out)
}

pub(super) fn read_answer<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Option<Sent>>, D::Error> {
    Ok(Vec::deserialize(from)?.pop())
}
