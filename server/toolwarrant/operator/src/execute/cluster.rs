//! Commands about the replicas that share the store.

use super::answer::{Answer, answer, put_act};
use crate::command::ClusterCommand;
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::place::no_shared_store;
use serde_json::json;
use toolwarrant_core::act::{Changes, Origin};
use toolwarrant_postgres::{Postgres, ReplicaRun, RunState};
use toolwarrant_store::Recovery;

pub(super) async fn execute(context: &OperatorContext, origin: &Origin, command: ClusterCommand) -> Answer {
    let store = context.shared.as_ref().ok_or_else(no_shared_store)?;
    match command {
        ClusterCommand::List => answer(store.runs().await?),
        ClusterCommand::Drain { name } => {
            let act_id = put_act_on(context, origin, store, &name, RunState::AskedToStop).await?;
            let asked = store.ask_to_leave(&name).await?.ok_or_else(|| no_replica(&name))?;
            Ok(json!({"replica": name, "epoch": asked.0, "state": RunState::AskedToStop, "act_id": act_id}))
        }
        ClusterCommand::AcceptLoss { .. } => match store.read_loss().await? {
            Some(lost) => {
                let mut done = begin_again(context, origin).await?;
                done["lost"] = lost.into();
                Ok(done)
            }
            None => {
                Err(OperatorError::refusal("no replica misses an acknowledged write, so there is no loss to accept"))
            }
        },
    }
}

/// Begins again after a restore of the server, which no replica may outlive.
pub(super) async fn begin_after_restore(context: &OperatorContext, origin: &Origin) -> Answer {
    let store = context.shared.as_ref().ok_or_else(no_shared_store)?;
    let runs = store.runs().await?;
    let beats = |run: &&ReplicaRun| !run.state.has_ended() && run.state != RunState::Silent;
    let names: Vec<_> = runs.iter().filter(beats).map(|run| &*run.name).collect();
    if !names.is_empty() {
        return Err(OperatorError::refusal(format!(
            "these replicas run, or their leases are not over yet: {}; stop all of them first, because they remember what the server \
             has lost",
            names.join(", ")
        )));
    }
    begin_again(context, origin).await
}

/// Goes on with the data that the store has, as after a restore.
async fn begin_again(context: &OperatorContext, origin: &Origin) -> Answer {
    let store = context.shared.as_ref().ok_or_else(no_shared_store)?;
    if context.serves {
        return Err(OperatorError::refusal("a server uses the data folder; stop it first"));
    }
    let act = context.registry.act(origin, None, Changes::default())?;
    let act_id = act.id.clone();
    let ended = store.begin_again(context.clock.wall(), act).await?;
    let program = context.names.program;
    let next_step = format!(
        "start the replicas. All keys are off: first revoke those that must not return with `{program} key revoke KEY`, above all \
         those that were revoked in the time that is lost; then turn on the others with `{program} key confirm KEY...`, or \
         `{program} key confirm --all`"
    );
    let keys = store.keys_to_confirm().await?;
    Ok(json!({"ended_as_timeout": ended, "keys": keys, "act_id": act_id, "next_step": next_step}))
}

/// Stores the act first, because the replica that carries out the command may be killed. Returns
/// its id.
async fn put_act_on(
    context: &OperatorContext,
    origin: &Origin,
    store: &Postgres,
    name: &str,
    after: RunState,
) -> Result<String, OperatorError> {
    let runs = store.runs().await?;
    let lives = |run: &&ReplicaRun| run.name == name && !run.state.has_ended();
    let ReplicaRun { state, .. } = runs.iter().find(lives).ok_or_else(|| no_replica(name))?;
    let changes = Changes::of("replica", format!("{name} {state}"), format!("{name} {after}"));
    put_act(context, origin, changes).await
}

fn no_replica(name: &str) -> OperatorError {
    OperatorError::not_found(format!("no replica `{name}` runs; `cluster list` shows those that do"))
}
