//! Commands about time.

use super::answer::{CommandAnswer, put_act, refusal};
use crate::answers::{ActMade, ClockAccepted};
use crate::context::OperatorContext;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use toolwarrant_core::act::{Changes, Origin};

/// Commands about time.
#[derive(Clone, Copy, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClockCommand {
    /// Continue from the machine's time, even if the last run was ahead of it; no server may run
    ///
    /// A server never goes back before the latest time that it has recorded, because a clock that
    /// is set back would revive expired keys. If that time was wrong, for example in the year 2100,
    /// this command corrects it.
    Accept,
}

pub(super) async fn accept(context: &OperatorContext, origin: &Origin) -> CommandAnswer {
    if context.server.is_some() {
        return Err(refusal("stop the server first: it continues from its own time"));
    }
    let (before, now) = (context.clock.floor(), context.clock.wall());
    let act_id = put_act(context, origin, Changes::default()).await?;
    context.store.see(now).await?;
    let note = Some("the next start continues from the machine's clock".to_owned());
    Ok(ClockAccepted { time: now, before, made: ActMade { act_id, note } }.into())
}
