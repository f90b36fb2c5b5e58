//! The port to storage: the errors of every store, and the store of the registry of applications
//! and keys.
//!
//! Every method of a store is one transaction. It is durable when the method returns, or it did not
//! happen. A store never sees a secret: it holds verifiers and sealed bytes.

use crate::access::Grants;
use crate::act::{Act, ActFilter, StoredAct};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::IpAddr;
use toolwarrant_audit::Anchor;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::keyring::Digest;
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

    /// Creates or replaces an application, and stores the acts that changed it. Ends all keys of a
    /// deleted one. Fails with a conflict if another one has that name, unless this one is deleted.
    fn put_application(&self, application: ApplicationRow, acts: Vec<Act>) -> Stored<'_, ()>;

    /// Returns the latest time that [`Self::see`] recorded; `None` before the first one.
    fn latest_time(&self) -> Stored<'_, Option<Timestamp>>;

    /// Records the time, so that the next start does not go back behind it.
    fn see(&self, now: Timestamp) -> Stored<'_, ()>;

    /// Creates or replaces a key, and stores the acts that changed it. Fails with a conflict if its
    /// application does not exist, or if it has more than two secrets.
    fn put_key(&self, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()>;

    /// Records the last uses of secrets. A use that is earlier than the recorded one changes
    /// nothing.
    fn put_uses(&self, uses: Vec<SecretUse>) -> Stored<'_, ()>;

    /// Returns the recorded last use of each secret, also of secrets that have ended.
    fn uses(&self) -> Stored<'_, Vec<SecretUse>>;

    /// Stores acts that change no application and no key.
    fn put_acts(&self, acts: Vec<Act>) -> Stored<'_, ()>;

    /// Returns acts, the newest first.
    fn acts(&self, filter: ActFilter) -> Stored<'_, Vec<StoredAct>>;

    /// Returns at most `limit` acts with numbers above `after` that have no line in the audit trail
    /// yet, the oldest first.
    fn acts_without_line(&self, after: u64, limit: u32) -> Stored<'_, Vec<StoredAct>>;

    /// Records that the acts with these numbers have their lines in the audit trail.
    fn put_lines_of_acts(&self, numbers: Vec<u64>) -> Stored<'_, ()>;
}

/// Records an anchor of the audit trail, which shows if a part of the trail is missing.
pub trait AuditStore: Debug + Send + Sync + 'static {
    /// Returns the record; `None` if no trail was ever started.
    fn audit_anchor(&self) -> Stored<'_, Option<Anchor>>;

    /// Replaces the record.
    fn put_audit_anchor(&self, anchor: Anchor) -> Stored<'_, ()>;
}

/// Short texts by name.
pub type Labels = BTreeMap<String, String>;

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
    /// Short texts by name, for people.
    pub labels: Labels,
    /// The time since which it may call nothing; `None` if it is not suspended.
    pub suspended_at: Option<Timestamp>,
    /// The time of its deletion. Its keys have then ended for good, and its name is free.
    pub deleted_at: Option<Timestamp>,
}

impl ApplicationRow {
    /// Deletes it: takes its permissions, grants and labels away.
    pub fn delete(&mut self, now: Timestamp) {
        (self.deleted_at, self.suspended_at) = (Some(now), None);
        (self.permissions, self.grants, self.labels) = (Vec::new(), Grants::nothing(), Labels::new());
    }
}

/// The last use of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretUse {
    /// The id of the key.
    pub key: String,
    /// The verifier of the secret.
    pub verifier: Digest,
    /// The time, to the minute.
    pub at: Timestamp,
    /// The address of the client, if it is recorded.
    pub from: Option<IpAddr>,
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
    /// Short texts by name, for people.
    pub labels: Labels,
    /// The time since which it may not be used; `None` if it is not suspended.
    pub suspended_at: Option<Timestamp>,
}
