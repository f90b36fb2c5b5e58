//! How a change is carried out: planned from what is known, stored, and put in force. A change that
//! the store does not confirm is an error, which says if the change is in force.

use super::edits::{DirectoryRow, Edit};
use super::{Durability, Known, Registry, RegistryError};
use crate::act::Act;
use crate::store::{SecretUse, StoreError};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;

/// Time for a store that outlives its machine. After that, the operator gets an error.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// The change is in force here, and the next leader would not know of it.
const IN_FORCE_HERE: &str =
    "it is in force, but not stored, so it would be gone if another process led; repeat the command until it is stored";

impl Registry {
    pub(super) async fn carry_out<T>(
        &self,
        plan: impl FnOnce(&Known) -> Result<(Edit, T), RegistryError> + Send,
    ) -> Result<(T, Durability), RegistryError> {
        let mut known = self.known.lock().await;
        self.learn_fates(&mut known).await?;
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
                self.put(known, &row, acts).await?;
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

    pub(super) async fn put(&self, known: &mut Known, row: &DirectoryRow, acts: Vec<Act>) -> Result<(), StoreError> {
        let put = match row.clone() {
            DirectoryRow::Application(row) => self.store.put_application(row, acts),
            DirectoryRow::Key(row) => self.store.put_key(row, acts),
        };
        let put = self.within_patience(put).await;
        known.has_unknown_fate |= matches!(put, Err(StoreError::Unanswered(_)));
        put
    }

    /// If the fate of a change is unknown, reads the store and puts in force what it has.
    async fn learn_fates(&self, known: &mut Known) -> Result<(), StoreError> {
        if !known.has_unknown_fate {
            return Ok(());
        }
        let learn = async {
            // The store writes in order, so the fate of the change is known then.
            self.store.see(self.clock.floor()).await?;
            self.store.directory().await
        };
        let (mut applications, mut keys) = self.within_patience(learn).await?;
        // Rights that were taken away stay so until that is stored.
        applications.retain(|row| !known.pending.contains_key(&DirectoryRow::Application(row.clone()).id()));
        keys.retain(|row| !known.pending.contains_key(&DirectoryRow::Key(row.clone()).id()));
        known.has_unknown_fate = false;
        let uses = known.put_in_force(&self.access, self.offer, applications, keys);
        self.keep_uses(uses, &Durability::Stored).await;
        Ok(())
    }

    fn put_in_force(&self, known: &mut Known, row: DirectoryRow) -> Vec<SecretUse> {
        let (applications, keys) = match row {
            DirectoryRow::Application(row) => (vec![row], Vec::new()),
            DirectoryRow::Key(row) => (Vec::new(), vec![row]),
        };
        known.put_in_force(&self.access, self.offer, applications, keys)
    }

    /// Returns true if a process on another machine may go on with the store.
    fn outlives_machine(&self) -> bool {
        self.access.has_lease()
    }

    /// Gives a store on this machine all the time that its disk needs.
    pub(super) async fn within_patience<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let until = if self.outlives_machine() { self.clock.now().plus(STORE_PATIENCE) } else { Timestamp(u64::MAX) };
        let done = self.clock.before(until, work).await;
        let silent = || format!("the store has not answered for {} s", STORE_PATIENCE.as_secs());
        done.unwrap_or_else(|| Err(StoreError::Unanswered(silent())))
    }
}
