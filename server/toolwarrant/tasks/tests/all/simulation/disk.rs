//! A disk that is slow, fails, and freezes with its process. Under some mutants, it omits a duty of
//! a store.

use super::{Mutant, Nature, short};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::cluster::ClusterStore;
use toolwarrant_core::store::{StoreError, Stored};
use toolwarrant_memory::Memory;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, DeduplicationKey, DuplicateOf, Identity, LedgerRow, NewTask, OpenTask, Record,
    RefundFilter, TaskFilter, TaskRows, TaskStore, TimelineEvent,
};
use toolwarrant_tasks::task::{Phase, TaskId};

/// The state that survives a process.
#[derive(Debug, Default)]
pub(super) struct Platters {
    pub(super) memory: Arc<Memory>,
    /// Refunds that a mutant wrote in a separate transaction.
    pub(super) late_refunds: Mutex<Vec<TaskId>>,
    /// The part that decides about further acceptances.
    pub(super) holds: Mutex<Holds>,
    /// Targets for whose locks a mutant waits.
    awaited: Mutex<Vec<String>>,
    /// The time until which no write lands.
    stalled_until: Mutex<Timestamp>,
    /// The step that the clock of the store has made, in milliseconds.
    pub(super) clock_off: AtomicI64,
    /// Violations that were noticed at the time they happened.
    pub(super) violations: Mutex<Vec<String>>,
}

/// Everything that tasks hold, or have used up.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    /// The identity of every task in flight.
    in_flight: HashMap<TaskId, Identity>,
    /// The end of the cool-down of each target.
    cool_downs: HashMap<String, Timestamp>,
    /// The nonces of accepted tasks.
    nonces: HashSet<Box<[u8]>>,
}

impl Platters {
    /// Lets no write land until then, as if a standby did not answer.
    pub(super) fn stall(&self, until: Timestamp) {
        let mut stalled_until = self.stalled_until.lock().expect("no panic");
        *stalled_until = until.max(*stalled_until);
    }

    /// Waits until writes land.
    pub(super) async fn wait_for_standby(&self, clock: &Clock) {
        let stalled_until = *self.stalled_until.lock().expect("no panic");
        clock.sleep_until(stalled_until).await;
    }

    /// Records a violation.
    pub(super) fn violate(&self, what: String) {
        self.violations.lock().expect("no panic").push(what);
    }
}

impl Holds {
    /// Records an acceptance. Returns its violations.
    fn accept(&mut self, NewTask { id, identity, marks, .. }: NewTask, wake_at: Timestamp) -> Vec<String> {
        let Self { in_flight, cool_downs, nonces } = self;
        let is_rival = |other: &Identity| {
            let key = |of: &Identity| of.key.clone().map(|key| (of.application.clone(), key));
            key(&identity).is_some() && key(&identity) == key(other) || identity.target == other.target
        };
        let rivals = in_flight.iter().filter(|(_, other)| is_rival(other)).map(|(other, _)| short(*other));
        let mut wrong: Vec<_> =
            rivals.map(|other| format!("{} is accepted beside {other}: {identity:?}", short(id))).collect();
        if cool_downs.get(&identity.target).is_some_and(|until| wake_at < *until) {
            wrong.push(format!("{} starts while its target cools down", short(id)));
        }
        if !marks.into_iter().all(|mark| nonces.insert(mark.key)) {
            wrong.push(format!("{} is accepted with a nonce that was used", short(id)));
        }
        in_flight.insert(id, identity);
        wrong
    }
}

/// The disk from the point of view of one process.
#[derive(Debug)]
pub(super) struct Disk {
    nature: Arc<Nature>,
    platters: Arc<Platters>,
    /// The platters, as this process opened them.
    memory: Arc<Memory>,
    /// The time until which the disk stands still. Set when the process has a successor.
    frozen_until: Mutex<Option<Timestamp>>,
    /// Steps that a mutant has not written yet.
    held: Mutex<HashMap<TaskId, Advance>>,
    /// Tasks that this process has written.
    mine: Mutex<HashSet<TaskId>>,
}

impl Disk {
    pub(super) fn new(nature: &Arc<Nature>, platters: &Arc<Platters>, memory: Arc<Memory>) -> Self {
        let (held, mine, frozen_until) = Default::default();
        Self { nature: Arc::clone(nature), platters: Arc::clone(platters), memory, frozen_until, held, mine }
    }

    /// Makes the disk stand still from the next operation on.
    pub(super) fn freeze(&self, until: Timestamp) {
        *self.frozen_until.lock().expect("no panic") = Some(until);
    }

    fn frozen_until(&self) -> Option<Timestamp> {
        *self.frozen_until.lock().expect("no panic")
    }

    async fn wait(&self) {
        if self.nature.chance(self.nature.weather.slow_disk) {
            self.nature.pause(Duration::from_millis(500)).await;
        }
    }

    /// Writes, unless the disk fails before or after writing.
    async fn write<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.wait().await;
        let fails = self.nature.chance(self.nature.weather.broken_disk);
        let full = || StoreError::Unavailable("the disk is full".to_owned());
        if fails && self.nature.chance(50) {
            return Err(full());
        }
        let written = work.await?;
        self.wait().await;
        if fails { Err(full()) } else { Ok(written) }
    }

    async fn accept(&self, mut new: NewTask) -> Result<Acceptance, StoreError> {
        let (memory, original) = (&self.memory, new.clone());
        if self.frozen_until().is_some() {
            return Err(StoreError::Unavailable("the folder is somebody else's".to_owned()));
        }
        let run = self.memory.epoch();
        match self.nature.mutant {
            Some(Mutant::NoTargetLock) => new.identity.resource = new.id.to_string(),
            Some(Mutant::TargetLockPerReplica) => new.identity.resource = run.to_string(),
            Some(Mutant::DuplicatesPerReplica) => {
                new.identity.key = new.identity.key.map(|key| format!("{run} {key}"));
            }
            Some(Mutant::NoncesPerReplica) => {
                new.marks
                    .iter_mut()
                    .for_each(|mark| mark.key = [&mark.key, run.to_string().as_bytes()].concat().into());
            }
            Some(Mutant::CheckThenInsert) => {
                if let Some(hit) = memory.repeat(new.identity.clone()).await? {
                    return Ok(Acceptance::Hit(hit));
                }
                self.nature.pause(Duration::from_millis(20)).await;
                new.identity.key = Some(new.id.to_string());
            }
            _ => {}
        }
        let mut accepted = memory.accept(new.clone()).await?;
        if self.nature.is(Mutant::CoolDownOfBefore) {
            let awaited = || self.platters.awaited.lock().expect("no panic");
            awaited().push(original.identity.target.clone());
            new.marks.clear();
            for _ in 0..40 {
                let Acceptance::Busy { .. } = accepted else { break };
                self.nature.pause(Duration::from_millis(200)).await;
                accepted = memory.accept(new.clone()).await?;
            }
            awaited().retain(|target| *target != original.identity.target);
        }
        if let Acceptance::Fresh { wake_at } = accepted {
            self.nature.note(|| format!("{} is accepted: {:?}", short(original.id), original.identity));
            let wrong = self.platters.holds.lock().expect("no panic").accept(original, wake_at);
            wrong.into_iter().for_each(|what| self.platters.violate(what));
        }
        Ok(accepted)
    }

    async fn advance(&self, mut advance: Advance) -> Result<Advanced, StoreError> {
        let (memory, Platters { late_refunds, holds, awaited, .. }) = (&self.memory, &*self.platters);
        let id = advance.id;
        let target = holds.lock().expect("no panic").in_flight.get(&id).map(|identity| identity.target.clone());
        let is_awaited = || target.as_ref().is_some_and(|target| awaited.lock().expect("no panic").contains(target));
        let cools_until = advance.entries.iter().find_map(|entry| match entry {
            Entry::Release(until) if *until > advance.at => Some(*until),
            _ => None,
        });
        self.mine.lock().expect("no panic").insert(id);
        match self.nature.mutant {
            Some(Mutant::NoFencing) => {
                advance.version = memory.task(id).await?.map_or(0, |record| record.version);
            }
            Some(mutant)
                if mutant == Mutant::LockReleasedEarly || mutant == Mutant::CoolDownOfBefore && is_awaited() =>
            {
                let early = |entry| if let Entry::Release(_) = entry { Entry::Release(advance.at) } else { entry };
                advance.entries = advance.entries.into_iter().map(early).collect();
            }
            Some(Mutant::SendBeforePersisting) => {
                let held = self.held.lock().expect("no panic").remove(&id);
                if let Some(held) = held {
                    memory.advance(held).await?;
                } else if advance.task.phase == Phase::Sending {
                    self.held.lock().expect("no panic").insert(id, advance);
                    return Ok(Advanced::Written);
                }
            }
            _ => {}
        }
        let (phase, what) = (advance.task.phase, advance.what.clone());
        let refund = advance.entries.contains(&Entry::Refund) && self.nature.is(Mutant::RefundInSecondTransaction);
        if refund {
            advance.entries.retain(|entry| *entry != Entry::Refund);
        }
        let advanced = memory.advance(advance).await?;
        self.nature.note(|| format!("{} {what} -> {} ({advanced:?})", short(id), phase.as_str()));
        if let (Advanced::Written, Phase::Done(_)) = (advanced, phase) {
            let mut holds = holds.lock().expect("no panic");
            holds.in_flight.remove(&id);
            if let Some(target) = target {
                holds.cool_downs.remove(&target);
                holds.cool_downs.extend(cools_until.map(|until| (target, until)));
            }
        }
        if refund && advanced == Advanced::Written {
            self.nature.pause(Duration::from_secs(5)).await;
            late_refunds.lock().expect("no panic").push(id);
        }
        Ok(advanced)
    }

    async fn read(&self, id: TaskId) -> Result<Option<Record>, StoreError> {
        self.wait().await;
        let mut record = self.memory.task(id).await?;
        let task = record.as_mut().map(|record| &mut record.task);
        match (self.nature.mutant, task) {
            (Some(Mutant::BlindResendOnRecovery), Some(task)) => {
                let found = !self.mine.lock().expect("no panic").contains(&id);
                if found && task.phase == Phase::Sending {
                    task.phase = Phase::Ready;
                }
            }
            (Some(Mutant::RefundOnFirstAbsent), Some(task)) if task.phase == Phase::Verifying => {
                task.settled.absent = task.settled.absent.max(1);
            }
            (Some(Mutant::InventBaseline), Some(task)) if task.left && task.baseline.is_none() => {
                task.baseline = Some("?".to_owned());
            }
            _ => {}
        }
        Ok(record)
    }
}

impl TaskStore for Disk {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<DuplicateOf>> {
        Box::pin(async move {
            self.wait().await;
            self.memory.repeat(identity).await
        })
    }

    fn accept(&self, new: NewTask) -> Stored<'_, Acceptance> {
        Box::pin(self.write(self.accept(new)))
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        Box::pin(async move {
            let advanced = self.write(self.advance(advance)).await;
            if let Some(until) = self.frozen_until() {
                self.nature.clock.sleep_until(until).await;
            }
            advanced
        })
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        Box::pin(self.read(id))
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        self.memory.in_flight(after, limit)
    }

    fn refunds(&self, filter: RefundFilter) -> Stored<'_, Vec<LedgerRow>> {
        self.memory.refunds(filter)
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, TaskRows> {
        self.memory.tasks(filter)
    }

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>> {
        self.memory.timeline(id)
    }

    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>> {
        self.memory.ledger(after, limit)
    }

    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.memory.purge(before, limit)
    }

    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()> {
        self.memory.mark(marks)
    }

    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>> {
        self.memory.marks(space, after, limit)
    }

    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.memory.purge_marks(now, limit)
    }
}
