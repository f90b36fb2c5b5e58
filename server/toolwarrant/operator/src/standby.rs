//! The operator's socket of a process that waits to lead. It answers commands that read, and names
//! the leader to those that change something.

use crate::command::{CommandAnswer, OperatorCommand};
use crate::context::ProgramIdentity;
use crate::data::DataFolder;
use crate::error::OperatorError;
use crate::offline::{Offline, ServiceParts, carry_out};
use crate::place::{StoreOptions, describe_leader};
use crate::socket::CommandReceiver;
use tokio::sync::{Semaphore, watch};
use toolwarrant_base::BoxFuture;
use toolwarrant_core::act::{Operator, Role};
use toolwarrant_postgres::Waiting;

pub struct Standby {
    pub program: ProgramIdentity,
    pub store: StoreOptions,
    pub folder: DataFolder,
    pub why: watch::Receiver<Waiting>,
}

/// Each command has two connections to the store, and the process has one more.
static TURNS: Semaphore = Semaphore::const_new(2);

impl CommandReceiver for Standby {
    fn program(&self) -> &'static str {
        self.program.names.program
    }

    fn carry_out<'a>(&'a self, operator: &'a Operator, command: OperatorCommand) -> BoxFuture<'a, CommandAnswer> {
        Box::pin(async move {
            if command.row().role != Role::View
                || matches!(command, OperatorCommand::Ready | OperatorCommand::Overview | OperatorCommand::Console(_))
            {
                let why = match &*self.why.borrow() {
                    Waiting::Leader(leader) => describe_leader(leader),
                    Waiting::Starting => "no process leads at present; repeat the command".to_owned(),
                    Waiting::Obstacle(why) => why.clone(),
                };
                return Err(OperatorError::unavailable(format!("this process waits to lead: {why}")));
            }
            let parts = |_: &DataFolder, _| Ok(ServiceParts::default());
            let reading = Offline { program: self.program.clone(), store: self.store.clone(), parts };
            let _turn = TURNS.acquire().await;
            carry_out(reading, &self.folder, command, operator).await
        })
    }
}
