//! Changes that are in force and not stored yet.
//!
//! A change that takes authority away applies at once, also on a full disk. Its row waits with its
//! acts, until the store takes both in one transaction.

use super::edits::{DirectoryRow, RowId};
use super::{Durability, Known, Registry};

impl Registry {
    pub async fn settle(&self) -> Durability {
        let mut known = self.known.lock().await;
        while let Some(row) = known.pending.keys().next().cloned() {
            if let Err(why) = self.store(&mut known, &row).await {
                return Durability::Owed(why);
            }
            if known.pending.is_empty() {
                tracing::info!("all revocations of applications and keys are on the disk");
            }
        }
        Durability::Stored
    }

    pub(super) async fn store(&self, known: &mut Known, id: &RowId) -> Result<(), String> {
        let (Some(row), Some(acts)) = (known.row(id), known.pending.get(id).cloned()) else { return Ok(()) };
        self.put(&row, acts).await.map_err(|error| error.to_string())?;
        known.pending.remove(id);
        Ok(())
    }
}

impl Known {
    fn row(&self, id: &RowId) -> Option<DirectoryRow> {
        match id {
            RowId::Application(id) => self.applications.get(id).map(|(row, _)| DirectoryRow::Application(row.clone())),
            RowId::Key(id) => self.keys.get(id).cloned().map(DirectoryRow::Key),
        }
    }
}
