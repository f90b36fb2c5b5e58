//! Commands about a store in PostgreSQL, and about the processes that lead.

use super::answer::CommandAnswer;
use crate::answers::{ActMade, BegunAgain};
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::place::no_shared_store;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use toolwarrant_core::act::{Changes, Origin};
use toolwarrant_store::Recovery;

/// Commands about a store in PostgreSQL. They need its URL, and no server.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StoreCommand {
    /// Make the tables of a new store, and a master key if the data folder has none
    Init,
    /// Show what the server promises: its version, its standby, and what a failover can forget
    Check,
    /// Go on after PostgreSQL was restored from a backup; first stop every server
    ///
    /// It turns all keys off, and ends the tasks in flight as `timeout`: they may have been sent
    /// since the backup.
    BeginAgain {
        /// Begin again without asking
        #[arg(long)]
        #[serde(default)]
        yes: bool,
    },
    /// Grant an account the rights that a server needs, and no others; the URL names the owner of
    /// the tables
    ///
    /// The account cannot change or remove what has happened: the ledger, tasks that have ended,
    /// and their timelines.
    Grant {
        /// The account, which exists
        account: String,
    },
}

/// Commands about the processes that lead or have led.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClusterCommand {
    /// List the process that leads and those that have led: since when each is silent
    List,
    /// Go on without writes that PostgreSQL has lost at a failover; first stop the server here
    ///
    /// It turns all keys off, and ends the tasks in flight as `timeout`: they may have been sent.
    /// Without a loss it changes nothing.
    AcceptLoss {
        /// Accept the loss without asking
        #[arg(long)]
        #[serde(default)]
        yes: bool,
    },
}

pub(super) async fn execute(context: &OperatorContext, origin: &Origin, command: ClusterCommand) -> CommandAnswer {
    let store = context.shared.as_ref().ok_or_else(no_shared_store)?;
    match command {
        ClusterCommand::List => Ok(store.runs().await?.into()),
        ClusterCommand::AcceptLoss { .. } => match store.read_loss().await? {
            Some(lost) => begin_again(context, origin, Some(lost)).await,
            None => Err(OperatorError::refusal(
                "the store has everything that was acknowledged, so there is no loss to accept",
            )),
        },
    }
}

pub(super) async fn begin_again(context: &OperatorContext, origin: &Origin, lost: Option<String>) -> CommandAnswer {
    let store = context.shared.as_ref().ok_or_else(no_shared_store)?;
    if context.server.is_some() {
        return Err(OperatorError::refusal("a server uses the data folder; stop it first"));
    }
    let act = context.registry.act(origin, None, Changes::default())?;
    let act_id = act.id.clone();
    let ended = store.begin_again(context.clock.wall(), act).await?;
    let program = context.program.names.program;
    let next_step = format!(
        "start the servers. All keys are off: first revoke those that must not return with `{program} key revoke KEY`, above all \
         those that were revoked in the time that is lost; then turn on the others with `{program} key confirm KEY...`, or \
         `{program} key confirm --all`"
    );
    let keys = store.keys_to_confirm().await?;
    let made = ActMade { act_id, note: None };
    Ok(BegunAgain { ended_as_timeout: ended, keys, made, next_step, lost }.into())
}
