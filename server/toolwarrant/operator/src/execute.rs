//! Carries out operator commands. Each kind of command has its own file. Each answer is JSON.

mod answer;
mod applications;
mod audit;
mod contract;
mod keys;
mod targets;
mod tasks;

pub(crate) use contract::tools;
pub(crate) use keys::KeyAnswer;

use crate::backup;
use crate::command::{ClockCommand, OperatorCommand};
use crate::context::OperatorContext;
use crate::doctor;
use answer::{Answer, answer, refusal};

/// Carries out `command`. The answer is an object or a list of objects.
///
/// # Errors
/// See [`OperatorError`].
pub async fn execute(context: &OperatorContext, command: OperatorCommand) -> Answer {
    match command {
        OperatorCommand::App(command) => applications::execute(context, command).await,
        OperatorCommand::Key(command) => keys::execute(context, command).await,
        OperatorCommand::Target { resource, command } => targets::execute(context, &resource, command).await,
        OperatorCommand::Task(command) => tasks::execute(context, command).await,
        OperatorCommand::Refunds { limit } => tasks::refunds(context, limit).await,
        OperatorCommand::Tools { name } => tools(context.catalogue, name.as_deref()),
        OperatorCommand::Audit(command) => audit::execute(context, command).await,
        OperatorCommand::Backup { file } => {
            audit::flush(context).await;
            backup::take(context, file).await
        }
        OperatorCommand::Restore { .. } => Err(refusal("a server uses the data folder; stop it first".to_owned())),
        OperatorCommand::Clock(ClockCommand::Accept) => {
            Err(refusal("stop the server first: it continues from its own time".to_owned()))
        }
        OperatorCommand::Own { command, patience: _ } => match &context.own {
            Some(run) => run(command).await.map_err(refusal),
            None => Err(refusal("the service has no commands of its own".to_owned())),
        },
        OperatorCommand::Doctor => {
            audit::flush(context).await;
            let found = doctor::examine(
                &context.folder,
                &context.names,
                (context.catalogue, &context.checks),
                Ok(&*context.store),
                context.clock.now(),
            );
            answer(found.await)
        }
    }
}
