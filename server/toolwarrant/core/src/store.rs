//! The port to storage: the errors of every store, and the store of the registry.
//!
//! Every method of a store is one transaction: it is durable when it returns, or it did not happen.
//! A store holds verifiers and sealed bytes, never a secret. Start at [`DirectoryStore`].

use crate::act::{Act, ActFilter, StoredAct};
pub use crate::limit::RequestCount;
pub use crate::rows::{ApplicationRow, KeyRow, Labels};
use std::fmt::Debug;
use toolwarrant_audit::Anchor;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
pub use toolwarrant_base::keyring::{SecretRow, SecretUse};

pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The reason why a store failed. The text is for the operator and the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Stored data contradicts the request: a name is taken, an entry exists. Nothing was written.
    #[error("{0}")]
    Conflict(String),
    /// The store cannot read or write now: no space, no permission, a lock. Retry later.
    #[error("{0}")]
    Unavailable(String),
    /// It may have done what was asked, or do it later. Find out before a repeat.
    #[error("{0}")]
    Unanswered(String),
    /// Stored data cannot be read. An operator has to look.
    #[error("{0}")]
    Corrupt(String),
}

pub trait DirectoryStore: Debug + Send + Sync + 'static {
    /// Returns the oldest application first.
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)>;

    /// Creates or replaces an application, with its acts. Ends all keys of a deleted one. Conflicts
    /// if another one has that name, unless this one is deleted.
    fn put_application(&self, application: ApplicationRow, acts: Vec<Act>) -> Stored<'_, ()>;

    /// Creates an application with its first key. Conflicts as [`Self::put_application`].
    fn put_application_with_key(&self, application: ApplicationRow, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()>;

    fn latest_time(&self) -> Stored<'_, Option<Timestamp>>;

    /// Records the time, so that the next start does not go back behind it.
    fn see(&self, now: Timestamp) -> Stored<'_, ()>;

    /// Creates or replaces a key, with its acts. Conflicts if its application does not exist, or if
    /// it has more than two secrets.
    fn put_key(&self, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()>;

    /// Records last uses. One that is earlier than the recorded one changes nothing.
    fn put_uses(&self, uses: Vec<SecretUse>) -> Stored<'_, ()>;

    /// Returns the last uses, also of secrets that have ended. `None` stands for all keys.
    fn uses(&self, keys: Option<Vec<String>>) -> Stored<'_, Vec<SecretUse>>;

    /// Replaces the numbers of these seconds, and forgets the seconds before `since`.
    fn put_requests(&self, requests: Vec<RequestCount>, since: u64) -> Stored<'_, ()>;

    fn requests(&self) -> Stored<'_, Vec<RequestCount>>;

    fn put_acts(&self, acts: Vec<Act>) -> Stored<'_, ()>;

    /// Returns acts, the newest first.
    fn acts(&self, filter: ActFilter) -> Stored<'_, Vec<StoredAct>>;

    /// Returns the acts above this number whose lines belong into the audit trail of this process,
    /// the oldest first.
    fn acts_of_trail(&self, after: u64, limit: u32) -> Stored<'_, Vec<StoredAct>>;
}

/// The store of an anchor, which shows if a part of the audit trail is missing.
pub trait AuditStore: Debug + Send + Sync + 'static {
    /// Returns `None` if no trail was ever started.
    fn audit_anchor(&self) -> Stored<'_, Option<Anchor>>;

    fn put_audit_anchor(&self, anchor: Anchor) -> Stored<'_, ()>;
}
