//! Replicas, versions and documents of the store in memory.

use super::{Memory, OwnWrites, Row, Tables, now, ready};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::cluster::{Beat, BeatNumber, Beats, ClusterStore, Epoch, LEASE, ReplicaRow, ReplicaState};
use toolwarrant_core::documents::{Document, DocumentStore};
use toolwarrant_core::store::{StoreError, Stored};
use toolwarrant_tasks::store::{OpenTask, Record};
use toolwarrant_tasks::task::TaskId;

impl Memory {
    /// Joins: opens the same tables for another process. Evicts the earlier runs of this name.
    #[must_use]
    pub fn replica(&self, name: &str) -> Self {
        self.replica_with_lease(name, LEASE)
    }

    /// Joins with a lease of that length.
    #[must_use]
    pub fn replica_with_lease(&self, name: &str, lease: Duration) -> Self {
        let mut tables = self.lock();
        tables.look_for_former(name);
        for row in tables.replicas.iter_mut().filter(|row| row.name == name && !row.state.has_ended()) {
            row.state = ReplicaState::Evicted;
        }
        tables.trust.count_run();
        let beat = BeatNumber { timeline: tables.trust.timeline, number: 0 };
        tables.epoch += 1;
        let epoch = Epoch(tables.epoch);
        tables.replicas.push(ReplicaRow {
            epoch,
            name: name.to_owned(),
            lease,
            beat,
            seen: 0,
            is_asked_to_leave: false,
            state: ReplicaState::Serving,
            off: 0,
            is_whole: true,
        });
        let own = OwnWrites::since(&tables.trust);
        Self { tables: Arc::clone(&self.tables), epoch, clock: None, own }
    }

    /// Lets the store have the time of this clock, for this process.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Returns true if this run has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.lock().has_ended(self.epoch)
    }

    /// Writes, unless this run has ended.
    pub(super) fn write<T>(&self, work: impl FnOnce(&mut Tables) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut tables = self.lock();
        if tables.has_ended(self.epoch) {
            return Err(StoreError::Unavailable(format!("the replica of epoch {} was evicted", self.epoch)));
        }
        tables.trust.check()?;
        let done = work(&mut tables)?;
        tables.trust.count_write(self.epoch);
        Ok(done)
    }

    /// Changes rows of the directory, unless it is at another version than `base`. `edit` returns
    /// the ids of the changed rows.
    pub(super) fn change(
        &self,
        base: Option<u64>,
        edit: impl FnOnce(&mut Tables) -> Result<Vec<String>, StoreError>,
    ) -> Result<Option<u64>, StoreError> {
        self.write(|tables| {
            if base.is_some_and(|base| base != tables.directory) {
                return Err(StoreError::Stale);
            }
            let changed = edit(tables)?;
            tables.directory += 1;
            let version = tables.directory;
            tables.changed.extend(changed.into_iter().map(|id| (id, version)));
            Ok((self.epoch != Epoch::default()).then_some(version))
        })
    }
}

impl Tables {
    /// Returns true if this run has ended. One that is not known was forgotten.
    pub(super) fn has_ended(&self, epoch: Epoch) -> bool {
        epoch != Epoch::default() && self.replicas.iter().all(|row| row.epoch != epoch || row.state.has_ended())
    }

    /// Returns the tasks in flight whose owner is wanted, ordered by id.
    pub(super) fn open_tasks(
        &self,
        after: Option<TaskId>,
        limit: u32,
        is_wanted: impl Fn(Epoch, &Self) -> bool,
    ) -> Vec<OpenTask> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let open = self.tasks.range((after, Bound::Unbounded)).filter_map(|(id, row)| {
            let Row { owner, record: Record { tool, sealed, task, .. }, identity, .. } = row;
            let open = || OpenTask {
                id: *id,
                identity: identity.clone(),
                tool: tool.clone(),
                sealed: sealed.clone(),
                wake_at: task.wake_at,
            };
            (task.status().is_none() && is_wanted(*owner, self)).then(open)
        });
        open.take(limit as usize).collect()
    }

    /// Gives orphans to a run. Returns those that it has.
    pub(super) fn adopt(&mut self, orphans: Vec<TaskId>, by: Epoch) -> Vec<TaskId> {
        let is_free = |row: &Row| row.owner == by || self.has_ended(row.owner);
        let can_have =
            |id: &TaskId| self.tasks.get(id).is_some_and(|row| row.record.task.status().is_none() && is_free(row));
        let adopted: Vec<_> = orphans.into_iter().filter(can_have).collect();
        for id in &adopted {
            if let Some(row) = self.tasks.get_mut(id) {
                row.owner = by;
            }
        }
        adopted
    }

    /// Returns a replica that has not ended.
    fn replica(&mut self, epoch: Epoch) -> Option<&mut ReplicaRow> {
        self.replicas.iter_mut().find(|row| row.epoch == epoch && !row.state.has_ended())
    }
}

impl ClusterStore for Memory {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn name(&self) -> String {
        let tables = self.lock();
        tables.replicas.iter().find(|row| row.epoch == self.epoch).map(|row| row.name.clone()).unwrap_or_default()
    }

    fn lease(&self) -> Duration {
        let tables = self.lock();
        tables.replicas.iter().find(|row| row.epoch == self.epoch).map_or(LEASE, |row| row.lease)
    }

    fn beat(&self, Beat { seen, state, off, runs }: Beat) -> Stored<'_, Beats> {
        let mut tables = self.lock();
        let trust = tables.look_for_writes(self.epoch, (seen, runs), &self.own);
        if let Some(row) = tables.replica(self.epoch) {
            row.beat.number += 1;
            (row.seen, row.state, row.off) = (seen, state, off);
        }
        let now = self.clock.as_ref().map_or(tables.seen.unwrap_or(Timestamp(0)), Clock::now);
        let (directory, runs, replicas) = (tables.directory, tables.trust.runs, tables.replicas.clone());
        let ahead = tables.ahead;
        let now = Timestamp(now.0.saturating_add_signed(ahead));
        self::now(Beats { now, ahead, directory, runs, replicas, trust })
    }

    fn settle(&self, _: Vec<Epoch>) -> Stored<'_, ()> {
        self.lock().settle();
        now(())
    }

    fn correct_time(&self, known: i64, ahead: i64) -> Stored<'_, ()> {
        let mut tables = self.lock();
        if tables.ahead == known {
            tables.ahead = ahead;
        }
        now(())
    }

    fn evict(&self, epoch: Epoch, beat: BeatNumber) -> Stored<'_, bool> {
        ready(self.write(|tables| {
            let silent = tables.replica(epoch).filter(|row| row.beat == beat);
            Ok(silent.map(|row| row.state = ReplicaState::Evicted).is_some())
        }))
    }

    fn leave(&self) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            if let Some(row) = tables.replica(self.epoch) {
                row.state = ReplicaState::Left;
            }
            Ok(())
        }))
    }

    fn forget_ended(&self, epochs: Vec<Epoch>) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            let owners: Vec<_> = tables.tasks.values().map(|row| row.owner).collect();
            let is_kept = |row: &ReplicaRow| {
                !row.state.has_ended() || owners.contains(&row.epoch) || !epochs.contains(&row.epoch)
            };
            tables.replicas.retain(is_kept);
            Ok(())
        }))
    }
}

impl DocumentStore for Memory {
    fn documents(&self, space: &'static str, keys: Vec<String>) -> Stored<'_, Vec<Document>> {
        let tables = self.lock();
        let found = keys.into_iter().filter_map(|key| {
            let (version, body) = tables.documents.get(&(space, key.clone()))?.clone();
            Some(Document { key, version, body })
        });
        now(found.collect())
    }

    fn put_documents(&self, space: &'static str, documents: Vec<Document>) -> Stored<'_, Vec<bool>> {
        ready(self.write(|tables| {
            let put = documents.into_iter().map(|Document { key, version, body }| {
                let place = (space, key);
                let is_put = tables.documents.get(&place).map_or(0, |(stored, _)| *stored) == version;
                if is_put {
                    tables.documents.insert(place, (version + 1, body));
                }
                is_put
            });
            Ok(put.collect())
        }))
    }
}
