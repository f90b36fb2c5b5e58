//! Runs a command from the command line: in the server of the data folder or, if none runs, in this process, which locks the folder
//! meanwhile.

use crate::command::OperatorCommand;
use crate::context::{Check, Explanation, Inventory, OpenError, OpenedData, OperatorContext, OperatorError};
use crate::data::{DataFolder, has_database, refuse_foreign};
use crate::doctor;
use crate::execute::{execute, tools};
use crate::flags;
use crate::names::Names;
use crate::restore;
use crate::socket;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::clock::Clock;
use toolwarrant_core::random::Random;

/// Makes the inventory of a service from its opened data folder.
pub type MakeInventory<'a> = Box<dyn FnOnce(&DataFolder) -> Result<Option<Arc<dyn Inventory>>, Explanation> + 'a>;

/// What commands need to know of a service.
pub struct Offline<'a> {
    /// Its names.
    pub names: Arc<Names>,
    /// Its contract.
    pub catalogue: &'static Catalogue,
    /// The doctor's checks that it adds.
    pub checks: Arc<[Check]>,
    /// Makes its inventory.
    pub inventory: MakeInventory<'a>,
}

impl Offline<'_> {
    /// Carries out `command` on a data folder.
    ///
    /// # Errors
    /// See [`OperatorError`].
    pub async fn run(self, folder: &Path, command: OperatorCommand) -> Result<Value, OperatorError> {
        let Self { names, catalogue, checks, inventory } = self;
        if let OperatorCommand::Tools { name } = &command {
            return tools(catalogue, name.as_deref());
        }
        // Before its server is asked: another service's would carry the command out.
        refuse_foreign(folder, &names).map_err(OpenError::from)?;
        if let OperatorCommand::Restore { file, master_key } = command {
            return restore::run(folder, &names, catalogue, &file, master_key);
        }
        let command = command.absolute();
        if let Some(answer) = socket::ask(folder, &command).await {
            return answer;
        }
        // Opening the folder would create a database, also in a folder that is no data folder.
        if !has_database(folder, &names) {
            let folder = folder.display();
            let why = format!(
                "there is no database in {folder}; start a server once, or name another with --{}",
                flags::DATA
            );
            return Err(OperatorError::Refused(why));
        }
        if let OperatorCommand::Doctor = command {
            return doctor::examine_offline(folder, &names, catalogue, &checks).await;
        }
        let (clock, random) = (Clock::system(), Random::System);
        let folder = DataFolder::open(folder, &names).map_err(OpenError::from)?;
        let OpenedData { registry, database, keyring: _ } =
            OpenedData::open(&folder, &names, catalogue, clock.clone(), &random).await?;
        let inventory = inventory(&folder).map_err(OpenError::Service)?;
        let path = folder.path().to_owned();
        let context =
            OperatorContext { names, catalogue, registry, store: database, inventory, checks, folder: path, clock };
        execute(&context, command).await
    }
}
