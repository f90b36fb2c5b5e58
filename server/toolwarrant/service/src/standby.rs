//! A process that waits until it may lead. It serves nobody, but answers its monitor and operators.

use crate::manager;
use crate::server::PATIENCE;
use crate::signals::StopSignals;
use anyhow::Result;
use std::sync::Arc;
use tokio::sync::watch;
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::metrics::ServiceStatus;
use toolwarrant_operator::socket::{OperatorGroups, OperatorSocket};
use toolwarrant_operator::standby::Standby;
use toolwarrant_operator::{Background, Claim, OperatorError, ProgramIdentity, StoreOptions, Waiting};

pub(crate) struct WaitingStart<'a> {
    pub(crate) program: &'a ProgramIdentity,
    pub(crate) store: &'a StoreOptions,
    pub(crate) folder: &'a DataFolder,
    pub(crate) groups: &'a OperatorGroups,
    pub(crate) status: &'a ServiceStatus,
}

impl WaitingStart<'_> {
    /// Returns `None` if this process is stopped before it may lead.
    pub(crate) async fn wait(self, stop: &mut StopSignals) -> Result<Option<Claim>> {
        let Self { program, store, folder, groups, status } = self;
        let (shown, mut why) = watch::channel(Waiting::default());
        status.set_waiting(why.clone());
        let claiming = store.claim(folder, &program.names, &shown);
        tokio::pin!(claiming);
        tokio::select! {
            claimed = &mut claiming => return Ok(Some(claimed.map_err(OperatorError::from)?)),
            _ = stop.next() => return Ok(None),
            _ = why.wait_for(|why| *why != Waiting::Starting) => {}
        }
        tracing::info!("this process waits to lead; /readyz says for what");
        // A manager that waited for more would end a standby.
        manager::tell_ready("waits to lead");
        let standby = Arc::new(Standby {
            program: program.clone(),
            store: store.clone(),
            folder: folder.clone(),
            why: why.clone(),
        });
        let mut answering = Vec::new();
        for socket in OperatorSocket::open_all(folder.path(), groups)? {
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
}
