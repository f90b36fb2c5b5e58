//! The tasks of other replicas: this one adopts those whose replica has ended, and wakes polls that
//! wait for the end of any.
//!
//! Every second the runner starts a round. Start at [`Engine::look_around`].

use super::due::{Progress, Wake};
use super::round::Round;
use super::{Engine, Parts, describe_tasks};
use crate::command;
use crate::store::OpenTask;
use std::collections::BTreeSet;
use std::mem::take;
use std::sync::Arc;
use toolwarrant_base::ignore_poison;
use toolwarrant_core::store::StoreError;

/// The most orphans that a round reads and adopts. Other replicas adopt meanwhile.
const ADOPTED_MAX: u32 = 1_024;

impl Engine {
    /// Counts and names the tasks that no replica drives and whose command the contract cannot
    /// read. They wait for a replica that can. `None` if there are none.
    #[must_use]
    pub fn describe_orphans(&self) -> Option<String> {
        let orphans = ignore_poison(self.others.unreadable.lock());
        describe_tasks("tasks that wait for a replica whose contract can read them", &orphans)
    }

    /// Makes a round. Does nothing if the last one still waits for the store.
    pub(super) async fn look_around(self: Arc<Self>) {
        let Ok(mut round) = self.others.round.try_lock() else { return };
        let (adopted, woken) = tokio::join!(self.adopt(&mut round), self.wake_polls());
        if let Err(error) = adopted.and(woken) {
            tracing::debug!(%error, "the tasks of other replicas could not be read or adopted; retrying");
        }
    }

    /// Adopts orphans whose command the contract can read.
    async fn adopt(&self, round: &mut Round) -> Result<(), StoreError> {
        let Parts { store, catalogue, keyring, clock, .. } = &self.parts;
        if round.readable.is_empty() {
            let page = store.orphans(round.after, ADOPTED_MAX).await?;
            round.after = page.last().filter(|_| page.len() == ADOPTED_MAX as usize).map(|last| last.id);
            let can_read = |OpenTask { id, tool, sealed, .. }: &OpenTask| {
                command::open(*catalogue, keyring, (*id, tool), sealed.as_deref()).is_ok()
            };
            let (readable, unreadable): (Vec<_>, Vec<_>) = page.into_iter().partition(can_read);
            round.readable = readable;
            round.unreadable.extend(unreadable.iter().map(|task| task.id));
            if round.after.is_none() {
                *ignore_poison(self.others.unreadable.lock()) = take(&mut round.unreadable);
            }
        }
        if round.readable.is_empty() {
            return Ok(());
        }
        let adopted = store.adopt(round.readable.iter().map(|task| task.id).collect()).await?;
        let adopted = BTreeSet::from_iter(adopted);
        if !adopted.is_empty() {
            tracing::info!(tasks = adopted.len(), "adopted tasks of replicas that have ended");
        }
        for OpenTask { id, identity, .. } in take(&mut round.readable) {
            if adopted.contains(&id) {
                let hash = self.index.of(&identity);
                self.index.add(hash);
                self.due.add(id, clock.now(), Wake { hash, state: Progress::Adopted });
            }
        }
        Ok(())
    }

    /// Releases held polls for tasks that have ended. It asks for the tasks of this replica, too,
    /// because nothing lists those of others.
    async fn wake_polls(&self) -> Result<(), StoreError> {
        let held = self.polls.tasks();
        if !held.is_empty() {
            self.parts.store.find_ended(held).await?.into_iter().for_each(|id| self.polls.release(id));
        }
        Ok(())
    }
}
