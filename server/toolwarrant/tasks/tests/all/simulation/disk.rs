//! A disk that is slow, fails, and freezes with its process. One of two processes reaches it over a
//! [`way`](super::way). Under some mutants, it omits a duty of a store.

use super::contender::Body;
use super::way::refuse;
use super::{Mutant, Nature, short};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::{StoreError, Stored};
use toolwarrant_memory::Memory;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, DeduplicationKey, Identity, LedgerRow, OpenTask, Record, RefundFilter, StatusCounts,
    TaskFilter, TaskRows, TaskStore, TimelineEvent, WriteAnswer,
};
use toolwarrant_tasks::task::{Phase, TaskId};

const CLOCKS_APART: Duration = Duration::from_secs(2);

/// Time after which the sender of a step gives it up. It may land later. An acceptance is never
/// given up: when it is reported as failed, it has landed, or it never will.
const STEP_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Platters {
    pub(super) memory: Arc<Memory>,
    pub(super) late_refunds: Mutex<Vec<TaskId>>,
    pub(super) holds: Mutex<Holds>,
    leading: Mutex<Option<Arc<Drive>>>,
    pub(super) violations: Mutex<Vec<String>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    in_flight: HashMap<TaskId, Identity>,
    cool_downs: HashMap<String, Timestamp>,
    nonces: HashSet<Box<[u8]>>,
}

impl Platters {
    pub(super) fn violate(&self, what: String) {
        self.violations.lock().expect("no panic").push(what);
    }
}

impl Holds {
    fn accept(
        &mut self,
        (id, identity): (TaskId, Identity),
        marks: Vec<DeduplicationKey>,
        wake_at: Timestamp,
    ) -> Vec<String> {
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

#[derive(Debug)]
pub(super) struct Disk {
    drive: Arc<Drive>,
    body: Option<Arc<Body>>,
    pub(super) has_started: AtomicBool,
}

#[derive(Debug)]
struct Drive {
    nature: Arc<Nature>,
    platters: Arc<Platters>,
    /// As this process opened them.
    memory: Arc<Memory>,
    /// In milliseconds.
    ahead: i64,
    frozen_until: Mutex<Option<Timestamp>>,
    /// Steps that a mutant has not written yet.
    held: Mutex<HashMap<TaskId, Advance>>,
    mine: Mutex<HashSet<TaskId>>,
}

impl Disk {
    pub(super) fn new(nature: &Arc<Nature>, platters: &Arc<Platters>, memory: Arc<Memory>) -> Self {
        Self { drive: Arc::new(Drive::new(nature, platters, memory, 0)), body: None, has_started: false.into() }
    }

    pub(super) fn reach(body: &Arc<Body>, platters: &Arc<Platters>, memory: Arc<Memory>) -> Self {
        let drive = Arc::new(Drive::new(&body.nature, platters, memory, body.ahead));
        *platters.leading.lock().expect("no panic") = Some(Arc::clone(&drive));
        Self { drive, body: Some(Arc::clone(body)), has_started: false.into() }
    }

    pub(super) fn freeze(&self, until: Timestamp) {
        *self.drive.frozen_until.lock().expect("no panic") = Some(until);
    }

    /// Returns the disk; to a mutant, that of the process that leads.
    fn drive(&self) -> Arc<Drive> {
        let Drive { nature, platters, .. } = &*self.drive;
        let leading = nature.is(Mutant::NoFence).then(|| platters.leading.lock().expect("no panic").clone());
        leading.flatten().unwrap_or_else(|| Arc::clone(&self.drive))
    }

    /// Does `work` on the disk, for that long at most if it is on another machine.
    fn ask<'a, T, F>(&'a self, patience: Duration, work: impl FnOnce(Arc<Drive>) -> F + Send + 'a) -> Stored<'a, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let Some(body) = &self.body else { return Box::pin(work(self.drive())) };
        Box::pin(async move {
            body.thaw().await;
            let (clock, asking) = (&body.nature.clock, body.ask(false, work(self.drive())));
            let answer = body.live(clock.before(clock.now().plus(patience), asking)).await;
            answer.unwrap_or_else(|| Err(refuse()))
        })
    }
}

impl Drive {
    fn new(nature: &Arc<Nature>, platters: &Arc<Platters>, memory: Arc<Memory>, ahead: i64) -> Self {
        let (held, mine, frozen_until) = Default::default();
        Self { nature: Arc::clone(nature), platters: Arc::clone(platters), memory, ahead, frozen_until, held, mine }
    }

    fn true_time(&self, moment: Timestamp) -> Timestamp {
        Timestamp(moment.0.saturating_add_signed(-self.ahead))
    }

    fn frozen_until(&self) -> Option<Timestamp> {
        *self.frozen_until.lock().expect("no panic")
    }

    async fn wait(&self) {
        if self.nature.chance(self.nature.weather.slow_disk) {
            self.nature.pause(Duration::from_millis(500)).await;
        }
    }

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

    async fn accept(&self, mut new: Record, marks: Vec<DeduplicationKey>) -> Result<Acceptance, StoreError> {
        let (memory, original) = (&self.memory, (new.id, new.identity.clone()));
        if self.frozen_until().is_some() {
            return Err(StoreError::Unavailable("the folder is somebody else's".to_owned()));
        }
        match self.nature.mutant {
            Some(Mutant::NoTargetLock) => new.identity.resource = new.id.to_string(),
            Some(Mutant::CheckThenInsert) => {
                if let Some(hit) = memory.repeat(new.identity.clone()).await? {
                    return Ok(Acceptance::Hit(hit));
                }
                self.nature.pause(Duration::from_millis(20)).await;
                new.identity.key = Some(new.id.to_string());
            }
            _ => {}
        }
        let accepted = memory.accept(new, marks.clone()).await?;
        if let Acceptance::Fresh { wake_at } = accepted {
            self.nature.note(|| format!("{} is accepted: {:?}", short(original.0), original.1));
            let wrong = self.platters.holds.lock().expect("no panic").accept(original, marks, self.true_time(wake_at));
            wrong.into_iter().for_each(|what| self.platters.violate(what));
        }
        Ok(accepted)
    }

    async fn advance(&self, mut advance: Advance) -> Result<Advanced, StoreError> {
        let (memory, Platters { late_refunds, holds, .. }) = (&self.memory, &*self.platters);
        let id = advance.id;
        let target = holds.lock().expect("no panic").in_flight.get(&id).map(|identity| identity.target.clone());
        let cools_until = advance.entries.iter().find_map(|entry| match entry {
            Entry::Release(until) if *until > advance.at && memory.outlives_machine() => {
                Some(until.minus(CLOCKS_APART))
            }
            Entry::Release(until) if *until > advance.at => Some(*until),
            _ => None,
        });
        let cools_until = cools_until.map(|until| self.true_time(until));
        self.mine.lock().expect("no panic").insert(id);
        match self.nature.mutant {
            Some(Mutant::NoFencing) => {
                advance.version = memory.task(id).await?.map_or(0, |record| record.version);
            }
            Some(mutant @ (Mutant::LockReleasedEarly | Mutant::CoolDownOfOneClock)) => {
                let early = |entry| match entry {
                    Entry::Release(until) if mutant == Mutant::CoolDownOfOneClock && until > advance.at => {
                        Entry::Release(until.minus(CLOCKS_APART))
                    }
                    Entry::Release(_) => Entry::Release(advance.at),
                    entry => entry,
                };
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
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<WriteAnswer>> {
        self.ask(Duration::MAX, |drive| async move {
            drive.wait().await;
            drive.memory.repeat(identity).await
        })
    }

    fn accept(&self, new: Record, marks: Vec<DeduplicationKey>) -> Stored<'_, Acceptance> {
        let is_given_up = self.drive.nature.is(Mutant::AcceptanceGivenUp);
        let patience = if is_given_up { STEP_PATIENCE } else { Duration::MAX };
        self.ask(patience, |drive| async move { drive.write(drive.accept(new, marks)).await })
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        self.ask(STEP_PATIENCE, |drive| async move {
            let advanced = drive.write(drive.advance(advance)).await;
            if let Some(until) = drive.frozen_until() {
                drive.nature.clock.sleep_until(until).await;
            }
            advanced
        })
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        self.ask(Duration::MAX, move |drive| async move { drive.read(id).await })
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        self.ask(Duration::MAX, move |drive| async move { drive.memory.in_flight(after, limit).await })
    }

    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()> {
        self.ask(Duration::MAX, |drive| async move { drive.memory.mark(marks).await })
    }

    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>> {
        self.ask(Duration::MAX, move |drive| async move { drive.memory.marks(space, after, limit).await })
    }

    fn refunds(&self, filter: RefundFilter) -> Stored<'_, Vec<LedgerRow>> {
        self.drive.memory.refunds(filter)
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, TaskRows> {
        self.drive.memory.tasks(filter)
    }

    fn count_tasks(&self, filter: TaskFilter) -> Stored<'_, StatusCounts> {
        self.drive.memory.count_tasks(filter)
    }

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>> {
        self.drive.memory.timeline(id)
    }

    fn entries(&self, id: TaskId) -> Stored<'_, Vec<LedgerRow>> {
        self.drive.memory.entries(id)
    }

    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>> {
        self.drive.memory.ledger(after, limit)
    }

    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.drive.memory.purge(before, limit)
    }

    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.drive.memory.purge_marks(now, limit)
    }

    fn outlives_machine(&self) -> bool {
        let is_sound = || !self.drive.nature.is(Mutant::QuiesceByOwnersClock) || self.has_started.load(Relaxed);
        self.body.is_some() && is_sound()
    }
}
