//! Commands where no server runs: whoever asks takes the data folder for as long as it takes.

use crate::command::Command;
use crate::context::{Check, Inventory, OpenError, OpenedData, OperatorContext, OperatorError};
use crate::data::{DataFolder, has_database};
use crate::doctor;
use crate::execute::{execute, tools};
use crate::names::Names;
use crate::socket;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::clock::Clock;
use toolwarrant_core::random::Random;

/// Makes what lists what a service acts on, once its folder is open.
pub type MakeInventory<'a> = Box<dyn FnOnce(&DataFolder) -> Result<Option<Arc<dyn Inventory>>, String> + 'a>;

/// A service, as far as commands without a server need it.
pub struct Offline<'a> {
    /// What it calls itself.
    pub names: Arc<Names>,
    /// What it offers.
    pub catalogue: &'static Catalogue,
    /// What a doctor looks at beside what every service has.
    pub checks: Arc<[Check]>,
    /// What there is to act on.
    pub inventory: MakeInventory<'a>,
}

impl Offline<'_> {
    /// Carries `command` out on that data folder: through the server that runs there, or without one.
    ///
    /// # Errors
    /// What was wrong with it, and what there is instead.
    pub async fn run(self, folder: &Path, command: Command) -> Result<Value, OperatorError> {
        let Self { names, catalogue, checks, inventory } = self;
        if let Command::Tools { name } = &command {
            return tools(catalogue, name.as_deref());
        }
        if let Some(answer) = socket::ask(folder, &command).await {
            return answer;
        }
        // To open it would make one, and take whatever lies there for a data folder.
        if !has_database(folder, &names) {
            let folder = folder.display();
            let why = format!("there is no database in {folder}; start a server once, or name another with --data");
            return Err(OperatorError::Refused(why));
        }
        if let Command::Doctor = command {
            return doctor::alone(folder, &names, catalogue, &checks).await;
        }
        let (clock, random) = (Clock::system(), Random::System);
        let taken = DataFolder::open(folder, &names).map_err(OpenError::from)?;
        let OpenedData { registry, database, vault: _ } =
            OpenedData::open(&taken, &names, catalogue, clock.clone(), &random).await?;
        let inventory = inventory(&taken).map_err(OpenError::Service)?;
        let folder = taken.path().to_owned();
        let context = OperatorContext { names, catalogue, registry, store: database, inventory, checks, folder, clock };
        execute(&context, command).await
    }
}
