//! What is asked of a store by all who ask one, and what the directory of applications and keys asks of it.
//!
//! Every method of a store is one transaction: it has happened when it answers, or it has not happened. A store never sees a
//! secret: it keeps verifiers and sealed bytes.

use crate::BoxFuture;
use crate::access::Grants;
use crate::clock::Timestamp;
use std::fmt::Debug;

/// The answer of a store.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why a store did not do what was asked. The text is for the operator and the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// What is kept already stands against it: a name that is taken, an entry that was made before. The caller can ask differently.
    #[error("{0}")]
    Conflict(String),
    /// Nothing can be read or written at present: no space, no permission, a lock. The caller can ask again.
    #[error("{0}")]
    Unavailable(String),
    /// What is kept cannot be understood. An operator has to look.
    #[error("{0}")]
    Corrupt(String),
}

/// Keeps applications and their keys.
pub trait DirectoryStore: Debug + Send + Sync + 'static {
    /// All applications, in the order in which they were made, and all keys.
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)>;

    /// Writes an application down: a new one, or what it is from now on. Another one of that name is a conflict.
    fn put_application(&self, application: ApplicationRow) -> Stored<'_, ()>;

    /// Writes a key down: a new one, or what it is from now on. It is a conflict if there is no such application.
    fn put_key(&self, key: KeyRow) -> Stored<'_, ()>;
}

/// An application as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationRow {
    /// Names it in audit and storage.
    pub id: String,
    /// Its name for people; no other has the same.
    pub name: String,
    /// The permissions that it was given, by name.
    pub permissions: Vec<String>,
    /// Its request budget in any 60 seconds.
    pub requests_per_minute: u32,
    /// The targets that it sees.
    pub grants: Grants,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A key as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Names it; not secret.
    pub id: String,
    /// The application whose key it is.
    pub application: String,
    /// Its live secrets, the latest first, at most two; none once it is revoked.
    pub secrets: Vec<SecretRow>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused; `None` for never.
    pub expires_at: Option<Timestamp>,
}

/// A secret as it is kept: what proves it, and itself under a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRow {
    /// Its verifier: a MAC under the pepper.
    pub verifier: [u8; 32],
    /// The secret, sealed for this key and application.
    pub sealed: Vec<u8>,
}
