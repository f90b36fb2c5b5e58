//! Operations on a whole store: a copy for a backup, and the keys that are off after a restore.

use std::path::PathBuf;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::Act;
use toolwarrant_core::store::{StoreError, Stored};

pub trait Recovery: Send + Sync + 'static {
    /// Copies one moment to a file that is empty or missing, without delaying other calls and
    /// without a sync.
    fn copy_to(&self, path: PathBuf) -> Stored<'_, ()> {
        Box::pin(async move {
            Err(StoreError::Unavailable(format!("this store has no file that {} could be copied from", path.display())))
        })
    }

    /// Returns when the store was restored from a backup. Requests that were signed before must be
    /// refused, because nonces between backup and restore are not known.
    fn restored_at(&self) -> Option<Timestamp> {
        None
    }

    /// Returns the keys that are off since the restore, in order. Their rows have no secrets.
    fn keys_to_confirm(&self) -> Stored<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Restores the secrets of all these keys, with the acts, or of none. Conflicts if one is not
    /// off.
    fn confirm_keys(&self, keys: Vec<String>, acts: Vec<Act>) -> Stored<'_, ()> {
        drop(acts);
        let first = keys.into_iter().next();
        let off = first.map_or(Ok(()), |key| Err(not_off(&key)));
        Box::pin(async { off })
    }
}

#[must_use]
pub fn not_off(key: &str) -> StoreError {
    StoreError::Conflict(format!("the key `{key}` does not wait for confirmation; `key list` shows the keys that do"))
}
