//! Helpers for the answers to commands.

pub(super) use crate::context::answer;
use crate::context::{OperatorContext, OperatorError};
use serde_json::Value;
use std::collections::HashMap;
use toolwarrant_core::registry::Durability;

/// The answer to a command.
pub(crate) type Answer = Result<Value, OperatorError>;

/// Returns the note about a change that is in force but not yet stored.
pub(super) fn pending_note(kept: Durability) -> Option<String> {
    match kept {
        Durability::Stored => None,
        Durability::Owed(why) => Some(format!(
            "in force, but not yet on the disk ({why}); the server writes it as soon as it can, and a restart before that undoes it"
        )),
    }
}

/// Adds a note to an answer, if there is one.
pub(super) fn add_note(mut answer: Value, note: Option<String>) -> Value {
    if let Some(note) = note {
        answer["note"] = note.into();
    }
    answer
}

pub(super) fn refusal(why: String) -> OperatorError {
    OperatorError::Refused(why)
}

/// Returns the names of applications by id.
pub(super) async fn names(context: &OperatorContext) -> HashMap<String, String> {
    context.registry.applications().await.into_iter().map(|row| (row.id, row.name)).collect()
}
