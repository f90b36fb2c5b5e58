//! The small files of a service, in its store.
//!
//! A service reads its files while it is made, and writes them later. Only the process that leads
//! writes. Start at [`ServiceFiles`].

use crate::store::{StoreError, Stored};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Stores files.
pub trait FileStore: Debug + Send + Sync + 'static {
    /// Returns the content of each file, by name.
    fn files(&self) -> Stored<'_, HashMap<String, Vec<u8>>>;

    /// Replaces files: all of them or, after an error, none. Refuses while another process leads.
    fn put_files(&self, files: Vec<(String, Vec<u8>)>) -> Stored<'_, ()>;
}

/// The small files of a service.
#[derive(Clone, Debug)]
pub struct ServiceFiles {
    /// Stores them.
    pub store: Arc<dyn FileStore>,
    /// Their names and contents at the start of this process.
    pub found: Arc<HashMap<String, Vec<u8>>>,
}

impl ServiceFiles {
    /// Reads the files in a store.
    pub async fn open(store: Arc<dyn FileStore>) -> Result<Self, StoreError> {
        let found = Arc::new(store.files().await?);
        Ok(Self { store, found })
    }
}
