//! Changes that are in force and not stored yet.
//!
//! A change that takes authority away applies at once, also on a full disk. Its row then waits here
//! with its acts, until the store takes both in one transaction.

use super::{Durability, Known, Registry, RowId};
use crate::act::Act;
use std::time::Duration;

/// Time for which storing a change that is in force may take. After that, its operator is informed
/// that it is not stored.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

impl Registry {
    /// Stores all pending changes.
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

    /// Stores a row that is in force, with its acts. The last one is `act`.
    pub(super) async fn store_act(&self, known: &mut Known, row: RowId, act: Act) -> Durability {
        let acts = known.pending.entry(row.clone()).or_default();
        acts.push(act);
        let first = acts.len() == 1;
        match self.store(known, &row).await {
            Ok(()) => Durability::Stored,
            Err(why) => {
                if first {
                    tracing::error!(why, "a revocation is in force, but not yet on the disk; retrying");
                }
                Durability::Owed(why)
            }
        }
    }

    /// Stores a pending row.
    async fn store(&self, known: &mut Known, row: &RowId) -> Result<(), String> {
        let acts = known.pending.get(row).cloned().unwrap_or_default();
        let put = async {
            match row {
                RowId::Application(id) => match known.applications.get(id) {
                    Some((row, _)) => self.store.put_application(row.clone(), acts, None).await,
                    None => Ok(None),
                },
                RowId::Key(id) => match known.keys.get(id) {
                    Some(row) => self.store.put_key(row.clone(), acts, None).await,
                    None => Ok(None),
                },
            }
        };
        match self.clock.before(self.clock.now().plus(STORE_PATIENCE), put).await {
            Some(Ok(_)) => {
                known.pending.remove(row);
                Ok(())
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err(format!("the store has not answered for {} s", STORE_PATIENCE.as_secs())),
        }
    }
}
