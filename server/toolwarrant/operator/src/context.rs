//! The context of operator commands. Start at [`OpenedData::open`].

use crate::console::ConsoleDoor;
use crate::data::DataFolder;
use crate::lines::ActLines;
use crate::metrics::ServiceStatus;
use crate::names::Names;
use crate::open_error::OpenError;
use crate::own::{CommandRunner, Explanation};
use crate::place::{StoreOptions, keep_seen};
use crate::unreadable::UnreadTargets;
use serde_json::{Map, Value};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::JoinHandle;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::files::ServiceFiles;
use toolwarrant_core::lease::Lease;
use toolwarrant_core::pipeline::ToolCaller;
use toolwarrant_core::registry::Registry;
use toolwarrant_core::store::StoreError;
use toolwarrant_core::toolsets::Offer;
use toolwarrant_postgres::{Claim, Postgres};
use toolwarrant_sqlite::Sqlite;
use toolwarrant_store::Store;

/// The names of a program, its contract, and the checks of its doctor.
#[derive(Clone)]
pub struct ProgramIdentity {
    pub names: Arc<Names>,
    pub catalogue: &'static Catalogue,
    pub checks: Arc<[Check]>,
}

pub struct OperatorContext {
    pub program: ProgramIdentity,
    pub registry: Registry,
    pub store: Arc<dyn Store>,
    /// The same store, if it is in PostgreSQL.
    pub shared: Option<Arc<Postgres>>,
    pub inventory: Option<Arc<dyn Inventory>>,
    pub own: Option<CommandRunner>,
    pub folder: PathBuf,
    pub clock: Clock,
    pub audit: Option<AuditHandle>,
    /// The server of this process, if it serves.
    pub server: Option<Arc<ServiceStatus>>,
    /// Calls tools of that server.
    pub caller: Option<Weak<dyn ToolCaller>>,
    /// The console of that server.
    pub console: Option<Arc<dyn ConsoleDoor>>,
    pub unreadable: UnreadTargets,
    pub lines: ActLines,
}

impl OperatorContext {
    /// Makes the context of a process that does not serve, and writes no audit trail.
    #[must_use]
    pub fn new(
        program: ProgramIdentity,
        folder: &DataFolder,
        (opened, shared): (OpenedData, Option<Arc<Postgres>>),
        (inventory, own): (Option<Arc<dyn Inventory>>, Option<CommandRunner>),
    ) -> Self {
        let OpenedData { registry, database: store, shared: _, keyring: _, clock } = opened;
        Self {
            program,
            registry,
            store,
            shared,
            inventory,
            own,
            folder: folder.path().to_owned(),
            clock,
            audit: None,
            server: None,
            caller: None,
            console: None,
            unreadable: UnreadTargets::default(),
            lines: ActLines::default(),
        }
    }

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

/// A list of the targets of tools.
pub trait Inventory: Send + Sync + 'static {
    /// Returns at most `limit` items of a resource, ordered by id, including those that no
    /// application sees. The page begins after the id `after`, which need not exist.
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

    /// Returns the reader of states, which a contract with a resource that has a `state` needs.
    /// Default: `None`.
    fn states(&self) -> Option<&dyn States> {
        None
    }
}

/// A reader of targets' states.
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

/// A check of the doctor on a service's files in the data folder.
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

pub struct OpenedData {
    pub registry: Registry,
    pub keyring: KeyRing,
    pub database: Arc<dyn Store>,
    pub shared: Option<Shared>,
    /// Continues from the latest time recorded in the folder.
    pub clock: Clock,
}

impl OpenedData {
    /// Opens a folder that this process has locked, and the store: one in PostgreSQL for reading if
    /// there is no claim. Blocks on the disk.
    pub fn open<'a>(
        folder: &'a DataFolder,
        names: &'a Names,
        offer: impl Into<Offer>,
        random: &'a Random,
        (place, claim): (&'a StoreOptions, Option<Claim>),
    ) -> BoxFuture<'a, Result<Self, OpenError>> {
        let offer = offer.into();
        Box::pin(async move {
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
            match Registry::open(directory, offer, names.keys, keys, clock.clone(), random, lease).await {
                Ok(registry) => {
                    let registry = registry.in_cell(place.cell.as_deref());
                    Ok(Self { registry, keyring, database, shared, clock })
                }
                Err(error) => {
                    if let Some(shared) = shared {
                        shared.leave().await;
                    }
                    Err(error.into())
                }
            }
        })
    }

    pub async fn files(&self) -> Result<ServiceFiles, StoreError> {
        ServiceFiles::open(self.database.clone()).await
    }
}

pub struct Shared {
    pub store: Arc<Postgres>,
    /// While it stands, this process may answer and send.
    pub lease: Lease,
    /// Ends with the reason why this process does not lead any more. `None` if it only reads.
    pub leading: Option<JoinHandle<StoreError>>,
    claim: Option<Arc<Claim>>,
}

impl Shared {
    fn start(store: Arc<Postgres>, claim: Option<Claim>, clock: Clock, folder: &DataFolder) -> Self {
        let lease = Lease::new(clock.clone());
        let kept = lease.clone();
        let watched = Arc::clone(&store);
        let claim = claim.map(Arc::new);
        let leading = claim.clone().map(|claim| {
            let seen = keep_seen(folder);
            tokio::spawn(async move {
                tokio::select! {
                    why = claim.keep(&kept, &clock, &seen) => why,
                    why = watched.wait_for_unknown_fate() => why,
                    why = watched.wait_for_eviction() => why,
                    never = watch(&watched, &kept) => match never {},
                }
            })
        });
        Self { store, lease, leading, claim }
    }

    /// Tells the process that has handed over that this one answers clients.
    pub fn note_serving(&self) {
        if let Some(claim) = self.claim.clone() {
            tokio::spawn(async move { claim.note_serving().await });
        }
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

const WATCH_EVERY: Duration = Duration::from_secs(1);

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
