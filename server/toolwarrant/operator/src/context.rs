//! The context of operator commands: the opened data folder, and the additions of the service.

use crate::command::Authority;
use crate::data::DataFolder;
use crate::error::OperatorError;
use crate::lines::ActLines;
use crate::names::Names;
use crate::open_error::OpenError;
use crate::own::{CommandRunner, Explanation};
use crate::place::StoreOptions;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::budgets::Budgets;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::cluster::{Cluster, ClusterStore, Eviction, Membership};
use toolwarrant_core::registry::Registry;
use toolwarrant_core::sharing::Sharing;
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
    /// The same, if replicas share it.
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

    /// Calls `visit` for every target of a resource with its id, its state, and the flags of its
    /// capabilities in the order of the contract. Answers from memory, and may block for the time
    /// that this takes. Default: the service does not know states.
    ///
    /// # Errors
    /// The reason why the targets are not known.
    fn visit_states(&self, resource: &'static str, visit: VisitState<'_>) -> Result<(), Explanation> {
        let _ = visit;
        Err(format!("this service does not know the states of its {resource}s"))
    }
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
    /// The same, if replicas share it, with the membership of this one.
    pub shared: Option<Shared>,
    /// The clock of this process, which continues from the latest time recorded in the folder.
    pub clock: Clock,
}

impl OpenedData {
    /// Opens a folder that this process has locked, and the store. A command has an
    /// authority. Blocks on the disk.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open<'a>(
        folder: &'a DataFolder,
        names: &'a Names,
        catalogue: &'static Catalogue,
        random: &'a Random,
        place: (&'a StoreOptions, Option<Authority>),
    ) -> BoxFuture<'a, Result<Self, OpenError>> {
        Box::pin(Self::open_here(folder, names, catalogue, random, place))
    }

    async fn open_here(
        folder: &DataFolder,
        names: &Names,
        catalogue: &'static Catalogue,
        random: &Random,
        (place, command): (&StoreOptions, Option<Authority>),
    ) -> Result<Self, OpenError> {
        let (master_key, database, shared): (_, Arc<dyn Store>, _) = match place.is_folder() {
            true => {
                let (path, master_key) = (folder.database()?, folder.master_key(random)?);
                (master_key, Arc::new(Sqlite::open(&path, Arc::clone(&folder.lock))?), None)
            }
            false => {
                let shared = Arc::new(place.join(folder, names, command).await?);
                (folder.master_key(random)?, shared.clone(), Some(shared))
            }
        };
        let keyring = KeyRing::new(&names.salt, &master_key, random.clone());
        let seen = database.latest_time().await?;
        let clock = match &shared {
            Some(store) => Clock::of_store(seen.unwrap_or(store.time()), store.time()),
            None => seen.map_or_else(Clock::system, Clock::since),
        };
        let (directory, keys) = (database.clone(), keyring.clone());
        let shared = shared.map(|store| Shared::start(store, clock.clone(), keyring.clone()));
        let cluster = shared.as_ref().map(|shared| shared.sharing.member.clone() as Arc<dyn Cluster>);
        let random = random.clone();
        let registry = Registry::open(directory, catalogue, names.keys, keys, clock.clone(), random, cluster).await?;
        Ok(Self { registry, keyring, database, shared, clock })
    }
}

/// A store that replicas share, and the membership of this process.
pub struct Shared {
    /// The claim to lead; `None` for a command.
    pub claim: Option<Claim>,
    /// The store.
    pub store: Arc<Postgres>,
    /// The part that the service uses, and the membership.
    pub sharing: Sharing,
    /// Runs the membership. It ends with an error if the others have evicted this process.
    pub running: JoinHandle<Result<(), Eviction>>,
}

impl Shared {
    /// Starts to beat.
    fn start(store: Arc<Postgres>, clock: Clock, keyring: KeyRing) -> Self {
        let budgets = Budgets::new(store.clone(), store.epoch(), clock.clone());
        let member = Arc::new(Membership::new(store.clone(), clock));
        let run = Arc::clone(&member);
        let sharing = Sharing::new(store.clone(), member, budgets, keyring);
        Self { claim: None, store, sharing, running: tokio::spawn(async move { run.run().await }) }
    }

    /// Leaves the cluster, so that other replicas adopt the tasks of this one at once.
    pub async fn leave(self) {
        if let Err(error) = self.sharing.member.leave().await {
            tracing::warn!(%error, "this replica could not leave in order; the others take its tasks over when it has been silent");
        }
        self.running.abort();
    }
}
