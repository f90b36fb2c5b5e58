//! The registry of applications and keys. Every change is durable before it takes effect.
//!
//! A store keeps them; [`Access`] checks requests against them. Start at [`Registry`].

mod reload;

use super::access::{Access, Application, Grants, LIVE_SECRETS, purpose};
use super::catalogue::{Catalogue, PermissionSet};
use super::limit::Window;
use super::text::Secret;
use crate::clock::{Clock, Timestamp};
use crate::hex;
use crate::keyring::{BrokenSeal, KeyRing};
use crate::random::Random;
use crate::store::{ApplicationRow, DirectoryStore, KeyRow, StoreError};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Applications and keys. When a method returns, its change is stored and in force.
pub struct Registry {
    access: Arc<Access>,
    prefixes: KeyPrefixes,
    catalogue: &'static Catalogue,
    store: Arc<dyn DirectoryStore>,
    clock: Clock,
    random: Random,
    /// What is stored. The lock is held while a change is written, so changes happen one after the other.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    applications: HashMap<String, (ApplicationRow, Arc<Application>)>,
    keys: HashMap<String, KeyRow>,
}

/// An application to create.
#[derive(Clone, Debug)]
pub struct NewApplication {
    /// Its name for people; unique.
    pub name: String,
    /// Its permissions, by name. What they imply is granted, too.
    pub permissions: Vec<String>,
    /// The targets that it may see.
    pub grants: Grants,
    /// Its request budget in any 60 seconds.
    pub requests_per_minute: u32,
}

/// Prefixes of key ids and secrets, by which people and scanners recognise them.
#[derive(Clone, Copy, Debug)]
pub struct KeyPrefixes {
    /// The prefix of ids.
    pub id: &'static str,
    /// The prefix of secrets.
    pub secret: &'static str,
}

/// A key with a fresh secret. This is the only time that the secret is shown.
#[derive(Debug)]
pub struct NewKey {
    /// A prefix and 16 hexadecimal digits.
    pub key_id: String,
    /// A prefix and 64 hexadecimal digits: 256 random bits.
    pub secret: Secret<String>,
}

/// The longest name of an application, in characters.
const NAME_MAX: usize = 64;

/// Why the registry refused a change.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RegistryError {
    /// The application or key does not exist.
    #[error("there is no {0}; a list shows which there are")]
    Unknown(String),
    /// The key is revoked. That is final.
    #[error("the key `{0}` is revoked; make another for its application")]
    Revoked(String),
    /// The contract has no such permission.
    #[error("there is no permission `{0}`; there are {1}")]
    UnknownPermission(String, String),
    /// An application cannot be named so.
    #[error(
        "an application cannot be named {0:?}: a name has 1 to {max} letters, digits, spaces or any of -_.@, and does not begin with app_",
        max = NAME_MAX
    )]
    BadName(String),
    /// The store refused the change or failed, or the system has no randomness.
    #[error("{0}")]
    Broken(String),
}

impl Registry {
    /// Loads all applications and keys.
    ///
    /// # Errors
    /// The store cannot be read, or the master key in `keyring` is not the one that the data was made with.
    pub async fn open(
        store: Arc<dyn DirectoryStore>,
        catalogue: &'static Catalogue,
        prefixes: KeyPrefixes,
        keyring: KeyRing,
        clock: Clock,
        random: Random,
    ) -> Result<Self, StoreError> {
        let (applications, keys) = store.directory().await?;
        // One key shows whether the master key fits.
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
        access.change(|directory| {
            for key in &keys {
                if let Some((_, application)) = known.applications.get(&key.application) {
                    directory.put_key(&key.id, application, &key.secrets, key.expires_at);
                }
            }
        });
        known.keys = keys.into_iter().map(|key| (key.id.clone(), key)).collect();
        Ok(Self { access, prefixes, catalogue, store, clock, random, known: Mutex::new(known) })
    }

    /// Returns the directory that requests are checked against.
    #[must_use]
    pub fn access(&self) -> Arc<Access> {
        Arc::clone(&self.access)
    }

    /// Returns whether there is no application.
    pub async fn is_empty(&self) -> bool {
        self.known.lock().await.applications.is_empty()
    }

    /// Creates an application without keys and returns its id.
    ///
    /// # Errors
    /// [`RegistryError::UnknownPermission`]; [`RegistryError::Broken`], also if the name is taken.
    pub async fn create(&self, new: NewApplication) -> Result<String, RegistryError> {
        let NewApplication { name, permissions, grants, requests_per_minute } = new;
        self.check(&permissions)?;
        let fits = |c: char| c.is_alphanumeric() || " -_.@".contains(c);
        if name.is_empty() || name.chars().count() > NAME_MAX || !name.chars().all(fits) || name.starts_with("app_") {
            return Err(RegistryError::BadName(name.chars().take(NAME_MAX).collect()));
        }
        let row = ApplicationRow {
            id: format!("app_{}", self.hex::<8>()?),
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

    /// Finds an application by its name or id.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`].
    pub async fn find(&self, application: &str) -> Result<ApplicationRow, RegistryError> {
        let known = self.known.lock().await;
        let is = |row: &&ApplicationRow| row.id == application || row.name == application;
        let found = known.applications.values().map(|(row, _)| row).find(is);
        found.cloned().ok_or_else(|| RegistryError::Unknown(format!("application `{application}`")))
    }

    /// Changes an application, for all its keys at once. Its request budget goes on.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`], [`RegistryError::UnknownPermission`] or [`RegistryError::Broken`].
    pub async fn change(
        &self,
        id: &str,
        edit: impl FnOnce(&mut ApplicationRow),
    ) -> Result<ApplicationRow, RegistryError> {
        let mut known = self.known.lock().await;
        let (row, before) =
            known.applications.get(id).cloned().ok_or_else(|| RegistryError::Unknown(format!("application `{id}`")))?;
        let mut row = row;
        edit(&mut row);
        self.check(&row.permissions)?;
        self.store.put_application(row.clone()).await?;
        let application = application(&row, self.catalogue, Arc::clone(&before.window));
        self.access.change(|directory| directory.put_application(&application));
        known.applications.insert(row.id.clone(), (row.clone(), application));
        Ok(row)
    }

    /// Creates a key for an application.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] or [`RegistryError::Broken`].
    pub async fn issue_key(&self, application: &str, expires_at: Option<Timestamp>) -> Result<NewKey, RegistryError> {
        let id = format!("{}{}", self.prefixes.id, self.hex::<8>()?);
        let mut known = self.known.lock().await;
        let (application, created_at) = (application.to_owned(), self.clock.now());
        self.add_secret(&mut known, KeyRow { id, application, secrets: Vec::new(), created_at, expires_at }).await
    }

    /// Adds a secret to a key. The latest one before it stays valid, older ones end.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`], [`RegistryError::Revoked`] or [`RegistryError::Broken`].
    pub async fn rotate_key(&self, key_id: &str) -> Result<NewKey, RegistryError> {
        let mut known = self.known.lock().await;
        let key = known.keys.get(key_id).cloned().ok_or_else(|| RegistryError::Unknown(format!("key `{key_id}`")))?;
        if key.secrets.is_empty() {
            return Err(RegistryError::Revoked(key.id));
        }
        self.add_secret(&mut known, key).await
    }

    /// Revokes a key with all its secrets, at once.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] or [`RegistryError::Broken`].
    pub async fn revoke_key(&self, key_id: &str) -> Result<(), RegistryError> {
        let mut known = self.known.lock().await;
        let key = known.keys.get(key_id).cloned().ok_or_else(|| RegistryError::Unknown(format!("key `{key_id}`")))?;
        self.put_key(&mut known, KeyRow { secrets: Vec::new(), ..key }).await
    }

    fn check(&self, permissions: &[String]) -> Result<(), RegistryError> {
        let all = self.catalogue.permissions;
        let Some(unknown) = permissions.iter().find(|name| !all.iter().any(|known| known.name == **name)) else {
            return Ok(());
        };
        let names: Vec<_> = all.iter().map(|known| format!("`{}`", known.name)).collect();
        Err(RegistryError::UnknownPermission(unknown.clone(), names.join(", ")))
    }

    async fn add_secret(&self, known: &mut Known, mut key: KeyRow) -> Result<NewKey, RegistryError> {
        let key_id = key.id.clone();
        let secret = format!("{}{}", self.prefixes.secret, self.hex::<32>()?);
        key.secrets.insert(0, self.access.secret(&key.application, &key_id, &secret).map_err(broken)?);
        key.secrets.truncate(LIVE_SECRETS);
        self.put_key(known, key).await?;
        Ok(NewKey { key_id, secret: Secret::new(secret) })
    }

    async fn put_key(&self, known: &mut Known, key: KeyRow) -> Result<(), RegistryError> {
        let (_, application) = known
            .applications
            .get(&key.application)
            .ok_or_else(|| RegistryError::Unknown(format!("application `{}`", key.application)))?;
        self.store.put_key(key.clone()).await?;
        self.access.change(|directory| directory.put_key(&key.id, application, &key.secrets, key.expires_at));
        known.keys.insert(key.id.clone(), key);
        Ok(())
    }

    fn hex<const N: usize>(&self) -> Result<String, RegistryError> {
        self.random.bytes::<N>().map(|bytes| hex::encode(&bytes)).map_err(broken)
    }
}

/// The application that requests are checked against. A permission that left the contract grants nothing.
fn application(row: &ApplicationRow, catalogue: &'static Catalogue, window: Arc<Window>) -> Arc<Application> {
    let ApplicationRow { id, name, permissions, requests_per_minute: _, grants, created_at: _ } = row;
    let granted = catalogue.permissions.iter().filter(|known| permissions.iter().any(|name| name == known.name));
    let granted = granted.fold(PermissionSet::default(), |set, permission| set.and(permission.grants));
    Arc::new(Application::new(id, name, granted, grants.clone(), window))
}

/// Checks that every secret of a key can be opened, and reveals none.
///
/// # Errors
/// A secret was sealed with another master key, or is damaged.
pub fn open_secrets(keyring: &KeyRing, key: &KeyRow) -> Result<(), BrokenSeal> {
    key.secrets
        .iter()
        .try_for_each(|secret| keyring.open(&purpose(&key.application, &key.id), &secret.sealed).map(drop))
}

fn broken(error: impl fmt::Display) -> RegistryError {
    RegistryError::Broken(error.to_string())
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        broken(error)
    }
}
