//! The context of operator commands: the opened data folder, and the additions of the service.

use crate::data::DataFolder;
use crate::error::OperatorError;
use crate::lines::ActLines;
use crate::names::Names;
use crate::open_error::OpenError;
use crate::own::{CommandRunner, Explanation};
use crate::place::{StoreOptions, keep_seen};
use serde::Serialize;
use serde_json::{Map, Value};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::files::ServiceFiles;
use toolwarrant_core::lease::Lease;
use toolwarrant_core::registry::Registry;
use toolwarrant_core::store::StoreError;
use toolwarrant_postgres::{Claim, Postgres};
use toolwarrant_sqlite::Sqlite;
use toolwarrant_store::Store;

/// The context of operator commands.
pub struct OperatorContext {
    /// The names of the service.
    pub names: Arc<Names>,
    /// Its contract.
    pub catalogue: &'static Catalogue,
    /// Applications and keys.
    pub registry: Registry,
    /// Tasks and the ledger.
    pub store: Arc<dyn Store>,
    /// The same, if it is in PostgreSQL.
    pub shared: Option<Arc<Postgres>>,
    /// Lists the targets of tools, if the service can do that.
    pub inventory: Option<Arc<dyn Inventory>>,
    /// Carries out the commands that the service adds, if there are any.
    pub own: Option<CommandRunner>,
    /// The doctor's checks that the service adds.
    pub checks: Arc<[Check]>,
    /// The data folder.
    pub folder: PathBuf,
    /// The clock.
    pub clock: Clock,
    /// The audit trail, if it can be written.
    pub audit: Option<AuditHandle>,
    /// True if this process is a running server.
    pub serves: bool,
    /// Writes the lines of acts.
    pub lines: ActLines,
    /// Held while a state file is applied.
    pub applying: Mutex<()>,
}

impl OperatorContext {
    /// Writes the lines of acts that have none. Returns false if some could not be written yet.
    pub async fn write_lines(&self) -> bool {
        let Some(audit) = &self.audit else { return true };
        let written = self.lines.write(&*self.store, audit, &self.clock).await;
        let has_failed = self.lines.fails.swap(written.is_err(), Ordering::Relaxed);
        if let Err(error) = &written
            && !has_failed
        {
            tracing::warn!(%error, "the lines of acts wait to be recorded");
        }
        written.unwrap_or(false)
    }
}

/// Lists the targets of tools, for the operator.
pub trait Inventory: Send + Sync + 'static {
    /// Returns at most `limit` items of a resource, ordered by id, including those that no
    /// application sees. With `after`, the page begins after that id, which need not exist.
    fn page<'a>(
        &'a self,
        resource: &'static str,
        after: Option<&'a str>,
        limit: u16,
    ) -> BoxFuture<'a, Result<Vec<Item>, Explanation>>;

    /// Returns the first of `ids` that does not exist, if there is one.
    fn missing<'a>(
        &'a self,
        resource: &'static str,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<Option<String>, Explanation>>;

    /// Returns the reader of states. A contract whose resources have a `state` needs one. Default:
    /// `None`.
    fn states(&self) -> Option<&dyn States> {
        None
    }
}

/// Reads the states of targets, for the operator.
pub trait States {
    /// Calls `visit` for every target of a resource with its id, its state, and the flags of its
    /// capabilities in the order of the contract. Answers from memory, and may block for the time
    /// that this takes.
    ///
    /// # Errors
    /// The reason why the targets are not known.
    fn visit(&self, resource: &'static str, visit: VisitState<'_>) -> Result<(), Explanation>;
}

/// Receives the id, the state and the capability flags of a target.
pub type VisitState<'a> = &'a mut dyn FnMut(&str, &'static str, &[bool]);

/// One target.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// The fields that a list shows, including the id.
    pub shown: Map<String, Value>,
}

/// A check of the doctor on a data folder. A service adds checks for the files that it stores
/// there.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The name of the check.
    pub name: &'static str,
    /// The condition that holds in a healthy folder.
    pub holds: &'static str,
    /// The instruction for the operator if the condition does not hold.
    pub remedy: &'static str,
    /// Returns all faults in the folder, or the reason why the check failed to look. Changes
    /// nothing.
    pub look: fn(&Path) -> Result<Vec<String>, Explanation>,
}

/// Converts the answer of a command to JSON.
pub(crate) fn answer(shown: impl Serialize) -> Result<Value, OperatorError> {
    let unwritten = |error| OperatorError::refusal(format!("the answer cannot be written as JSON: {error}"));
    serde_json::to_value(shown).map_err(unwritten)
}

/// An opened data folder.
pub struct OpenedData {
    /// Applications and keys.
    pub registry: Registry,
    /// Seals and opens secrets with the master key.
    pub keyring: KeyRing,
    /// The database.
    pub database: Arc<dyn Store>,
    /// The same, if it is in PostgreSQL.
    pub shared: Option<Shared>,
    /// The clock of this process, which continues from the latest time recorded in the folder.
    pub clock: Clock,
}

impl OpenedData {
    /// Opens a folder that this process has locked, and the store. A process that leads has a
    /// claim; without one, a store in PostgreSQL is opened for reading. Blocks on the disk.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open<'a>(
        folder: &'a DataFolder,
        names: &'a Names,
        catalogue: &'static Catalogue,
        random: &'a Random,
        place: (&'a StoreOptions, Option<Claim>),
    ) -> BoxFuture<'a, Result<Self, OpenError>> {
        Box::pin(Self::open_here(folder, names, catalogue, random, place))
    }

    async fn open_here(
        folder: &DataFolder,
        names: &Names,
        catalogue: &'static Catalogue,
        random: &Random,
        (place, claim): (&StoreOptions, Option<Claim>),
    ) -> Result<Self, OpenError> {
        let (master_key, database, shared): (_, Arc<dyn Store>, _) = match place.is_folder() {
            true => {
                let (path, master_key) = (folder.database()?, folder.master_key(random)?);
                (master_key, Arc::new(Sqlite::open(&path, Arc::clone(&folder.lock))?), None)
            }
            false => {
                let shared = Arc::new(place.open(folder, names, claim.as_ref()).await?);
                (folder.master_key(random)?, shared.clone(), Some(shared))
            }
        };
        let keyring = KeyRing::new(&names.salt, &master_key, random.clone());
        let seen = database.latest_time().await?;
        let clock = seen.map_or_else(Clock::system, Clock::since);
        let (directory, keys) = (database.clone(), keyring.clone());
        let shared = shared.map(|store| Shared::start(store, claim, clock.clone(), folder));
        let lease = shared.as_ref().map(|shared| shared.lease.clone());
        let random = random.clone();
        let registry = Registry::open(directory, catalogue, names.keys, keys, clock.clone(), random, lease).await?;
        let registry = registry.in_cell(place.cell.as_deref());
        Ok(Self { registry, keyring, database, shared, clock })
    }

    /// Reads the small files of the service.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn files(&self) -> Result<ServiceFiles, StoreError> {
        ServiceFiles::open(self.database.clone()).await
    }
}

/// A store in PostgreSQL, and the claim of this process to lead.
pub struct Shared {
    /// The store.
    pub store: Arc<Postgres>,
    /// The time for which this process may answer and send. It stands while this process leads.
    pub lease: Lease,
    /// Keeps the claim, and ends with the reason why this process does not lead any more. `None` if
    /// it only reads.
    pub leading: Option<JoinHandle<StoreError>>,
}

impl Shared {
    /// Starts to beat if this process leads.
    fn start(store: Arc<Postgres>, claim: Option<Claim>, clock: Clock, folder: &DataFolder) -> Self {
        let lease = Lease::new(clock.clone());
        let kept = lease.clone();
        let watched = Arc::clone(&store);
        let leading = claim.map(|claim| {
            let seen = keep_seen(folder);
            tokio::spawn(async move {
                tokio::select! {
                    why = claim.keep(&kept, &clock, &seen) => why,
                    never = watch(&watched, &kept) => match never {},
                }
            })
        });
        Self { store, lease, leading }
    }

    /// Answers and sends nothing any more, and lets another process lead at once.
    pub async fn leave(self) {
        self.lease.end();
        let Some(leading) = self.leading else { return };
        if let Err(error) = self.store.leave().await {
            tracing::warn!(%error, "this process could not leave in order; another one leads when it has been silent");
        }
        leading.abort();
    }
}

/// Interval at which the lease is looked at.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Says in the log when the lease is over, and why, and when it stands again.
async fn watch(store: &Postgres, lease: &Lease) -> Infallible {
    let mut was_over = true;
    loop {
        tokio::time::sleep(WATCH_EVERY).await;
        let is_over = !lease.stands();
        match (is_over, was_over) {
            (true, false) => {
                let why = store.find_obstacle().await.unwrap_or_else(|error| Some(error.to_string()));
                let why = why.unwrap_or_else(|| "PostgreSQL does not confirm beats".to_owned());
                tracing::error!(why, "this process stops to answer, because another one may lead soon");
            }
            (false, true) => tracing::info!("this process leads"),
            _ => {}
        }
        was_over = is_over;
    }
}
