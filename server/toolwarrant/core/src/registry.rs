//! The registry of applications and keys. A change that gives authority is durable before it takes
//! effect. A change that takes authority away takes effect at once, and is stored as soon as the
//! disk accepts it.
//!
//! A store holds the data; [`Access`] checks requests against it. Start at [`Registry`].

mod changes;
mod edits;
mod keys;
mod names;
mod pending;

pub use names::{APPLICATION_NAME_MAX, may_name_application};

use super::access::{Access, Application, Grants, purpose, verifier};
use super::act::{Act, Changes, Origin, RowFacts};
use super::catalogue::{Catalogue, PermissionSet};
use super::limit::{RequestCount, WINDOW, Window};
use super::toolsets::Offer;
use crate::lease::Lease;
use crate::store::{ApplicationRow, DirectoryStore, KeyRow, Labels, SecretRow, SecretUse, StoreError};
use edits::{DirectoryRow, Edit, RowId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use tokio::sync::Mutex;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::hex;
use toolwarrant_base::keyring::{BrokenSeal, KeyRing};
use toolwarrant_base::random::Random;
use toolwarrant_base::text::{Remark, Secret};

/// Applications and keys. When a method returns, its change is in force and stored, unless its
/// documentation differs.
pub struct Registry {
    access: Arc<Access>,
    prefixes: KeyPrefixes,
    /// The name of the cell and an underscore; empty without a cell.
    cell: String,
    offer: Offer,
    store: Arc<dyn DirectoryStore>,
    clock: Clock,
    random: Random,
    /// The lock is held while a change is written, so changes happen one after the other.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    applications: HashMap<String, (ApplicationRow, Arc<Application>)>,
    keys: HashMap<String, KeyRow>,
    /// In force but not stored yet, with the acts since then, in order.
    pending: BTreeMap<RowId, Vec<Act>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Durability {
    Stored,
    /// It is not on the disk, for this reason. A restart before [`Registry::settle`] brings the
    /// authority back.
    Owed(String),
}

#[derive(Clone, Debug)]
#[must_use]
pub struct Changed {
    pub object: String,
    pub act_id: String,
    pub durability: Durability,
}

#[derive(Clone, Debug)]
pub struct NewApplication {
    /// Unique.
    pub name: String,
    /// By name. The application also gets the permissions that these imply.
    pub permissions: Vec<String>,
    pub grants: Grants,
    pub requests_per_minute: u32,
}

/// The prefixes of key ids and secrets. People and scanners recognise them.
#[derive(Clone, Copy, Debug)]
pub struct KeyPrefixes {
    /// The prefix of ids.
    pub id: &'static str,
    /// The prefix of secrets.
    pub secret: &'static str,
}

/// The secret is shown only this one time.
#[derive(Debug)]
pub struct NewKey {
    /// A prefix, the name of the cell, and 16 hexadecimal digits.
    pub key_id: String,
    /// A prefix and 64 hexadecimal digits: 256 random bits.
    pub secret: Secret<String>,
    pub act_id: String,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("{0}")]
    Unknown(String),
    #[error("{0}")]
    Refused(String),
    /// Nothing has changed.
    #[error("{0}")]
    Unavailable(String),
}

impl Registry {
    /// Fails if the data was made with another master key.
    pub async fn open(
        store: Arc<dyn DirectoryStore>,
        offer: impl Into<Offer> + Send,
        prefixes: KeyPrefixes,
        keyring: KeyRing,
        clock: Clock,
        random: Random,
        lease: Option<Lease>,
    ) -> Result<Self, StoreError> {
        let offer = offer.into();
        let (applications, keys) = store.directory().await?;
        if !opens_any(&keyring, &keys) {
            let why = "the master key is not the one that this data was made with; restore that one";
            return Err(StoreError::Corrupt(why.to_owned()));
        }
        let access = Access::new(keyring);
        let access = Arc::new(lease.into_iter().fold(access, Access::with_lease));
        let requests = store.requests().await?;
        let known = Mutex::default();
        let cell = String::new();
        let registry = Self { access, prefixes, cell, offer, store, clock, random, known };
        let mut known = registry.known.lock().await;
        known.put_in_force(&registry.access, offer, applications, keys);
        for RequestCount { application, second, requests } in requests {
            if let Some((_, application)) = known.applications.get(&application) {
                application.window.restore(second, requests);
            }
        }
        drop(known);
        Ok(registry)
    }

    /// Returns the requests of an application in the last minute.
    pub async fn usage(&self, application: &str) -> Option<u32> {
        let known = self.known.lock().await;
        let (_, application) = known.applications.get(application)?;
        Some(application.window.usage(self.clock.now()))
    }

    /// Adds the name of a cell to the prefix of new ids.
    #[must_use]
    pub fn in_cell(self, name: Option<&str>) -> Self {
        Self { cell: name.map(|name| format!("{name}_")).unwrap_or_default(), ..self }
    }

    #[must_use]
    pub fn access(&self) -> Arc<Access> {
        Arc::clone(&self.access)
    }

    pub async fn is_empty(&self) -> bool {
        self.known.lock().await.applications.is_empty()
    }

    pub async fn store_requests(&self) -> Result<(), StoreError> {
        let windows: Vec<_> = {
            let known = self.known.lock().await;
            known.applications.iter().map(|(id, (_, application))| (id.clone(), application.window.clone())).collect()
        };
        let mut counts = Vec::new();
        let mut changed = Vec::new();
        for (id, window) in windows {
            let seconds = window.take_changes();
            changed.extend(seconds.first().map(|(first, _)| (window, *first)));
            let count = |(second, requests)| RequestCount { application: id.clone(), second, requests };
            counts.extend(seconds.into_iter().map(count));
        }
        if counts.is_empty() {
            return Ok(());
        }
        let stored = self.store.put_requests(counts, self.clock.now().minus(WINDOW).0 / 1000).await;
        if stored.is_err() {
            changed.iter().for_each(|(window, second)| window.note_change(*second));
        }
        stored
    }

    pub async fn create(&self, new: NewApplication, origin: &Origin) -> Result<Changed, RegistryError> {
        let (row, act) = self.new_application(new, origin)?;
        let (object, act_id) = (row.id.clone(), act.id.clone());
        let edit = |_: &Known| Ok((Edit { row: DirectoryRow::Application(row), act, only_takes: false }, ()));
        let ((), durability) = self.carry_out(edit).await?;
        Ok(Changed { object, act_id, durability })
    }

    /// Creates an application and its first key, or neither.
    pub async fn create_with_key(
        &self,
        new: NewApplication,
        expires_at: Option<Timestamp>,
        origin: &Origin,
    ) -> Result<(Changed, NewKey), RegistryError> {
        let (row, act) = self.new_application(new, origin)?;
        let (object, act_id) = (row.id.clone(), act.id.clone());
        let mut key = self.new_key(&object, expires_at)?;
        let secret = self.put_secret(&mut key)?;
        let of_key = self.edit_key(None, key.clone(), origin)?.act;
        let made = NewKey { key_id: key.id.clone(), secret, act_id: of_key.id.clone() };
        let row = DirectoryRow::WithKey(row, Box::new((key, of_key)));
        let ((), durability) = self.carry_out(|_| Ok((Edit { row, act, only_takes: false }, ()))).await?;
        Ok((Changed { object, act_id, durability }, made))
    }

    fn new_application(&self, new: NewApplication, origin: &Origin) -> Result<(ApplicationRow, Act), RegistryError> {
        let NewApplication { name, permissions, grants, requests_per_minute } = new;
        self.check(&permissions)?;
        check_name(&name)?;
        let row = ApplicationRow {
            id: format!("{}{}", names::ID_PREFIX, self.hex::<8>()?),
            name,
            permissions,
            requests_per_minute,
            grants,
            created_at: self.clock.now(),
            labels: Labels::new(),
            suspended_at: None,
            deleted_at: None,
        };
        let act = self.act(origin, Some(&row.id), Changes::between(None, Some(RowFacts::from(&row))))?;
        Ok((row, act))
    }

    /// Returns all applications, the oldest first.
    pub async fn applications(&self) -> Vec<ApplicationRow> {
        let known = self.known.lock().await;
        let mut rows: Vec<_> = known.applications.values().map(|(row, _)| row.clone()).collect();
        rows.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        rows
    }

    pub async fn names(&self) -> Vec<(String, String, Option<Timestamp>)> {
        let known = self.known.lock().await;
        known.applications.values().map(|(row, _)| (row.id.clone(), row.name.clone(), row.deleted_at)).collect()
    }

    pub async fn find(&self, application: &str) -> Result<ApplicationRow, RegistryError> {
        let known = self.known.lock().await;
        let is_named = |row: &ApplicationRow| row.name == application && row.deleted_at.is_none();
        let by_name = || known.applications.values().find(|(row, _)| is_named(row));
        let found = known.applications.get(application).or_else(by_name).map(|(row, _)| row);
        found.cloned().ok_or_else(|| unknown("application", application))
    }

    /// Changes an application for all its keys. Its request budget continues.
    pub async fn change(
        &self,
        id: &str,
        origin: &Origin,
        edit: impl FnOnce(&mut ApplicationRow) + Send,
    ) -> Result<Changed, RegistryError> {
        let plan = |known: &Known| {
            let (before, _) = known.applications.get(id).ok_or_else(|| unknown("application", id))?;
            if before.deleted_at.is_some() {
                return Err(registry_error(format!("the application `{id}` was deleted; create another")));
            }
            let mut row = before.clone();
            edit(&mut row);
            self.check(&row.permissions)?;
            // A name in the database that is not allowed stays until it changes.
            if *row.name != *before.name {
                check_name(&row.name)?;
            }
            let changes = Changes::between(Some(RowFacts::from(before)), Some(RowFacts::from(&row)));
            let act = self.act(origin, Some(id), changes)?;
            let (act_id, only_takes) = (act.id.clone(), takes_away(before, &row));
            Ok((Edit { row: DirectoryRow::Application(row), act, only_takes }, act_id))
        };
        let (act_id, durability) = self.carry_out(plan).await?;
        Ok(Changed { object: id.to_owned(), act_id, durability })
    }

    fn check(&self, permissions: &[String]) -> Result<(), RegistryError> {
        let all = self.offer.catalogue.permissions;
        let Some(unknown) = permissions.iter().find(|name| !all.iter().any(|known| known.name == **name)) else {
            return Ok(());
        };
        let names: Vec<_> = all.iter().map(|known| format!("`{}`", known.name)).collect();
        Err(registry_error(format!("there is no permission `{unknown}`; there are {}", names.join(", "))))
    }

    pub fn act(&self, origin: &Origin, object: Option<&str>, changes: Changes) -> Result<Act, RegistryError> {
        Act::new(origin.clone(), object, changes, self.clock.latest(), &self.random).map_err(registry_error)
    }

    fn hex<const N: usize>(&self) -> Result<String, RegistryError> {
        self.random.bytes::<N>().map(|bytes| hex::encode(&bytes)).map_err(registry_error)
    }
}

impl Known {
    fn key(&self, id: &str) -> Result<KeyRow, RegistryError> {
        self.keys.get(id).cloned().ok_or_else(|| unknown("key", id))
    }

    fn acts(&self, row: &RowId, act: Act) -> Vec<Act> {
        self.pending.get(row).cloned().unwrap_or_default().into_iter().chain([act]).collect()
    }

    /// Returns the last uses of secrets whose cells may be gone then.
    fn put_in_force(
        &mut self,
        access: &Access,
        offer: Offer,
        applications: Vec<ApplicationRow>,
        mut keys: Vec<KeyRow>,
    ) -> Vec<SecretUse> {
        let mut changed = Vec::new();
        for row in applications {
            let former = self.applications.get(&row.id).map(|(_, former)| Arc::clone(&former.window));
            let window = former.clone().unwrap_or_else(|| Arc::new(Window::new(row.requests_per_minute)));
            window.set_limit(row.requests_per_minute);
            let application = application(&row, offer, window);
            if row.deleted_at.is_some() {
                let is_listed = |id: &String| keys.iter().any(|key| key.id == *id);
                let of_it = self.keys.values().filter(|key| key.application == row.id && !is_listed(&key.id));
                let of_it: Vec<_> = of_it.cloned().collect();
                keys.extend(of_it);
            }
            changed.extend(former.map(|_| Arc::clone(&application)));
            self.applications.insert(row.id.clone(), (row, application));
        }
        for key in &mut keys {
            if self.applications.get(&key.application).is_some_and(|(row, _)| row.deleted_at.is_some()) {
                (key.secrets, key.labels) = (Vec::new(), Labels::new());
            }
        }
        if changed.is_empty() && keys.is_empty() {
            return Vec::new();
        }
        let ids: Vec<_> = keys.iter().map(|key| key.id.clone()).collect();
        let uses = access.uses_since_start(Some(&ids));
        let closed = |key: &&KeyRow| open_secrets(access.keyring(), key).is_err();
        let closed: HashSet<_> = keys.iter().filter(closed).map(|key| &*key.id).collect();
        if let Some(first) = closed.iter().min() {
            let keys = closed.len();
            tracing::error!(keys, first, "keys are refused, because their secrets do not fit them; see `doctor`");
        }
        access.change(|directory| {
            changed.iter().for_each(|application| directory.put_application(application));
            for key in &keys {
                if let Some((_, application)) = self.applications.get(&key.application) {
                    let secrets = if closed.contains(&*key.id) { &[] } else { &*key.secrets };
                    directory.put_key(&key.id, application, secrets, key.expires_at);
                    if key.suspended_at.is_some() {
                        directory.suspend_key(&key.id);
                    }
                }
            }
        });
        self.keys.extend(keys.into_iter().map(|key| (key.id.clone(), key)));
        uses
    }
}

fn unknown(what: &str, named: &str) -> RegistryError {
    let list = match what {
        "application" => "`app list` shows all, and `app list --deleted` the deleted ones",
        _ => "`key list` shows all",
    };
    RegistryError::Unknown(format!("there is no {what} `{named}`; {list}"))
}

fn check_name(name: &str) -> Result<(), RegistryError> {
    if may_name_application(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(APPLICATION_NAME_MAX).collect();
    Err(RegistryError::Refused(format!(
        "an application cannot be named {shown:?}: a name has 1 to {APPLICATION_NAME_MAX} printable characters, among them a letter \
         or a digit, no space at either end, is not like an id, and does not begin with {}",
        names::ID_PREFIX
    )))
}

/// Returns true if a change of an application gives no authority.
fn takes_away(before: &ApplicationRow, after: &ApplicationRow) -> bool {
    let ApplicationRow { id: _, name, permissions, requests_per_minute, grants, created_at: _, .. } = after;
    let ApplicationRow { labels, suspended_at, deleted_at, .. } = after;
    deleted_at.is_some()
        || *labels == before.labels
            && (suspended_at.is_some() || before.suspended_at.is_none())
            && permissions.iter().all(|held| before.permissions.contains(held))
            && *requests_per_minute <= before.requests_per_minute
            && grants.are_within(&before.grants)
            && *name == before.name
}

/// Drops permissions that are no longer in the contract.
fn application(row: &ApplicationRow, offer: Offer, window: Arc<Window>) -> Arc<Application> {
    let Offer { catalogue, .. } = offer;
    let ApplicationRow { id, name, permissions, grants, suspended_at, .. } = row;
    let granted = catalogue.permissions.iter().filter(|known| permissions.iter().any(|name| name == known.name));
    let granted = granted.fold(PermissionSet::default(), |set, permission| set.and(permission.grants));
    let application = Application::new(id, name, granted, grants.clone(), window);
    let application = application.with_toolsets(offer.toolsets_of(name), catalogue);
    Arc::new(if suspended_at.is_some() { application.suspend() } else { application })
}

/// Describes the stored permissions that the contract does not have. They grant nothing.
#[must_use]
pub fn unknown_permissions(applications: &[ApplicationRow], catalogue: &Catalogue) -> Vec<String> {
    let known = |name: &String| catalogue.permissions.iter().any(|known| known.name == name);
    let rows = applications.iter().flat_map(|row| row.permissions.iter().map(move |name| (&row.id, name)));
    let unknown = rows.filter(|(_, name)| !known(name));
    unknown
        .map(|(id, name)| format!("{id} has the permission `{}`, which does not exist", Remark::clean(name).as_str()))
        .collect()
}

/// Fails if a secret was made for another key, application or master key, or has another verifier.
/// The seal binds it, and nobody can make one by writing to the store.
pub fn open_secrets(keyring: &KeyRing, key: &KeyRow) -> Result<(), BrokenSeal> {
    key.secrets.iter().try_for_each(|SecretRow { verifier: stored, sealed, .. }| {
        let secret = keyring.open(&purpose(&key.application, &key.id), sealed)?;
        if verifier(keyring, secret.expose()) == *stored { Ok(()) } else { Err(BrokenSeal) }
    })
}

/// Returns true for the master key of these keys, and if none of them has a secret.
#[must_use]
pub fn opens_any(keyring: &KeyRing, keys: &[KeyRow]) -> bool {
    let mut sealed = keys.iter().filter(|key| !key.secrets.is_empty()).peekable();
    sealed.peek().is_none() || sealed.any(|key| open_secrets(keyring, key).is_ok())
}

fn registry_error(error: impl fmt::Display) -> RegistryError {
    RegistryError::Refused(error.to_string())
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(why) => {
                Self::Unavailable(format!("nothing has changed, because it cannot be stored: {why}"))
            }
            StoreError::Unanswered(why) => Self::Unavailable(why),
            other => registry_error(other),
        }
    }
}
