//! What operator commands work on: the opened data folder, and what the service adds to it.

use crate::cli::resources;
use crate::data::{DataFolder, FolderError, Lock};
use crate::names::Names;
use crate::own::{CommandRunner, Explanation};
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::registry::{Registry, RegistryError};
use toolwarrant_core::store::{DirectoryStore, StoreError};
use toolwarrant_store::Store;
use toolwarrant_store::sqlite::{DatabaseError, OpenOptions, Sqlite};

/// What operator commands work on.
pub struct OperatorContext {
    /// The names of the service.
    pub names: Arc<Names>,
    /// Its contract.
    pub catalogue: &'static Catalogue,
    /// Applications and keys.
    pub registry: Registry,
    /// Tasks and the ledger.
    pub store: Arc<dyn Store>,
    /// Lists what tools act on, if the service can do that.
    pub inventory: Option<Arc<dyn Inventory>>,
    /// Carries out the commands that the service adds, if it adds any.
    pub own: Option<CommandRunner>,
    /// The doctor's checks that the service adds.
    pub checks: Arc<[Check]>,
    /// The data folder.
    pub folder: PathBuf,
    /// The clock.
    pub clock: Clock,
    /// The audit of the server that runs, if one does.
    pub audit: Option<AuditHandle>,
}

/// Lists what tools act on, for the operator.
pub trait Inventory: Send + Sync + 'static {
    /// At most `limit` items of a resource, in the order of their ids, whether an application sees them or not. With `after`, the page
    /// begins behind that id, which need not exist.
    fn page<'a>(
        &'a self,
        resource: &'static str,
        after: Option<&'a str>,
        limit: u16,
    ) -> BoxFuture<'a, Result<Vec<Item>, Explanation>>;

    /// The first of `ids` that does not exist, if there is one.
    fn missing<'a>(
        &'a self,
        resource: &'static str,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<Option<String>, Explanation>>;
}

/// One thing that tools act on.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// What a list shows of it, including the id.
    pub shown: Map<String, Value>,
}

/// One check of the doctor on a data folder. A service adds checks for the files that it keeps there.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The name of the check.
    pub name: &'static str,
    /// What holds in a healthy folder.
    pub holds: &'static str,
    /// What the operator does if it does not hold.
    pub remedy: &'static str,
    /// Returns everything that is wrong in the folder, or why that cannot be determined. Changes nothing.
    pub look: fn(&Path) -> Result<Vec<String>, Explanation>,
}

/// Why a command was not carried out. The message is for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The command cannot be carried out. The message says why, and what would work.
    #[error("{0}")]
    Refused(String),
    /// The registry refuses it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data folder cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Writes the answer to a command.
pub(crate) fn answer(shown: impl Serialize) -> Result<Value, OperatorError> {
    let unwritten = |error| OperatorError::Refused(format!("the answer cannot be written as JSON: {error}"));
    serde_json::to_value(shown).map_err(unwritten)
}

/// Why a data folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or its master key cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(DatabaseError),
    /// The content of the database cannot be used.
    #[error(transparent)]
    Content(#[from] StoreError),
    /// The service cannot open what it keeps in the folder.
    #[error("{0}")]
    Service(Explanation),
}

/// A database that cannot be created is a matter of the folder.
impl From<DatabaseError> for OpenError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::File { path, source } => FolderError::Io(path, source).into(),
            other => Self::Database(other),
        }
    }
}

/// An opened data folder. Servers of tests have a store in memory in place of the database.
pub struct OpenedData<D = Sqlite> {
    /// Applications and keys.
    pub registry: Registry,
    /// Seals and opens secrets with the master key.
    pub keyring: KeyRing,
    /// The database.
    pub database: Arc<D>,
    /// The clock of this process, which goes on from the time that the folder has seen.
    pub clock: Clock,
}

impl OpenedData {
    /// Opens a folder that this process has locked. Blocks on the disk.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(
        folder: &DataFolder,
        names: &Names,
        catalogue: &'static Catalogue,
        random: &Random,
    ) -> Result<Self, OpenError> {
        let master_key = folder.master_key(random)?;
        let keyring = KeyRing::new(&names.salt, &master_key, random.clone());
        let database = Arc::new(Sqlite::open(open_options(&folder.database()?, folder, catalogue))?);
        let clock = database.seen().await?.map_or_else(Clock::system, Clock::since);
        let (directory, keys) = (database.clone(), keyring.clone());
        let registry = Registry::open(directory, catalogue, names.keys, keys, clock.clone(), random.clone()).await?;
        Ok(Self { registry, keyring, database, clock })
    }
}

/// How to open the database of a folder. Grants from layouts that knew only one resource belong to the first of the contract.
pub(crate) fn open_options<'a>(path: &'a Path, folder: &DataFolder, catalogue: &Catalogue) -> OpenOptions<'a, Lock> {
    let former_resource = resources(catalogue).into_iter().next().unwrap_or_default();
    OpenOptions { path, former_resource, lock: Arc::clone(&folder.lock) }
}
