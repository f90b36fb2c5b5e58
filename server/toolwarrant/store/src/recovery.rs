//! Operations on a whole store: a copy for a backup, and the keys that are off after a restore.

use std::path::PathBuf;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::Act;
use toolwarrant_core::store::{StoreError, Stored};

/// A store that can be copied whole, and may come from a copy.
pub trait Recovery: Send + Sync + 'static {
    /// Writes a copy as of one moment to a file that is empty or missing. The copy does not delay
    /// other calls and is not synced.
    fn copy_to(&self, path: PathBuf) -> Stored<'_, ()> {
        Box::pin(async move {
            Err(StoreError::Unavailable(format!("this store has no file that {} could be copied from", path.display())))
        })
    }

    /// Returns the time at which the store was restored from a backup, if it was. The server must
    /// refuse requests that were signed before that time, because the nonces that were used between
    /// the backup and the restore are not known.
    fn restored_at(&self) -> Option<Timestamp> {
        None
    }

    /// Returns the ids of the keys that have been off since the store was restored, in order. Their
    /// rows have no secrets, like those of revoked keys.
    fn keys_to_confirm(&self) -> Stored<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Restores the secrets that these keys had in the backup, and stores the acts: for all of
    /// them, or for none. Conflicts if one of them is not off.
    fn confirm_keys(&self, keys: Vec<String>, acts: Vec<Act>) -> Stored<'_, ()> {
        drop(acts);
        let first = keys.into_iter().next();
        let off = first.map_or(Ok(()), |key| Err(not_off(&key)));
        Box::pin(async { off })
    }
}

/// Returns the refusal to confirm a key.
#[must_use]
pub fn not_off(key: &str) -> StoreError {
    StoreError::Conflict(format!("the key `{key}` does not wait for confirmation; `key list` shows the keys that do"))
}
