//! Applications and keys of the store in memory.

use super::Tables;
use toolwarrant_core::act::Act;
use toolwarrant_core::store::{ApplicationRow, DirectoryChanges, KeyRow, StoreError};

impl Tables {
    /// Puts an application. Returns the ids of the changed rows.
    pub(super) fn put_application(
        &mut self,
        application: ApplicationRow,
        acts: Vec<Act>,
    ) -> Result<Vec<String>, StoreError> {
        let ApplicationRow { id, name, deleted_at, .. } = &application;
        let is_other = |row: &ApplicationRow| row.name == *name && row.id != *id && row.deleted_at.is_none();
        if deleted_at.is_none() && self.applications.iter().any(is_other) {
            return Err(StoreError::Conflict(format!("an application is named `{name}` already")));
        }
        let mut changed = vec![id.clone()];
        if deleted_at.is_some() {
            for key in self.keys.values_mut().filter(|key| key.application == *id) {
                key.secrets.clear();
                key.labels.clear();
                changed.push(key.id.clone());
            }
        }
        match self.applications.iter_mut().find(|row| row.id == *id) {
            Some(row) => *row = application,
            None => self.applications.push(application),
        }
        self.put_acts(acts);
        Ok(changed)
    }

    /// Puts a key. Returns its id.
    pub(super) fn put_key(&mut self, key: KeyRow, acts: Vec<Act>) -> Result<Vec<String>, StoreError> {
        let id = key.id.clone();
        if key.secrets.len() > 2 {
            return Err(StoreError::Conflict(format!("the key {id} has more than two secrets")));
        }
        if !self.applications.iter().any(|row| row.id == key.application) {
            return Err(StoreError::Conflict(format!("the key {id} does not belong to an application")));
        }
        self.keys.insert(id.clone(), key);
        self.put_acts(acts);
        Ok(vec![id])
    }

    pub(super) fn changes(&self, after: u64) -> DirectoryChanges {
        let is_changed = |id: &str| self.changed.get(id).is_some_and(|version| *version > after);
        DirectoryChanges {
            version: self.directory,
            applications: self.applications.iter().filter(|row| is_changed(&row.id)).cloned().collect(),
            keys: self.keys.values().filter(|row| is_changed(&row.id)).cloned().collect(),
        }
    }
}
