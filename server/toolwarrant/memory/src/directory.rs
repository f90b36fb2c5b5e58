//! Applications and keys of the store in memory.

use super::Tables;
use toolwarrant_core::act::Act;
use toolwarrant_core::store::{ApplicationRow, KeyRow, StoreError};

impl Tables {
    pub(super) fn put_application(&mut self, application: ApplicationRow, acts: Vec<Act>) -> Result<(), StoreError> {
        let ApplicationRow { id, name, deleted_at, .. } = &application;
        let is_other = |row: &ApplicationRow| row.name == *name && row.id != *id && row.deleted_at.is_none();
        if deleted_at.is_none() && self.applications.iter().any(is_other) {
            return Err(StoreError::Conflict(format!("an application is named `{name}` already")));
        }
        if deleted_at.is_some() {
            for key in self.keys.values_mut().filter(|key| key.application == *id) {
                key.secrets.clear();
                key.labels.clear();
            }
        }
        match self.applications.iter_mut().find(|row| row.id == *id) {
            Some(row) => *row = application,
            None => self.applications.push(application),
        }
        self.put_acts(acts);
        Ok(())
    }

    pub(super) fn put_key(&mut self, key: KeyRow, acts: Vec<Act>) -> Result<(), StoreError> {
        let id = key.id.clone();
        if key.secrets.len() > 2 {
            return Err(StoreError::Conflict(format!("the key {id} has more than two secrets")));
        }
        if !self.applications.iter().any(|row| row.id == key.application) {
            return Err(StoreError::Conflict(format!("the key {id} does not belong to an application")));
        }
        self.keys.insert(id, key);
        self.put_acts(acts);
        Ok(())
    }
}
