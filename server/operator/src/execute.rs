//! Carries commands out: one file for what each is about. An answer is a type here, and JSON for all who ask.

mod applications;
mod contract;
mod keys;
mod targets;
mod tasks;

pub(crate) use contract::tools;

use crate::command::{AuditCommand, Command};
use crate::context::{OperatorContext, OperatorError};
use crate::data::AUDIT;
use crate::doctor;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use toolwarrant_core::audit;

/// What a command is answered with.
pub(crate) type Answer = Result<Value, OperatorError>;

/// Carries `command` out. The answer is an object, or a list of objects.
///
/// # Errors
/// What was wrong with it, and what there is instead.
pub async fn execute(context: &OperatorContext, command: Command) -> Answer {
    match command {
        Command::App(command) => applications::execute(context, command).await,
        Command::Key(command) => keys::execute(context, command).await,
        Command::Target { resource, command } => targets::execute(context, &resource, command).await,
        Command::Task(command) => tasks::execute(context, command).await,
        Command::Refunds { limit } => tasks::refunds(context, limit).await,
        Command::Tools { name } => tools(context.catalogue, name.as_deref()),
        Command::Audit(AuditCommand::Tail { lines }) => tail(context, lines).await,
        Command::Doctor => {
            let found = doctor::examine(
                &context.folder,
                &context.names,
                &context.checks,
                Ok(&*context.store),
                context.clock.now(),
            );
            answer(found.await)
        }
    }
}

fn answer(shown: impl Serialize) -> Answer {
    serde_json::to_value(shown).map_err(|error| refused(format!("the answer cannot be written as JSON: {error}")))
}

fn refused(why: String) -> OperatorError {
    OperatorError::Refused(why)
}

/// The names of applications, by their ids.
async fn names(context: &OperatorContext) -> HashMap<String, String> {
    context.registry.applications().await.into_iter().map(|row| (row.id, row.name)).collect()
}

/// The last lines of the audit trail. Files are read on a thread that may block.
async fn tail(context: &OperatorContext, lines: usize) -> Answer {
    let folder = context.folder.join(AUDIT);
    let shown = folder.display().to_string();
    let read = tokio::task::spawn_blocking(move || audit::tail(&folder, lines)).await;
    let lines =
        read.map_err(|error| refused(error.to_string()))?.map_err(|error| refused(format!("{shown}: {error}")))?;
    Ok(lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect())
}
