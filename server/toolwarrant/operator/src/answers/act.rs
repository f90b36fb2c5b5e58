//! The act of a command, in its answer.

use crate::view::answer_types;

answer_types! {
    /// The act of a change.
    pub struct ActMade {
        act_id: String => id,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
}
