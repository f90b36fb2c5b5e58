//! The port to storage: the errors of every store, and the store of the registry of applications
//! and keys.
//!
//! Every method of a store is one transaction. It is durable when the method returns, or it did not
//! happen. A store never sees a secret: it holds verifiers and sealed bytes.

use crate::act::{Act, ActFilter, StoredAct};
pub use crate::limit::RequestCount;
pub use crate::rows::{ApplicationRow, KeyRow, Labels};
use std::fmt::Debug;
use toolwarrant_audit::Anchor;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
pub use toolwarrant_base::keyring::{SecretRow, SecretUse};

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
    /// The store has not answered. It may have done what was asked, or do it later. Find out before
    /// the request is repeated.
    #[error("{0}")]
    Unanswered(String),
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

    /// Returns the recorded last use of each secret of these keys, also of secrets that have ended.
    /// `None` stands for all keys.
    fn uses(&self, keys: Option<Vec<String>>) -> Stored<'_, Vec<SecretUse>>;

    /// Replaces the numbers of requests of these seconds, and forgets the seconds before `since`.
    fn put_requests(&self, requests: Vec<RequestCount>, since: u64) -> Stored<'_, ()>;

    /// Returns the numbers of requests, in the order of the seconds.
    fn requests(&self) -> Stored<'_, Vec<RequestCount>>;

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
