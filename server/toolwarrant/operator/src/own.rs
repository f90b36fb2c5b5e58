//! Commands that a service adds to those of every operator. Start at [`OwnCommand`].
//!
//! They go to the running server, or to this process if no server runs. The socket carries each as
//! the JSON of its type.

use crate::error::describe_mismatch;
use clap::Subcommand;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::{BoxFuture, json};

/// The reason why an operation failed, for the operator. The program never branches on it.
pub type Explanation = String;

/// The commands that a service adds: an enum that derives `clap::Subcommand` and serde's traits. A
/// debug build ends at its start if a command has the name of another command or of a resource.
pub trait OwnCommand: Subcommand + Serialize + DeserializeOwned + Send + 'static {
    /// Returns the question for the operator before the command is carried out; it names the
    /// changes. Such a command has a flag `--yes`, which skips it. Without a terminal and without
    /// that flag, the command is refused.
    fn question(&self) -> Option<String> {
        None
    }

    /// Returns true if the command changes something. Operators who may only read cannot use it.
    /// Each use is stored as an act, and has a line in the audit trail.
    fn changes(&self) -> bool {
        true
    }

    /// Returns the time that an operator waits for the answer of a running server. The server
    /// allows at least ten minutes.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Carries out the commands that a service adds, in its server or in the process of the command
/// line.
pub trait Commands<C>: Send + Sync + 'static {
    /// Carries out one command. The answer is an object or a list of objects, without secrets;
    /// `"sound": false` in it makes the exit code a failure. The operator may disconnect before the
    /// answer.
    ///
    /// # Errors
    /// The reason why it was not carried out, and advice.
    fn execute(&self, command: C) -> BoxFuture<'_, Result<Value, Explanation>>;
}

/// The commands of a service that adds none.
#[derive(Clone, Copy, Debug, Subcommand, Serialize, Deserialize)]
pub enum NoCommands {}

impl OwnCommand for NoCommands {}

#[derive(Clone)]
pub struct CommandRunner {
    pub(crate) changes: fn(Value) -> Result<bool, Explanation>,
    pub(crate) run: RunCommand,
}

type RunCommand = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, Explanation>> + Send + Sync>;

pub fn runner<C: OwnCommand>(commands: Arc<dyn Commands<C>>) -> CommandRunner {
    let run = move |command| -> BoxFuture<'static, Result<Value, Explanation>> {
        let commands = Arc::clone(&commands);
        Box::pin(async move { commands.execute(parse(command)?).await })
    };
    CommandRunner { changes: |command| parse::<C>(command).map(|command| command.changes()), run: Arc::new(run) }
}

fn parse<C: OwnCommand>(command: Value) -> Result<C, Explanation> {
    json::convert(&command).map_err(|error| describe_mismatch(&error))
}
