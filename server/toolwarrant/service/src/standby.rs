//! A process that waits until it may lead. It serves nobody, but answers its monitor and operators.

use crate::manager;
use crate::server::PATIENCE;
use crate::signals::StopSignals;
use anyhow::Result;
use std::sync::Arc;
use tokio::sync::watch;
use toolwarrant_operator::socket::{OperatorGroups, OperatorSocket};
use toolwarrant_operator::standby::Standby;
use toolwarrant_operator::{Background, Claim, OperatorError, Waiting};

/// Returns `None` if this process is stopped before it may lead. `shown` is what `standby` shows.
pub(crate) async fn wait_to_lead(
    standby: Standby,
    shown: &watch::Sender<Waiting>,
    groups: &OperatorGroups,
    stop: &mut StopSignals,
) -> Result<Option<Claim>> {
    let (standby, mut why) = (Arc::new(standby), shown.subscribe());
    let claiming = standby.store.claim(&standby.folder, &standby.program.names, shown);
    tokio::pin!(claiming);
    tokio::select! {
        claimed = &mut claiming => return Ok(Some(claimed.map_err(OperatorError::from)?)),
        _ = stop.next() => return Ok(None),
        _ = why.wait_for(|why| *why != Waiting::Starting) => {}
    }
    tracing::info!("this process waits to lead; /readyz says for what");
    // A manager that waited for more would end a standby.
    manager::tell_ready("waits to lead");
    let mut answering = Vec::new();
    for socket in OperatorSocket::open_all(standby.folder.path(), groups)? {
        let standby = standby.clone();
        answering.push(Background::start("an operator socket", PATIENCE, |stopped| socket.serve(standby, stopped)));
    }
    let claimed = tokio::select! {
        claimed = claiming => Some(claimed.map_err(OperatorError::from)?),
        _ = stop.next() => None,
    };
    for socket in answering {
        socket.stop().await;
    }
    Ok(claimed)
}
