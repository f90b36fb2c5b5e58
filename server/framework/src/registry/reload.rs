//! Keys that were changed in the store by other means than the registry's.

use super::{Registry, RegistryError};

impl Registry {
    /// Puts all keys in force as the store has them.
    ///
    /// # Errors
    /// [`RegistryError::Broken`].
    pub async fn reload_keys(&self) -> Result<(), RegistryError> {
        let mut known = self.known.lock().await;
        let (_, keys) = self.store.directory().await?;
        for key in keys {
            if let Some((_, application)) = known.applications.get(&key.application) {
                self.access.change(|directory| directory.put_key(&key.id, application, &key.secrets, key.expires_at));
            }
            known.keys.insert(key.id.clone(), key);
        }
        Ok(())
    }
}
