//! The port to storage: the errors of every store, and the store of the registry of applications
//! and keys.
//!
//! Every method of a store is one transaction. It is durable when the method returns, or it did not
//! happen. A store never sees a secret: it holds verifiers and sealed bytes.

use crate::access::Grants;
use std::fmt::Debug;
use toolwarrant_audit::Anchor;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
pub use toolwarrant_base::keyring::SecretRow;

/// The future that a store's method returns.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The reason why a store failed. The text is for the operator and the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Stored data contradicts the request: a name is taken, an entry exists. Nothing was written.
    /// Change the request.
    #[error("{0}")]
    Conflict(String),
    /// The store cannot read or write now: no space, no permission, a lock. Retry later.
    #[error("{0}")]
    Unavailable(String),
    /// Stored data cannot be read. An operator has to look.
    #[error("{0}")]
    Corrupt(String),
}

/// Stores applications and their keys.
pub trait DirectoryStore: Debug + Send + Sync + 'static {
    /// Returns all applications, the oldest first, and all keys.
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)>;

    /// Creates or replaces an application. Fails with a conflict if another one has that name.
    fn put_application(&self, application: ApplicationRow) -> Stored<'_, ()>;

    /// Returns the latest time that [`Self::see`] recorded; `None` before the first one.
    fn latest_time(&self) -> Stored<'_, Option<Timestamp>>;

    /// Records the time, so that the next start does not go back behind it.
    fn see(&self, now: Timestamp) -> Stored<'_, ()>;

    /// Creates or replaces a key. Fails with a conflict if its application does not exist, or if it
    /// has more than two secrets.
    fn put_key(&self, key: KeyRow) -> Stored<'_, ()>;
}

/// Records an anchor of the audit trail, which shows if a part of the trail is missing.
pub trait AuditStore: Debug + Send + Sync + 'static {
    /// Returns the record; `None` if no trail was ever started.
    fn audit_anchor(&self) -> Stored<'_, Option<Anchor>>;

    /// Replaces the record.
    fn put_audit_anchor(&self, anchor: Anchor) -> Stored<'_, ()>;
}

/// A stored application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationRow {
    /// Its id in the audit and in storage.
    pub id: String,
    /// Its name for people; unique.
    pub name: String,
    /// The permissions that it was granted, by name.
    pub permissions: Vec<String>,
    /// Its request budget in any 60 seconds.
    pub requests_per_minute: u32,
    /// The targets that it sees.
    pub grants: Grants,
    /// The time of its creation.
    pub created_at: Timestamp,
}

/// A stored key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Its id; not secret.
    pub id: String,
    /// The id of its application.
    pub application: String,
    /// Its live secrets, the latest first, at most two. A revoked key has none.
    pub secrets: Vec<SecretRow>,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time when it expires; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
}
