//! The place of a device registry in a store that replicas share: one document for each platform.
//! A put succeeds only over the version that this process knows.

use crate::adapter_kit::shared::{SharedPlatforms, within_patience};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use toolwarrant::sharing::{Document, StoreError};

/// The name space of device registries. Their keys are the names of the platforms.
const SPACE: &str = "registry";

/// A version that no document has: this process must read it first.
const UNREAD: u64 = u64::MAX;

/// The stored device registry of one platform.
#[derive(Debug)]
pub(super) struct SharedRegistry {
    shared: Arc<SharedPlatforms>,
    key: String,
    /// The version that the book of this process is based on. Changes while the book is locked.
    version: AtomicU64,
}

impl SharedRegistry {
    pub(super) fn new(shared: Arc<SharedPlatforms>, key: String) -> Self {
        Self { shared, key, version: AtomicU64::new(UNREAD) }
    }

    /// Returns the version that this process knows; `None` if it must be read.
    pub(super) fn version(&self) -> Option<u64> {
        Some(self.version.load(Relaxed)).filter(|version| *version != UNREAD)
    }

    /// Notes that the book of this process is based on that version.
    pub(super) fn learn(&self, version: u64) {
        self.version.store(version, Relaxed);
    }

    /// Reads the stored version. Returns `None` if nothing is stored yet.
    pub(super) async fn read(&self) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let documents = &self.shared.sharing.documents;
        let found = within_patience(documents.documents(SPACE, vec![self.key.clone()])).await?.pop();
        if found.is_none() {
            self.learn(0);
        }
        Ok(found.map(|Document { version, body, .. }| (version, body)))
    }

    /// Stores the next version. Returns false if that is not certain: then the stored version must
    /// be read.
    pub(super) async fn put(&self, body: Vec<u8>) -> bool {
        let version = self.version.swap(UNREAD, Relaxed);
        let document = Document { key: self.key.clone(), version, body };
        let put = within_patience(self.shared.sharing.documents.put_documents(SPACE, vec![document])).await;
        let is_put = put.is_ok_and(|put| put == [true]);
        if is_put {
            self.learn(version + 1);
        }
        is_put
    }
}
