//! Commands that a service adds to those of every operator: what they must say of themselves, and who carries them out.
//!
//! They go the way of every command: to the running server, or to this process where none runs. This module knows none of them. To
//! the socket, each is the JSON of its type.

use clap::Subcommand;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::BoxFuture;

/// Why something could not be read or done, in words for the operator. Nothing decides by it.
pub type Explanation = String;

/// The commands that a service adds: an enum that derives `clap::Subcommand` and serde's traits. None may have the name of another
/// command or of a resource; a program that is built for debugging then ends at its start.
pub trait OwnCommand: Subcommand + Serialize + DeserializeOwned + Send + 'static {
    /// What an operator is asked on the terminal before the command is carried out, as a question with what it changes. A command that
    /// asks has a flag `--yes`, with which it asks no more. Without a terminal and that flag, it is refused.
    fn question(&self) -> Option<String> {
        None
    }

    /// How long an operator waits for the answer of a running server. The server gives it ten minutes at least.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Carries out the commands that a service adds, in its server or, where none runs, in the process of the command line.
pub trait Commands<C>: Send + Sync + 'static {
    /// Carries out one command. The answer is an object or a list of objects, without secrets; `"sound": false` in it makes the exit
    /// code a failure. An operator may leave before it is there.
    ///
    /// # Errors
    /// Why it was not carried out, and what would help.
    fn execute(&self, command: C) -> BoxFuture<'_, Result<Value, Explanation>>;
}

/// The commands of a service that adds none.
#[derive(Clone, Copy, Debug, Subcommand, Serialize, Deserialize)]
pub enum NoCommands {}

impl OwnCommand for NoCommands {}

/// Carries out a command that is given as the JSON of its type.
pub type CommandRunner = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, Explanation>> + Send + Sync>;

/// Makes a runner of who carries out commands of one type.
pub fn runner<C: OwnCommand>(commands: Arc<dyn Commands<C>>) -> CommandRunner {
    Arc::new(move |command| {
        let commands = Arc::clone(&commands);
        Box::pin(async move {
            let unknown =
                |error| format!("the server does not know this command; is it as recent as this program? ({error})");
            commands.execute(serde_json::from_value(command).map_err(unknown)?).await
        })
    })
}
