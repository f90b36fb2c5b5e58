//! The registry of applications and keys. A change that gives authority is durable before it takes
//! effect. A change that takes authority away takes effect at once, and is stored as soon as the
//! disk accepts it.
//!
//! A store holds the data; [`Access`] checks requests against it. Start at [`Registry`].

mod names;

pub use names::{APPLICATION_NAME_MAX, may_name_application};

use super::access::{Access, Application, Grants, LIVE_SECRETS, purpose};
use super::catalogue::{Catalogue, PermissionSet};
use super::limit::Window;
use crate::store::{ApplicationRow, DirectoryStore, KeyRow, StoreError};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::hex;
use toolwarrant_base::keyring::{BrokenSeal, KeyRing};
use toolwarrant_base::random::Random;
use toolwarrant_base::text::{Remark, Secret};
use zeroize::Zeroizing;

/// Applications and keys. When a method returns, its change is in force and also stored, unless the
/// method's documentation differs.
pub struct Registry {
    access: Arc<Access>,
    prefixes: KeyPrefixes,
    catalogue: &'static Catalogue,
    store: Arc<dyn DirectoryStore>,
    clock: Clock,
    random: Random,
    /// The stored data. The lock is held while a change is written, so changes happen one after the
    /// other.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    applications: HashMap<String, (ApplicationRow, Arc<Application>)>,
    keys: HashMap<String, KeyRow>,
    /// The ids of rows whose revocation is pending: in force, but not stored yet.
    owed: BTreeSet<PendingRevocation>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PendingRevocation {
    Application(String),
    Key(String),
}

/// The state of a change that is in force: on the disk or not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Durability {
    /// It is on the disk.
    Stored,
    /// It is not on the disk, for this reason. [`Registry::settle`] stores it. A restart before
    /// that brings back the authority that it took away.
    Owed(String),
}

/// Time for which storing a change that is in force may take. After that, its operator is informed
/// that it is not stored.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// Interval between attempts to store pending revocations.
const SETTLE_EVERY: Duration = Duration::from_secs(1);

/// An application to create.
#[derive(Clone, Debug)]
pub struct NewApplication {
    /// Its name for people; unique.
    pub name: String,
    /// Its permissions, by name. It also gets the permissions that these imply.
    pub permissions: Vec<String>,
    /// The targets that it may see.
    pub grants: Grants,
    /// Its request budget in any 60 seconds.
    pub requests_per_minute: u32,
}

/// Prefixes of key ids and secrets, so that people and scanners recognise them.
#[derive(Clone, Copy, Debug)]
pub struct KeyPrefixes {
    /// The prefix of ids.
    pub id: &'static str,
    /// The prefix of secrets.
    pub secret: &'static str,
}

/// A key with a new secret. The secret is shown only this one time.
#[derive(Debug)]
pub struct NewKey {
    /// A prefix and 16 hexadecimal digits.
    pub key_id: String,
    /// A prefix and 64 hexadecimal digits: 256 random bits.
    pub secret: Secret<String>,
}

/// The reason why the registry refused a change, and the remedy.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RegistryError(String);

impl Registry {
    /// Loads all applications and keys.
    ///
    /// # Errors
    /// The store cannot be read, or the data was made with another master key than the one in
    /// `keyring`.
    pub async fn open(
        store: Arc<dyn DirectoryStore>,
        catalogue: &'static Catalogue,
        prefixes: KeyPrefixes,
        keyring: KeyRing,
        clock: Clock,
        random: Random,
    ) -> Result<Self, StoreError> {
        let (applications, keys) = store.directory().await?;
        // One key is enough to check the master key.
        if let Some(key) = keys.iter().find(|key| !key.secrets.is_empty()) {
            open_secrets(&keyring, key).map_err(|_| {
                StoreError::Corrupt(
                    "the master key is not the one that this data was made with; restore that one".to_owned(),
                )
            })?;
        }
        let mut known = Known::default();
        for row in applications {
            let window = Arc::new(Window::new(row.requests_per_minute));
            let application = application(&row, catalogue, window);
            known.applications.insert(row.id.clone(), (row, application));
        }
        let access = Arc::new(Access::new(keyring));
        known.put_in_force(&access, keys);
        Ok(Self { access, prefixes, catalogue, store, clock, random, known: Mutex::new(known) })
    }

    /// Returns the directory that requests are checked against.
    #[must_use]
    pub fn access(&self) -> Arc<Access> {
        Arc::clone(&self.access)
    }

    /// Returns true if there is no application.
    pub async fn is_empty(&self) -> bool {
        self.known.lock().await.applications.is_empty()
    }

    /// Creates an application without keys and returns its id.
    ///
    /// # Errors
    /// The name is taken or not allowed, a permission does not exist, or the application cannot be
    /// stored.
    pub async fn create(&self, new: NewApplication) -> Result<String, RegistryError> {
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
        };
        let mut known = self.known.lock().await;
        self.store.put_application(row.clone()).await?;
        let id = row.id.clone();
        let application = application(&row, self.catalogue, Arc::new(Window::new(requests_per_minute)));
        known.applications.insert(id.clone(), (row, application));
        Ok(id)
    }

    /// Returns all applications, the oldest first.
    pub async fn applications(&self) -> Vec<ApplicationRow> {
        let known = self.known.lock().await;
        let mut rows: Vec<_> = known.applications.values().map(|(row, _)| row.clone()).collect();
        rows.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        rows
    }

    /// Returns all keys, the oldest first. A revoked key has no secret.
    pub async fn keys(&self) -> Vec<KeyRow> {
        let mut rows: Vec<_> = self.known.lock().await.keys.values().cloned().collect();
        rows.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        rows
    }

    /// Finds an application by its id or name. If the text is an id, an application of that name is
    /// not considered.
    ///
    /// # Errors
    /// There is no such application.
    pub async fn find(&self, application: &str) -> Result<ApplicationRow, RegistryError> {
        let known = self.known.lock().await;
        let by_name = || known.applications.values().find(|(row, _)| row.name == application);
        let found = known.applications.get(application).or_else(by_name).map(|(row, _)| row);
        found.cloned().ok_or_else(|| unknown("application", application))
    }

    /// Changes an application, for all its keys at once. Its request budget continues. A change
    /// that only takes authority away is in force even if it cannot be stored.
    ///
    /// # Errors
    /// There is no such application or permission, the name is not allowed, or the change cannot be
    /// stored.
    pub async fn change(&self, id: &str, edit: impl FnOnce(&mut ApplicationRow)) -> Result<Durability, RegistryError> {
        let mut known = self.known.lock().await;
        let (before, former) = known.applications.get(id).cloned().ok_or_else(|| unknown("application", id))?;
        let mut row = before.clone();
        edit(&mut row);
        self.check(&row.permissions)?;
        // Data of earlier versions can contain names that are no longer allowed.
        if *row.name != *before.name {
            check_name(&row.name)?;
        }
        let takes = takes_away(&before, &row);
        if !takes {
            self.store.put_application(row.clone()).await?;
        }
        let application = application(&row, self.catalogue, Arc::clone(&former.window));
        self.access.change(|directory| directory.put_application(&application));
        known.applications.insert(row.id.clone(), (row, application));
        match takes {
            true => Ok(self.store(&mut known, PendingRevocation::Application(id.to_owned())).await),
            false => Ok(Durability::Stored),
        }
    }

    /// Creates a key for an application.
    ///
    /// # Errors
    /// There is no such application, or the key cannot be stored.
    pub async fn issue_key(&self, application: &str, expires_at: Option<Timestamp>) -> Result<NewKey, RegistryError> {
        let id = format!("{}{}", self.prefixes.id, self.hex::<8>()?);
        let mut known = self.known.lock().await;
        let (application, created_at) = (application.to_owned(), self.clock.now());
        self.add_secret(&mut known, KeyRow { id, application, secrets: Vec::new(), created_at, expires_at }).await
    }

    /// Adds a secret to a key. The previous secret stays valid; older ones end.
    ///
    /// # Errors
    /// There is no such key, it is revoked, or it cannot be stored.
    pub async fn rotate_key(&self, key_id: &str) -> Result<NewKey, RegistryError> {
        let mut known = self.known.lock().await;
        let key = known.key(key_id)?;
        if key.secrets.is_empty() {
            return Err(registry_error(format!("the key `{key_id}` is revoked; create another for its application")));
        }
        self.add_secret(&mut known, key).await
    }

    /// Revokes a key with all its secrets, at once, even if that cannot be stored.
    ///
    /// # Errors
    /// There is no such key.
    pub async fn revoke_key(&self, key_id: &str) -> Result<Durability, RegistryError> {
        let mut known = self.known.lock().await;
        let key = known.key(key_id)?;
        known.put_in_force(&self.access, vec![KeyRow { secrets: Vec::new(), ..key }]);
        Ok(self.store(&mut known, PendingRevocation::Key(key_id.to_owned())).await)
    }

    /// Puts all keys in force as they are in the store, where they were changed without the
    /// registry.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reload_keys(&self) -> Result<(), RegistryError> {
        let mut known = self.known.lock().await;
        let (_, keys) = self.store.directory().await?;
        known.put_in_force(&self.access, keys);
        Ok(())
    }

    /// Stores all pending revocations.
    pub async fn settle(&self) -> Durability {
        let mut known = self.known.lock().await;
        while let Some(owed) = known.owed.first().cloned() {
            if let Durability::Owed(why) = self.store(&mut known, owed).await {
                return Durability::Owed(why);
            }
            if known.owed.is_empty() {
                tracing::info!("all revocations of applications and keys are on the disk");
            }
        }
        Durability::Stored
    }

    /// Stores pending revocations repeatedly, until it is dropped.
    pub async fn settle_on(&self) {
        loop {
            self.clock.sleep_until(self.clock.now().plus(SETTLE_EVERY)).await;
            let _ = self.settle().await;
        }
    }

    /// Stores a row that is in force.
    async fn store(&self, known: &mut Known, owed: PendingRevocation) -> Durability {
        let put = async {
            match &owed {
                PendingRevocation::Application(id) => match known.applications.get(id) {
                    Some((row, _)) => self.store.put_application(row.clone()).await,
                    None => Ok(()),
                },
                PendingRevocation::Key(id) => match known.keys.get(id) {
                    Some(row) => self.store.put_key(row.clone()).await,
                    None => Ok(()),
                },
            }
        };
        let why = match self.clock.before(self.clock.now().plus(STORE_PATIENCE), put).await {
            Some(Ok(())) => {
                known.owed.remove(&owed);
                return Durability::Stored;
            }
            Some(Err(error)) => error.to_string(),
            None => format!("the store has not answered for {} s", STORE_PATIENCE.as_secs()),
        };
        if known.owed.insert(owed) {
            tracing::error!(why, "a revocation is in force, but not yet on the disk; retrying");
        }
        Durability::Owed(why)
    }

    fn check(&self, permissions: &[String]) -> Result<(), RegistryError> {
        let all = self.catalogue.permissions;
        let Some(unknown) = permissions.iter().find(|name| !all.iter().any(|known| known.name == **name)) else {
            return Ok(());
        };
        let names: Vec<_> = all.iter().map(|known| format!("`{}`", known.name)).collect();
        Err(registry_error(format!("there is no permission `{unknown}`; there are {}", names.join(", "))))
    }

    async fn add_secret(&self, known: &mut Known, mut key: KeyRow) -> Result<NewKey, RegistryError> {
        let key_id = key.id.clone();
        let secret = format!("{}{}", self.prefixes.secret, *Zeroizing::new(self.hex::<32>()?));
        key.secrets.insert(0, self.access.secret(&key.application, &key_id, &secret).map_err(registry_error)?);
        key.secrets.truncate(LIVE_SECRETS);
        if !known.applications.contains_key(&key.application) {
            return Err(unknown("application", &key.application));
        }
        self.store.put_key(key.clone()).await?;
        known.put_in_force(&self.access, vec![key]);
        Ok(NewKey { key_id, secret: Secret::new(secret) })
    }

    fn hex<const N: usize>(&self) -> Result<String, RegistryError> {
        self.random.bytes::<N>().map(|bytes| hex::encode(&bytes)).map_err(registry_error)
    }
}

impl Known {
    /// Finds a key by its id.
    fn key(&self, id: &str) -> Result<KeyRow, RegistryError> {
        self.keys.get(id).cloned().ok_or_else(|| unknown("key", id))
    }

    /// Puts these keys in force. A key without an application cannot call.
    fn put_in_force(&mut self, access: &Access, keys: Vec<KeyRow>) {
        access.change(|directory| {
            for key in &keys {
                if let Some((_, application)) = self.applications.get(&key.application) {
                    directory.put_key(&key.id, application, &key.secrets, key.expires_at);
                }
            }
        });
        self.keys.extend(keys.into_iter().map(|key| (key.id.clone(), key)));
    }
}

fn unknown(what: &str, named: &str) -> RegistryError {
    RegistryError(format!("there is no {what} `{named}`; the `list` command shows all"))
}

fn check_name(name: &str) -> Result<(), RegistryError> {
    if may_name_application(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(APPLICATION_NAME_MAX).collect();
    Err(RegistryError(format!(
        "an application cannot be named {shown:?}: a name has 1 to {APPLICATION_NAME_MAX} printable characters, no space at either end, \
         and does not begin with {}, the prefix of ids",
        names::ID_PREFIX
    )))
}

/// Returns true if a change of an application gives no authority.
fn takes_away(before: &ApplicationRow, after: &ApplicationRow) -> bool {
    let ApplicationRow { id: _, name, permissions, requests_per_minute, grants, created_at: _ } = after;
    permissions.iter().all(|held| before.permissions.contains(held))
        && *requests_per_minute <= before.requests_per_minute
        && grants.are_within(&before.grants)
        && *name == before.name
}

/// Makes the application that requests are checked against. A permission that is no longer in the
/// contract gives no rights.
fn application(row: &ApplicationRow, catalogue: &'static Catalogue, window: Arc<Window>) -> Arc<Application> {
    let ApplicationRow { id, name, permissions, requests_per_minute: _, grants, created_at: _ } = row;
    let granted = catalogue.permissions.iter().filter(|known| permissions.iter().any(|name| name == known.name));
    let granted = granted.fold(PermissionSet::default(), |set, permission| set.and(permission.grants));
    Arc::new(Application::new(id, name, granted, grants.clone(), window))
}

/// Returns the stored permissions that the contract does not have, as texts for the operator. They
/// grant nothing.
#[must_use]
pub fn unknown_permissions(applications: &[ApplicationRow], catalogue: &Catalogue) -> Vec<String> {
    let known = |name: &String| catalogue.permissions.iter().any(|known| known.name == name);
    let rows = applications.iter().flat_map(|row| row.permissions.iter().map(move |name| (&row.id, name)));
    let unknown = rows.filter(|(_, name)| !known(name));
    unknown
        .map(|(id, name)| format!("{id} has the permission `{}`, which does not exist", Remark::clean(name).as_str()))
        .collect()
}

/// Checks that every secret of a key can be opened. It does not return them.
///
/// # Errors
/// A secret was sealed with another master key, or is damaged.
pub fn open_secrets(keyring: &KeyRing, key: &KeyRow) -> Result<(), BrokenSeal> {
    key.secrets
        .iter()
        .try_for_each(|secret| keyring.open(&purpose(&key.application, &key.id), &secret.sealed).map(drop))
}

fn registry_error(error: impl fmt::Display) -> RegistryError {
    RegistryError(error.to_string())
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(why) => {
                registry_error(format!("nothing has changed, because it cannot be stored: {why}"))
            }
            other => registry_error(other),
        }
    }
}
