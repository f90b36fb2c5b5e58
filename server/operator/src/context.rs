//! What commands are carried out on, and how it is opened.

use crate::cli::resources;
use crate::data::{DataFolder, Unusable};
use crate::names::Names;
use serde_json::{Map, Value};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolwarrant_core::BoxFuture;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::clock::Clock;
use toolwarrant_core::random::Random;
use toolwarrant_core::registry::{Refused, Registry};
use toolwarrant_core::store::StoreError;
use toolwarrant_core::vault::Vault;
use toolwarrant_store::Store;
use toolwarrant_store::sqlite::{self, OpenOptions, Sqlite};

/// What commands are carried out on.
pub struct OperatorContext {
    /// What the service calls itself.
    pub names: Arc<Names>,
    /// What it offers.
    pub catalogue: &'static Catalogue,
    /// Applications and keys.
    pub registry: Registry,
    /// Tasks and the ledger.
    pub store: Arc<dyn Store>,
    /// What there is to act on, where the service can list it.
    pub inventory: Option<Arc<dyn Inventory>>,
    /// What a doctor looks at beside what every service has.
    pub checks: Arc<[Check]>,
    /// Where all of it lies.
    pub folder: PathBuf,
    /// The time.
    pub clock: Clock,
}

/// Lists what a service acts on, for its operator.
pub trait Inventory: Send + Sync + 'static {
    /// The next items of a resource in the order of their ids, at most `limit`, whoever sees them. `after` need not exist any more.
    fn page<'a>(
        &'a self,
        resource: &'static str,
        after: Option<&'a str>,
        limit: u16,
    ) -> BoxFuture<'a, Result<Vec<Item>, String>>;

    /// The first of `ids` that there is no item of, if any.
    fn missing<'a>(
        &'a self,
        resource: &'static str,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<Option<String>, String>>;
}

/// One thing that a service acts on.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// What a list shows of it, the id among it.
    pub shown: Map<String, Value>,
}

/// Something that a doctor looks at in a data folder. A service adds its own for what it keeps there.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What holds if all is well.
    pub holds: &'static str,
    /// What to do where it does not.
    pub remedy: &'static str,
    /// What is wrong in that folder, or why one cannot look. Changes nothing.
    pub look: fn(&Path) -> Result<Vec<String>, String>,
}

/// Why a command was not carried out, for whoever gave it.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// It asks for what there is not, or what cannot be; and what there is instead.
    #[error("{0}")]
    Refused(String),
    /// The registry does not do it.
    #[error(transparent)]
    Registry(#[from] Refused),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A folder cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Why a data folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder itself, or its master key.
    #[error(transparent)]
    Folder(#[from] Unusable),
    /// The database.
    #[error(transparent)]
    Database(#[from] sqlite::OpenError),
    /// What stands in it.
    #[error(transparent)]
    Content(#[from] StoreError),
    /// What the service itself keeps there.
    #[error("{0}")]
    Service(String),
    /// There is no randomness to be had.
    #[error("no randomness to be had: {0}")]
    Random(#[from] io::Error),
}

/// A data folder with all that is in it, open.
pub struct OpenedData {
    /// Applications and keys.
    pub registry: Registry,
    /// What its master key opens.
    pub vault: Vault,
    /// The database.
    pub database: Arc<Sqlite>,
}

impl OpenedData {
    /// Opens a folder that belongs to this process. Blocks for as long as the disk takes.
    ///
    /// # Errors
    /// What in it cannot be opened.
    pub async fn open(
        folder: &DataFolder,
        names: &Names,
        catalogue: &'static Catalogue,
        clock: Clock,
        random: &Random,
    ) -> Result<Self, OpenError> {
        let vault = Vault::new(&names.salt, &folder.master_key(random)?, random.clone());
        let database = Arc::new(Sqlite::open(open_options(&folder.database()?, folder, catalogue))?);
        let registry = Registry::open(database.clone(), catalogue, names.keys, vault.clone(), clock, random.clone());
        Ok(Self { registry: registry.await?, vault, database })
    }
}

/// How the database of a folder is opened. Grants of former layouts are of the contract's first resource.
pub(crate) fn open_options<'a>(
    path: &'a Path,
    folder: &DataFolder,
    catalogue: &Catalogue,
) -> OpenOptions<'a, Arc<File>> {
    let former_resource = resources(catalogue).into_iter().next().unwrap_or_default();
    OpenOptions { path, former_resource, lock: folder.lock() }
}
