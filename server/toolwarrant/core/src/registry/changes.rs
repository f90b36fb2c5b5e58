//! How a change is carried out: planned from what is known, stored, and put in force. A change that
//! the store does not confirm is an error, which says if the change is in force.

use super::edits::{DirectoryRow, Edit};
use super::{Durability, Known, Registry, RegistryError};
use crate::act::Act;
use crate::store::{SecretUse, StoreError};
use std::time::Duration;

const LEASE_PATIENCE: Duration = Duration::from_secs(5);

const LEASE_EVERY: Duration = Duration::from_millis(100);

const NOT_HERE: &str = "nothing has changed: this is not stored here, because the lease of this process is over, and another one may \
                        lead; repeat the command where a process leads";

/// The change is in force here, and the next leader would not know of it.
const IN_FORCE_HERE: &str =
    "it is in force, but not stored, so it would be gone if another process led; repeat the command until it is stored";

impl Registry {
    pub(super) async fn carry_out<T>(
        &self,
        plan: impl FnOnce(&Known) -> Result<(Edit, T), RegistryError> + Send,
    ) -> Result<(T, Durability), RegistryError> {
        self.wait_for_lease().await?;
        let mut known = self.known.lock().await;
        let (edit, answer) = plan(&known)?;
        match self.apply(&mut known, edit).await? {
            Durability::Owed(why) if self.outlives_machine() => {
                Err(RegistryError::Unavailable(format!("{IN_FORCE_HERE}: {why}")))
            }
            durability => Ok((answer, durability)),
        }
    }

    /// Puts a change that only takes authority away in force first.
    async fn apply(&self, known: &mut Known, edit: Edit) -> Result<Durability, RegistryError> {
        let Edit { row, act, only_takes } = edit;
        let id = row.id();
        let (uses, stored) = match only_takes {
            true => {
                known.pending.entry(id.clone()).or_default().push(act);
                (self.put_in_force(known, row), self.store(known, &id).await)
            }
            false => {
                let acts = known.acts(&id, act);
                self.put(&row, acts).await?;
                known.pending.remove(&id);
                (self.put_in_force(known, row), Ok(()))
            }
        };
        let durability = stored.map_or_else(Durability::Owed, |()| Durability::Stored);
        if let (Durability::Owed(why), Some(1)) = (&durability, known.pending.get(&id).map(Vec::len)) {
            tracing::error!(why, "a change is in force, but not yet in the store; retrying");
        }
        self.keep_uses(uses, &durability).await;
        Ok(durability)
    }

    pub(super) async fn put(&self, row: &DirectoryRow, acts: Vec<Act>) -> Result<(), StoreError> {
        match row.clone() {
            DirectoryRow::Application(row) => self.store.put_application(row, acts).await,
            DirectoryRow::WithKey(row, with) => {
                let (key, act) = *with;
                self.store.put_application_with_key(row, key, [acts, vec![act]].concat()).await
            }
            DirectoryRow::Key(row) => self.store.put_key(row, acts).await,
        }
    }

    fn put_in_force(&self, known: &mut Known, row: DirectoryRow) -> Vec<SecretUse> {
        let (applications, keys) = match row {
            DirectoryRow::Application(row) => (vec![row], Vec::new()),
            DirectoryRow::WithKey(row, with) => (vec![row], vec![with.0]),
            DirectoryRow::Key(row) => (Vec::new(), vec![row]),
        };
        known.put_in_force(&self.access, self.offer, applications, keys)
    }

    /// Returns true if a process on another machine may go on with the store.
    fn outlives_machine(&self) -> bool {
        self.access.has_lease()
    }

    /// Refuses a change that the process which leads would not know of. A start, or a short gap,
    /// has no lease yet.
    ///
    /// # Errors
    /// The process has no lease for a while.
    pub async fn wait_for_lease(&self) -> Result<(), RegistryError> {
        let until = self.clock.now().plus(LEASE_PATIENCE);
        while self.access.check_lease().is_err() {
            if self.clock.now() >= until {
                return Err(RegistryError::Unavailable(NOT_HERE.to_owned()));
            }
            self.clock.sleep_until(self.clock.now().plus(LEASE_EVERY)).await;
        }
        Ok(())
    }
}
