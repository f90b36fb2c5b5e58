//! The state of platforms that replicas share: small documents, which each replica follows.
//!
//! One statement a second reads all documents that a process follows. A document changes by a put
//! that fails if another replica has changed it meanwhile. Large values are not followed: a small
//! document says that they have changed. Start at [`SharedPlatforms::follow`].

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use toolwarrant::base::ignore_poison;
use toolwarrant::sharing::{Document, Sharing, StoreError, Stored};
use toolwarrant::{Clock, Timestamp};

/// The name space of documents that are followed.
const SPACE: &str = "platform";

/// The time between two readings.
pub const FOLLOWED_EVERY: Duration = Duration::from_secs(1);

/// The longest time for a statement. The list of a large account takes some of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The documents that this process follows.
#[derive(Debug)]
pub struct SharedPlatforms {
    /// The store and the membership of this replica.
    pub sharing: Sharing,
    clock: Clock,
    followed: Mutex<BTreeMap<String, watch::Sender<KnownDocument>>>,
}

/// A document as this replica knows it.
#[derive(Clone, Debug, Default)]
pub struct KnownDocument {
    /// The number of its changes; 0 if it does not exist.
    pub version: u64,
    /// A time before which this version did not exist; `None` if the first reading found it.
    pub since: Option<Timestamp>,
    body: Arc<[u8]>,
    /// The time before the latest reading; `None` if it was never read.
    checked_at: Option<Timestamp>,
}

/// A document that this process follows.
#[derive(Clone, Debug)]
pub struct FollowedDocument {
    all: Arc<SharedPlatforms>,
    key: String,
    known: watch::Receiver<KnownDocument>,
}

impl SharedPlatforms {
    /// Shares the state of platforms. Does not read yet.
    #[must_use]
    pub fn new(sharing: Sharing, clock: Clock) -> Arc<Self> {
        Arc::new(Self { sharing, clock, followed: Mutex::default() })
    }

    /// Follows the document with this key.
    #[must_use]
    pub fn follow(self: &Arc<Self>, key: String) -> FollowedDocument {
        let known = ignore_poison(self.followed.lock()).entry(key.clone()).or_default().subscribe();
        FollowedDocument { all: Arc::clone(self), key, known }
    }

    /// Reads all followed documents each second, for as long as it is polled.
    pub async fn run(&self) {
        loop {
            let next = self.clock.now().plus(FOLLOWED_EVERY);
            if let Err(error) = self.read().await {
                tracing::debug!(%error, "the shared state of platforms could not be read");
            }
            self.clock.sleep_until(next).await;
        }
    }

    async fn read(&self) -> Result<(), StoreError> {
        let keys: Vec<_> = ignore_poison(self.followed.lock()).keys().cloned().collect();
        let sent = self.clock.now();
        let found = within_patience(self.sharing.documents.documents(SPACE, keys.clone())).await?;
        let mut found: BTreeMap<_, _> = found.into_iter().map(|document| (document.key.clone(), document)).collect();
        for key in keys {
            let missing = |key| Document { key, version: 0, body: Vec::new() };
            self.learn(found.remove(&key).unwrap_or_else(|| missing(key)), sent);
        }
        Ok(())
    }

    /// Learns of a version that was current at `sent` or later.
    fn learn(&self, Document { key, version, body }: Document, sent: Timestamp) {
        let followed = ignore_poison(self.followed.lock());
        let Some(known) = followed.get(&key) else { return };
        known.send_if_modified(|known| {
            let is_news = known.checked_at.is_none() || version > known.version;
            if is_news {
                *known = KnownDocument { version, since: known.checked_at, body: body.into(), checked_at: Some(sent) };
            } else if version == known.version {
                known.checked_at = known.checked_at.max(Some(sent));
            }
            is_news
        });
    }
}

impl KnownDocument {
    /// Returns true if the store was read since the start of this process.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.checked_at.is_some()
    }

    /// Returns the content; the default if there is no document, or if another version of the
    /// program wrote it in a form that this one does not know.
    #[must_use]
    pub fn value<T: DeserializeOwned + Default>(&self) -> T {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl FollowedDocument {
    /// Returns what is known of it, and lets [`Self::wait_for_change`] wait for other versions.
    pub fn take(&mut self) -> KnownDocument {
        self.known.borrow_and_update().clone()
    }

    /// Returns what is known of it.
    #[must_use]
    pub fn latest(&self) -> KnownDocument {
        self.known.borrow().clone()
    }

    /// Reads it from the store.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn look(&self) -> Result<KnownDocument, StoreError> {
        self.all.read().await?;
        Ok(self.latest())
    }

    /// Changes it if `version` is still stored. Returns true if it was changed.
    ///
    /// # Errors
    /// The store does not answer. It is unknown if the document was changed.
    pub async fn put(&self, version: u64, value: &impl Serialize) -> Result<bool, StoreError> {
        let body = serde_json::to_vec(value).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let sent = self.all.clock.now();
        let document = Document { key: self.key.clone(), version, body };
        let put = self.all.sharing.documents.put_documents(SPACE, vec![document.clone()]);
        let is_put = within_patience(put).await? == [true];
        if is_put {
            self.all.learn(Document { version: version + 1, ..document }, sent);
        }
        Ok(is_put)
    }

    /// Changes the content by `change` until no other replica has changed it meanwhile. `None`
    /// from `change` leaves it as it is.
    ///
    /// # Errors
    /// The store does not answer. It is unknown if the document was changed.
    pub async fn update<T: DeserializeOwned + Default + Serialize>(
        &self,
        mut change: impl FnMut(T) -> Option<T>,
    ) -> Result<(), StoreError> {
        loop {
            let known = self.look().await?;
            match change(known.value()) {
                Some(value) if !self.put(known.version, &value).await? => {}
                _ => return Ok(()),
            }
        }
    }

    /// Waits for a version that [`Self::take`] has not returned.
    pub async fn wait_for_change(&mut self) {
        if self.known.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Waits for a statement.
///
/// # Errors
/// The store does not answer in time, or refuses.
pub(super) async fn within_patience<T>(statement: Stored<'_, T>) -> Result<T, StoreError> {
    let late = |_| StoreError::Unavailable("the store does not answer".to_owned());
    timeout(PATIENCE, statement).await.unwrap_or_else(|error| Err(late(error)))
}

#[cfg(test)]
pub(super) mod tests;
