//! Runs a command from the command line: in the server of the data folder or, if no server runs, in
//! this process, which then locks the folder.

use crate::background::Background;
use crate::command::{AppCommand, ClockCommand, OperatorCommand};
use crate::context::{Check, Inventory, OpenError, OpenedData, OperatorContext, OperatorError};
use crate::data::{DataFolder, FolderError, has_database, refuse_foreign};
use crate::doctor;
use crate::execute::{execute, tools};
use crate::flags;
use crate::names::Names;
use crate::own::{CommandRunner, Explanation};
use crate::restore;
use crate::socket;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::registry::Durability;
use toolwarrant_core::store::DirectoryStore;

/// The parts of a service that commands use.
pub struct ServiceParts {
    /// Lists the targets of tools.
    pub inventory: Option<Arc<dyn Inventory>>,
    /// Carries out the commands that the service adds.
    pub own: Option<CommandRunner>,
    /// Runs next to the command.
    pub background: Vec<BoxFuture<'static, ()>>,
}

/// Makes the parts of a service from its opened data folder.
pub type MakeParts<'a> = Box<dyn FnOnce(&DataFolder) -> Result<ServiceParts, Explanation> + 'a>;

/// The properties of a service that commands need.
pub struct Offline<'a> {
    /// Its names.
    pub names: Arc<Names>,
    /// Its contract.
    pub catalogue: &'static Catalogue,
    /// The doctor's checks that the service adds.
    pub checks: Arc<[Check]>,
    /// Makes its parts.
    pub parts: MakeParts<'a>,
}

impl Offline<'_> {
    /// Carries out `command` on a data folder.
    ///
    /// # Errors
    /// See [`OperatorError`].
    pub async fn run(self, folder: &Path, command: OperatorCommand) -> Result<Value, OperatorError> {
        let Self { names, catalogue, checks, parts } = self;
        if let OperatorCommand::Tools { name } = &command {
            return tools(catalogue, name.as_deref());
        }
        // This check comes before the server is asked, because the server of another service would
        // carry out the command.
        refuse_foreign(folder, &names).map_err(OpenError::from)?;
        if let OperatorCommand::Restore { file, master_key, owner } = command {
            return restore::run(folder, &names, catalogue, &file, (master_key, owner));
        }
        let command = command.absolute();
        if let Some(answer) = socket::ask(folder, &command).await {
            return answer;
        }
        // Opening the folder would create a database, even in a folder that is not a data folder.
        // Two commands may do that: the one that creates the first application, like the first
        // start of a server, and a service's own command, which may have to prepare that.
        let may_begin =
            matches!(command, OperatorCommand::App(AppCommand::Create { .. }) | OperatorCommand::Own { .. });
        if !may_begin && !has_database(folder, &names) {
            let (folder, program) = (folder.display(), names.program);
            let why = format!(
                "there is no database in {folder}; start a server once or create an application with `{program} app create`, or choose \
                 another folder with --{}",
                flags::DATA
            );
            return Err(OperatorError::Refused(why));
        }
        if let OperatorCommand::Doctor = command {
            return doctor::examine_offline(folder, &names, catalogue, &checks).await;
        }
        let folder = match DataFolder::open(folder, &names) {
            // A server has started meanwhile.
            Err(FolderError::InUse(path, program)) => match socket::ask(folder, &command).await {
                Some(answer) => return answer,
                None => return Err(OpenError::from(FolderError::InUse(path, program)).into()),
            },
            opened => opened.map_err(OpenError::from)?,
        };
        let OpenedData { registry, database, keyring: _, clock } =
            OpenedData::open(&folder, &names, catalogue, &Random::System).await?;
        if let OperatorCommand::Clock(ClockCommand::Accept) = command {
            return accept_clock(&*database, &clock).await;
        }
        let ServiceParts { inventory, own, background } = parts(&folder).map_err(OpenError::Service)?;
        let path = folder.path().to_owned();
        let (store, audit) = (database, None);
        let context =
            OperatorContext { names, catalogue, registry, store, inventory, own, checks, folder: path, clock, audit };
        let background = Background::of_service(background);
        let answer = execute(&context, command).await;
        background.stop().await;
        let answer = answer?;
        // A running server would retry to store the change; this process ends, so it must report
        // the failure.
        match context.registry.settle().await {
            Durability::Stored => Ok(answer),
            Durability::Owed(why) => Err(OperatorError::Refused(why)),
        }
    }
}

/// Makes the machine's clock the time to continue from.
async fn accept_clock(database: &dyn DirectoryStore, clock: &Clock) -> Result<Value, OperatorError> {
    let (before, now) = (clock.floor(), clock.wall());
    database.see(now).await?;
    Ok(json!({"time": now, "before": before, "note": "the next start continues from the machine's clock"}))
}
