//! The registry as one of several copies of the directory.
//!
//! A replica puts the changes of others in force, and then says so. Its own change is written only
//! over the version that it knows; otherwise it reads the changes, and plans its own again. A
//! process that is alone takes the same way and skips both.

use super::edits::{DirectoryRow, Edit, Effect};
use super::{Durability, Known, Registry, RegistryError};
use crate::act::Act;
use crate::store::{DirectoryChanges, SecretUse, StoreError};
use std::time::Duration;

/// Time for which storing a change that is in force may take, and each request on one of several
/// replicas. After that, the operator is informed.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// How often a change is planned if others come between.
pub(super) const ATTEMPTS: u32 = 5;

/// The error of a change before which others came each time.
pub(super) const OVERTAKEN: &str =
    "nothing has changed, because other replicas change applications and keys at present; repeat the command";

/// The error of a change that is in force, and that another leader would not know of.
const IN_FORCE_HERE: &str =
    "it is in force, but not stored, so it would be gone if another process led; repeat the command until it is stored";

/// Longest time for which a change that only gives authority waits for the other replicas.
pub(super) const GIVING: Duration = Duration::from_secs(1);

/// The pause before changes are read again that could not be read.
const READ_AGAIN: Duration = Duration::from_millis(500);

impl Registry {
    /// Puts the changes of other replicas in force as they come. Never returns.
    pub async fn follow(&self) {
        let Some(cluster) = &self.cluster else { return std::future::pending().await };
        let (mut versions, mut fails) = (cluster.directory_version(), false);
        loop {
            let latest = *versions.borrow_and_update();
            let mut known = self.known.lock().await;
            let pulled = if latest > known.version { self.pull(&mut known).await } else { Ok(()) };
            drop(known);
            match pulled {
                Ok(()) => {
                    fails = false;
                    if versions.changed().await.is_err() {
                        return std::future::pending().await;
                    }
                }
                Err(error) => {
                    if !fails {
                        tracing::warn!(%error, "cannot read the changes of applications and keys; retrying");
                    }
                    fails = true;
                    self.clock.sleep_until(self.clock.now().plus(READ_AGAIN)).await;
                }
            }
        }
    }

    /// Reads the changes of other replicas, and puts them in force.
    pub(super) async fn pull(&self, known: &mut Known) -> Result<(), StoreError> {
        if self.cluster.is_none() {
            return Ok(());
        }
        let changes = self.within_patience(self.store.changes(known.version)).await?;
        let uses = self.take_over(known, changes);
        self.keep_uses(uses, &Durability::Stored).await;
        Ok(())
    }

    /// Puts stored rows in force, and says so. Returns the last uses of secrets whose cells may be
    /// gone then.
    pub(super) fn take_over(&self, known: &mut Known, changes: DirectoryChanges) -> Vec<SecretUse> {
        let DirectoryChanges { version, mut applications, mut keys } = changes;
        applications.iter_mut().for_each(|row| known.merge_application(row));
        keys.iter_mut().for_each(|row| known.merge_key(row));
        known.version = version.max(known.version);
        let uses = known.put_in_force(&self.access, self.catalogue, applications, keys);
        self.say_in_force(known);
        uses
    }

    /// Carries out a change: `plan` makes it and its answer from what is known. If another replica
    /// changes something meanwhile, `plan` runs again. Then waits until the change is in force on
    /// every replica.
    pub(super) async fn carry_out<T>(
        &self,
        mut plan: impl FnMut(&Known) -> Result<(Edit, T), RegistryError> + Send,
    ) -> Result<(T, Durability), RegistryError> {
        let mut known = self.known.lock().await;
        for _ in 0..ATTEMPTS {
            let pulled = self.pull(&mut known).await;
            let planned = plan(&known);
            if !planned.as_ref().is_ok_and(|(edit, _)| edit.effect == Effect::OnlyTakes) {
                pulled?;
            }
            let (edit, answer) = planned?;
            let effect = edit.effect;
            let Some(durability) = self.apply(&mut known, edit).await? else { continue };
            let version = known.version;
            drop(known);
            match (&durability, effect) {
                (Durability::Owed(why), _) if self.cluster.is_some() => {
                    return Err(RegistryError::Unavailable(format!("{IN_FORCE_HERE}: {why}")));
                }
                (Durability::Owed(_), _) => {}
                (Durability::Stored, Effect::OnlyGives) => self.wait_for_others(version, Some(GIVING)).await,
                (Durability::Stored, _) => self.wait_for_others(version, None).await,
            }
            return Ok((answer, durability));
        }
        Err(RegistryError::Unavailable(OVERTAKEN.to_owned()))
    }

    /// Stores a change and puts it in force. Returns `None`, and has no effect, if another replica
    /// has changed something meanwhile.
    async fn apply(&self, known: &mut Known, edit: Edit) -> Result<Option<Durability>, RegistryError> {
        let Edit { before, row, act, effect } = edit;
        let (id, acts) = (row.id(), known.acts(&row.id(), act.clone()));
        let (uses, stored) = match before.filter(|_| effect == Effect::OnlyTakes) {
            // A process that is alone does not wait for its disk.
            Some(before) if self.cluster.is_none() => {
                known.add_pending(before, act);
                (self.put_in_force(known, row), self.store(known, &id).await)
            }
            before => {
                let stored = match (self.put(known, &row, acts).await, before) {
                    (Ok(false), _) => return Ok(None),
                    (Ok(true), _) => {
                        known.pending.remove(&id);
                        Ok(())
                    }
                    (Err(error), Some(before)) => {
                        known.add_pending(before, act);
                        Err(self.describe_pending(&error))
                    }
                    (Err(error), None) => return Err(error.into()),
                };
                (self.put_in_force(known, row), stored)
            }
        };
        let durability = stored.map_or_else(Durability::Owed, |()| Durability::Stored);
        if let (Durability::Owed(why), Some(1)) = (&durability, known.pending.get(&id).map(|row| row.acts.len())) {
            tracing::error!(why, "a revocation is in force, but not yet on the disk; retrying");
        }
        self.keep_uses(uses, &durability).await;
        Ok(Some(durability))
    }

    /// Writes a row with its acts. Returns false if another replica has changed something since the
    /// version that is known here.
    pub(super) async fn put(&self, known: &mut Known, row: &DirectoryRow, acts: Vec<Act>) -> Result<bool, StoreError> {
        let base = self.cluster.as_ref().map(|_| known.version);
        let put = match row.clone() {
            DirectoryRow::Application(row) => self.store.put_application(row, acts, base),
            DirectoryRow::Key(row) => self.store.put_key(row, acts, base),
        };
        let put = if self.cluster.is_some() { self.within_patience(put).await } else { put.await };
        match put {
            Ok(version) => {
                known.version = version.unwrap_or(known.version);
                Ok(true)
            }
            Err(StoreError::Stale) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts a row in force, and says so. Returns the last uses of secrets whose cells may be gone
    /// then.
    fn put_in_force(&self, known: &mut Known, row: DirectoryRow) -> Vec<SecretUse> {
        let (applications, keys) = match row {
            DirectoryRow::Application(row) => (vec![row], Vec::new()),
            DirectoryRow::Key(row) => (Vec::new(), vec![row]),
        };
        let uses = known.put_in_force(&self.access, self.catalogue, applications, keys);
        self.say_in_force(known);
        uses
    }

    /// Tells the other replicas which version is in force here.
    pub(super) fn say_in_force(&self, known: &Known) {
        if let Some(cluster) = &self.cluster {
            cluster.put_in_force(known.version);
        }
    }

    /// Waits until a version is in force on every replica, but not for longer than `at_most`.
    pub(super) async fn wait_for_others(&self, version: u64, at_most: Option<Duration>) {
        let Some(cluster) = &self.cluster else { return };
        let everywhere = cluster.in_force_everywhere(version);
        match at_most {
            Some(at_most) => drop(self.clock.before(self.clock.now().plus(at_most), everywhere).await),
            None => everywhere.await,
        }
    }

    pub(super) async fn within_patience<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let done = self.clock.before(self.clock.now().plus(STORE_PATIENCE), work).await;
        let silent = || format!("the store has not answered for {} s", STORE_PATIENCE.as_secs());
        done.unwrap_or_else(|| Err(StoreError::Unanswered(silent())))
    }
}
