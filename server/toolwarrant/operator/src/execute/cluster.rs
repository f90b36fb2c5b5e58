//! Commands about a store in PostgreSQL, and about the processes that lead.

use super::answer::{Answer, answer};
use crate::command::ClusterCommand;
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::place::no_shared_store;
use serde_json::json;
use toolwarrant_core::act::{Changes, Origin};
use toolwarrant_store::Recovery;

pub(super) async fn execute(context: &OperatorContext, origin: &Origin, command: ClusterCommand) -> Answer {
    let store = context.shared.as_ref().ok_or_else(no_shared_store)?;
    match command {
        ClusterCommand::List => answer(store.runs().await?),
        ClusterCommand::AcceptLoss { .. } => match store.read_loss().await? {
            Some(lost) => {
                let mut done = begin_again(context, origin).await?;
                done["lost"] = lost.into();
                Ok(done)
            }
            None => Err(OperatorError::refusal(
                "the store has everything that was acknowledged, so there is no loss to accept",
            )),
        },
    }
}

/// Goes on with the data that the store has, as after a restore.
pub(super) async fn begin_again(context: &OperatorContext, origin: &Origin) -> Answer {
    let store = context.shared.as_ref().ok_or_else(no_shared_store)?;
    if context.serves {
        return Err(OperatorError::refusal("a server uses the data folder; stop it first"));
    }
    let act = context.registry.act(origin, None, Changes::default())?;
    let act_id = act.id.clone();
    let ended = store.begin_again(context.clock.wall(), act).await?;
    let program = context.names.program;
    let next_step = format!(
        "start the servers. All keys are off: first revoke those that must not return with `{program} key revoke KEY`, above all \
         those that were revoked in the time that is lost; then turn on the others with `{program} key confirm KEY...`, or \
         `{program} key confirm --all`"
    );
    let keys = store.keys_to_confirm().await?;
    Ok(json!({"ended_as_timeout": ended, "keys": keys, "act_id": act_id, "next_step": next_step}))
}
