//! The operator's socket of a process that waits to lead. It answers commands that read, from the
//! store, and names the leader to those that change something.

use crate::command::{Authority, OperatorCommand};
use crate::context::Check;
use crate::data::DataFolder;
use crate::error::OperatorError;
use crate::names::Names;
use crate::offline::{Offline, ServiceParts, carry_out};
use crate::place::{StoreOptions, describe_leader};
use crate::socket::CommandReceiver;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};
use toolwarrant_base::BoxFuture;
use toolwarrant_core::act::Operator;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_postgres::Leader;

/// A process that waits to lead.
pub struct Standby {
    /// The names of the service.
    pub names: Arc<Names>,
    /// Its contract.
    pub catalogue: &'static Catalogue,
    /// The doctor's checks that the service adds.
    pub checks: Arc<[Check]>,
    /// The store.
    pub store: StoreOptions,
    /// The data folder of this process.
    pub folder: DataFolder,
    /// The process that leads.
    pub leader: watch::Receiver<Option<Leader>>,
    /// Held while a command reads, because all of them read under one name.
    pub reading: Mutex<()>,
}

impl Standby {
    async fn read(&self, operator: &Operator, command: OperatorCommand) -> Result<Value, OperatorError> {
        if command.authority() != Authority::Reads {
            let nobody = || "no process leads at present; repeat the command".to_owned();
            let leader = self.leader.borrow().as_ref().map_or_else(nobody, describe_leader);
            return Err(OperatorError::unavailable(format!("this process waits to lead: {leader}")));
        }
        let _reading = self.reading.lock().await;
        let parts = |_: &DataFolder, _| Ok(ServiceParts { inventory: None, own: None, background: Vec::new() });
        let reading = Offline {
            names: Arc::clone(&self.names),
            catalogue: self.catalogue,
            checks: Arc::clone(&self.checks),
            store: self.store.clone(),
            parts,
        };
        carry_out(reading, &self.folder, command, operator).await
    }
}

impl CommandReceiver for Standby {
    fn program(&self) -> &'static str {
        self.names.program
    }

    fn carry_out<'a>(
        &'a self,
        operator: &'a Operator,
        command: OperatorCommand,
    ) -> BoxFuture<'a, Result<Value, OperatorError>> {
        Box::pin(self.read(operator, command))
    }
}
