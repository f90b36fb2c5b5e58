//! The link from one replica to the store: late, cut, and losing requests and answers. Under some
//! mutants, the store omits a duty.
//!
//! A request that is on its way arrives even if its sender dies. A write can arrive after its
//! sender has given it up. An acceptance is never given up: when the link reports that it failed,
//! it has arrived, or it never will.
//!
//! Each write of a run that has ended, and lands all the same, is a violation, and so is each
//! eviction of a run whose lease stands.

use super::disk::{Disk, Platters};
use super::replica::Body;
use super::{Mutant, Nature, short};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::cluster::{Beat, BeatNumber, Beats, ClusterStore, Epoch, Lease};
use toolwarrant_core::store::{StoreError, Stored};
use toolwarrant_memory::Memory;
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, DeduplicationKey, DuplicateOf, Identity, LedgerRow, NewTask, OpenTask, Record,
    RefundFilter, TaskFilter, TaskRows, TaskStore, TimelineEvent,
};
use toolwarrant_tasks::task::{Phase, TaskId};

/// Longest wait for a link that is cut, until a request fails.
const PATIENCE: Duration = Duration::from_secs(3);

/// Longest delay of a beat in each direction, in milliseconds. A replica whose beats are slower
/// than its patience cannot work.
const BEAT_SLOW: u64 = 600;

/// Time after which the sender of a write gives it up.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// The way between a replica and the store, which stays when the replica starts again.
#[derive(Debug)]
pub(super) struct Wire {
    nature: Arc<Nature>,
    /// The longest delay of each direction, in milliseconds.
    slow: u64,
    /// Percentage of requests that are lost, and of answers.
    lossy: u64,
    cut_until: Mutex<Timestamp>,
    /// The time until which it carries no answers.
    mute_until: Mutex<Timestamp>,
}

impl Wire {
    pub(super) fn new(nature: &Arc<Nature>, random: &mut SplitMix) -> Self {
        let (slow, lossy) =
            ([0, 2, 200, 2_000, 2_000][random.below(5) as usize], [0, 0, 2, 8][random.below(4) as usize]);
        nature.note(|| format!("a wire: {slow} ms slow, {lossy} percent lost"));
        Self { nature: Arc::clone(nature), slow, lossy, cut_until: Mutex::default(), mute_until: Mutex::default() }
    }

    pub(super) fn cut(&self, until: Timestamp) {
        let mut cut_until = self.cut_until.lock().expect("no panic");
        *cut_until = until.max(*cut_until);
    }

    pub(super) fn mute(&self, until: Timestamp) {
        *self.mute_until.lock().expect("no panic") = until;
    }

    /// Passes something on, or loses it. Takes at most that many milliseconds if it is not cut.
    async fn pass(&self, slow: u64) -> Result<(), StoreError> {
        let Nature { clock, .. } = &*self.nature;
        if slow > 0 {
            self.nature.pause(Duration::from_millis(slow)).await;
        }
        let gives_up = clock.now().plus(PATIENCE);
        let cut_until = || *self.cut_until.lock().expect("no panic");
        while cut_until() > clock.now() && clock.now() < gives_up {
            clock.sleep_until(cut_until().min(gives_up)).await;
        }
        if cut_until() > clock.now() || self.nature.chance(self.lossy) {
            return Err(break_link());
        }
        Ok(())
    }

    /// Passes a part of a write on. If it is lost, it may be sent again.
    async fn pass_on(&self) -> Result<(), StoreError> {
        let mut passed = self.pass(self.slow).await;
        while passed.is_err() && self.nature.chance(50) {
            passed = self.pass(self.slow).await;
        }
        passed
    }
}

fn break_link() -> StoreError {
    StoreError::Unavailable("the connection to the store broke".to_owned())
}

/// The runs of all replicas, by epoch, and the run that drives each task.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) stores: Mutex<HashMap<Epoch, Arc<Memory>>>,
    pub(super) leases: Mutex<HashMap<Epoch, Lease>>,
    /// The time of the store at the latest beat of each run.
    beaten_at: Mutex<HashMap<Epoch, Timestamp>>,
    owners: Mutex<HashMap<TaskId, Epoch>>,
    /// The latest run that each run has seen in the answer to a beat.
    pub(super) seen: Mutex<HashMap<Epoch, Epoch>>,
}

/// The store, as one run of a replica reaches it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) body: Arc<Body>,
    wire: Arc<Wire>,
    remote: Arc<Remote>,
    /// The true time before the latest beat that was answered, in milliseconds.
    heard_at: AtomicU64,
}

/// The other end of a link.
#[derive(Debug)]
struct Remote {
    nature: Arc<Nature>,
    platters: Arc<Platters>,
    runs: Arc<Runs>,
    memory: Arc<Memory>,
    disk: Disk,
    /// Tasks that this run has adopted, true if it has read them since.
    adopted: Mutex<HashMap<TaskId, bool>>,
}

impl Link {
    pub(super) fn new(body: &Arc<Body>, wire: &Arc<Wire>, platters: &Arc<Platters>, runs: &Arc<Runs>) -> Self {
        let memory = Arc::new(platters.memory.replica(body.name).with_clock(body.nature.clock.clone()));
        runs.stores.lock().expect("no panic").insert(memory.epoch(), Arc::clone(&memory));
        let nature = &body.nature;
        let disk = Disk::new(nature, platters, Arc::clone(&memory));
        let adopted = Mutex::default();
        let (nature, platters, runs) = (Arc::clone(nature), Arc::clone(platters), Arc::clone(runs));
        let remote = Arc::new(Remote { nature, platters, runs, memory, disk, adopted });
        Self { body: Arc::clone(body), wire: Arc::clone(wire), remote, heard_at: AtomicU64::new(0) }
    }

    /// Returns the store as this run has opened it, without the way to it.
    pub(super) fn store(&self) -> Arc<Memory> {
        Arc::clone(&self.remote.memory)
    }

    /// Returns the true time before the latest beat that was answered.
    pub(super) fn heard_at(&self) -> Timestamp {
        Timestamp(self.heard_at.load(Relaxed))
    }

    /// Lets the store do `work`, unless the request is lost. The answer can be lost, too.
    fn read<'a, T, F>(&'a self, work: impl FnOnce(Arc<Remote>) -> F + Send + 'a) -> Stored<'a, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        Box::pin(self.carry(self.wire.slow, work))
    }

    /// Like [`Self::read`], on a way that takes at most that many milliseconds.
    async fn carry<T, F>(&self, slow: u64, work: impl FnOnce(Arc<Remote>) -> F + Send) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.body.thaw().await;
        let (wire, work) = (Arc::clone(&self.wire), work(Arc::clone(&self.remote)));
        let request = async move {
            wire.pass(slow).await?;
            let done = work.await;
            let is_mute = *wire.mute_until.lock().expect("no panic") > wire.nature.clock.now();
            wire.pass(slow).await?;
            if is_mute { Err(break_link()) } else { done }
        };
        self.receive(request).await
    }

    /// Lets the store write. The sender gives up after some time, unless it has to know.
    fn write<'a, T, F>(&'a self, has_to_know: bool, work: impl FnOnce(Arc<Remote>) -> F + Send + 'a) -> Stored<'a, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        Box::pin(async move {
            self.body.thaw().await;
            let (wire, remote, work) =
                (Arc::clone(&self.wire), Arc::clone(&self.remote), work(Arc::clone(&self.remote)));
            let written = self.receive(async move {
                wire.pass_on().await?;
                remote.platters.wait_for_standby(&remote.nature.clock).await;
                let done = work.await?;
                let (timeline, writes) = remote.memory.read_timeline();
                wire.pass_on().await?;
                // A failover breaks all connections.
                let is_same = remote.memory.read_timeline().0 == timeline;
                is_same.then_some((done, writes)).ok_or_else(break_link)
            });
            let clock = &self.body.nature.clock;
            let written = match has_to_know {
                true => Some(written.await),
                false => self.body.live(clock.before(clock.now().plus(WRITE_PATIENCE), written)).await,
            };
            let (done, writes) = written.unwrap_or_else(|| Err(break_link()))?;
            if !self.remote.nature.is(Mutant::BelieveForgetfulStore) {
                self.remote.memory.acknowledge(writes);
            }
            Ok(done)
        })
    }

    /// Returns the answer to a request that goes its way whatever happens here.
    async fn receive<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move { drop(tell.send(request.await)) });
        let answer = told.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the world ends".to_owned())));
        self.body.thaw().await;
        answer
    }
}

impl Remote {
    /// Records a write of a run that has ended.
    fn check(&self, lands: bool, what: &str) {
        if lands && self.memory.has_ended() {
            self.platters.violate(format!("a write of the ended run {} lands: {what}", self.memory.epoch()));
        }
    }

    fn own(&self, id: TaskId) {
        self.runs.owners.lock().expect("no panic").insert(id, self.memory.epoch());
    }

    async fn beat(&self, beat: Beat) -> Result<Beats, StoreError> {
        let Nature { mutant, clock, .. } = &*self.nature;
        self.platters.wait_for_standby(clock).await;
        let runs = if *mutant == Some(Mutant::BelieveStoreWithoutRuns) { 0 } else { beat.runs };
        let mut beats = self.memory.beat(Beat { runs, ..beat }).await?;
        let off = self.platters.clock_off.load(Relaxed);
        beats.now = Timestamp(beats.now.0.saturating_add_signed(off));
        if *mutant == Some(Mutant::RevocationUnconfirmed) {
            beats.replicas.iter_mut().for_each(|row| row.seen = u64::MAX);
        }
        if *mutant == Some(Mutant::BeatsWithoutTimeline) {
            beats.replicas.iter_mut().for_each(|row| row.beat.timeline = 0);
        }
        if *mutant == Some(Mutant::EvictByStoreClock) {
            self.evict_silent(&beats).await;
        }
        Ok(beats)
    }

    /// Evicts replicas whose latest beat is old by the clock of the store.
    async fn evict_silent(&self, beats: &Beats) {
        let known = || self.runs.beaten_at.lock().expect("no panic");
        known().insert(self.memory.epoch(), beats.now);
        for row in beats.replicas.iter().filter(|row| !row.state.has_ended()) {
            let beaten_at = known().get(&row.epoch).copied().unwrap_or(beats.now);
            if beats.now.since(beaten_at) > row.lease + Duration::from_secs(1) {
                drop(self.evict(row.epoch, row.beat).await);
            }
        }
    }

    async fn evict(&self, epoch: Epoch, mut beat: BeatNumber) -> Result<bool, StoreError> {
        if self.nature.is(Mutant::BeatsWithoutTimeline) {
            beat.timeline = self.memory.read_timeline().0;
        }
        let evicted = self.memory.evict(epoch, beat).await?;
        self.check(evicted, "an eviction");
        self.nature.note(|| format!("{} evicts {epoch}: {evicted}", self.memory.epoch()));
        if evicted && self.runs.leases.lock().expect("no panic").get(&epoch).is_some_and(Lease::stands) {
            self.platters.violate(format!("{epoch} is evicted, and its lease stands"));
        }
        Ok(evicted)
    }

    async fn accept(&self, mut new: NewTask) -> Result<Acceptance, StoreError> {
        let id = new.id;
        let mut accepted = TaskStore::accept(&self.disk, new.clone()).await?;
        let is_fresh = matches!(accepted, Acceptance::Fresh { .. });
        self.check(is_fresh, "an acceptance");
        if is_fresh {
            self.own(id);
        }
        if self.nature.is(Mutant::BatchUnderNewNumber) && self.nature.chance(20) {
            new.marks.clear();
            accepted = TaskStore::accept(&self.disk, new).await?;
        }
        Ok(accepted)
    }

    async fn advance(&self, advance: Advance) -> Result<Advanced, StoreError> {
        let id = advance.id;
        let owner = self.runs.owners.lock().expect("no panic").get(&id).copied();
        let owner = owner.filter(|_| self.nature.is(Mutant::NoOwnerInFence));
        let owner = owner.and_then(|owner| self.runs.stores.lock().expect("no panic").get(&owner).cloned());
        let advanced = match owner {
            Some(owner) => TaskStore::advance(&Disk::new(&self.nature, &self.platters, owner), advance).await?,
            None => TaskStore::advance(&self.disk, advance).await?,
        };
        self.check(advanced == Advanced::Written, "a step");
        Ok(advanced)
    }

    async fn adopt(&self, orphans: Vec<TaskId>) -> Result<Vec<TaskId>, StoreError> {
        let adopted = self.memory.adopt(orphans).await?;
        self.check(!adopted.is_empty(), "an adoption");
        let mut known = self.adopted.lock().expect("no panic");
        let mut fresh = Vec::new();
        for id in &adopted {
            self.own(*id);
            if known.insert(*id, false).is_none() {
                self.nature.note(|| format!("{} is adopted by {}", short(*id), self.memory.epoch()));
                fresh.push(*id);
            }
        }
        Ok(if self.nature.is(Mutant::AdoptionOnce) { fresh } else { adopted })
    }

    /// Returns the tasks of this run. Under two mutants, a start adopts as if it had found tasks of
    /// its own.
    async fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Result<Vec<OpenTask>, StoreError> {
        if after.is_none() && (self.nature.is(Mutant::QuiesceByOwnersClock) || self.nature.is(Mutant::AdoptAtOnce)) {
            let orphans = self.memory.orphans(None, limit).await?;
            drop(self.adopt(orphans.into_iter().map(|task| task.id).collect()).await);
        }
        self.memory.in_flight(after, limit).await
    }

    async fn read(&self, id: TaskId) -> Result<Option<Record>, StoreError> {
        let mut record = self.memory.task(id).await?;
        let mut adopted = self.adopted.lock().expect("no panic");
        if let (Some(Record { task, .. }), Some(was_read)) = (&mut record, adopted.get_mut(&id))
            && task.phase == Phase::Sending
        {
            if self.nature.is(Mutant::AdoptAtOnce) {
                task.send_not_after = Some(Timestamp(0));
            }
            if self.nature.is(Mutant::AdopterRepeats) && !*was_read {
                task.phase = Phase::Ready;
            }
            *was_read = true;
        }
        Ok(record)
    }
}

impl ClusterStore for Link {
    fn epoch(&self) -> Epoch {
        self.remote.memory.epoch()
    }

    fn name(&self) -> String {
        self.remote.memory.name()
    }

    fn lease(&self) -> Duration {
        self.remote.memory.lease()
    }

    fn beat(&self, beat: Beat) -> Stored<'_, Beats> {
        Box::pin(async move {
            let clock = &self.body.nature.clock;
            clock.sleep_until(self.body.deaf_until()).await;
            let sent = clock.now();
            let slow = self.wire.slow.min(BEAT_SLOW);
            let beats = self.carry(slow, move |remote| async move { remote.beat(beat).await }).await?;
            self.heard_at.fetch_max(sent.0, Relaxed);
            let newest = beats.replicas.iter().map(|row| row.epoch).max();
            self.remote.runs.seen.lock().expect("no panic").extend(newest.map(|newest| (self.epoch(), newest)));
            Ok(beats)
        })
    }

    fn settle(&self, silent: Vec<Epoch>) -> Stored<'_, ()> {
        self.read(|remote| async move { remote.memory.settle(silent).await })
    }

    fn correct_time(&self, known: i64, ahead: i64) -> Stored<'_, ()> {
        self.read(move |remote| async move { remote.memory.correct_time(known, ahead).await })
    }

    fn evict(&self, epoch: Epoch, beat: BeatNumber) -> Stored<'_, bool> {
        self.write(false, move |remote| async move { remote.evict(epoch, beat).await })
    }

    fn leave(&self) -> Stored<'_, ()> {
        self.write(false, |remote| async move { remote.memory.leave().await })
    }

    fn forget_ended(&self, epochs: Vec<Epoch>) -> Stored<'_, ()> {
        self.write(false, |remote| async move { remote.memory.forget_ended(epochs).await })
    }
}

impl TaskStore for Link {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<DuplicateOf>> {
        self.read(|remote| async move { remote.memory.repeat(identity).await })
    }

    fn accept(&self, new: NewTask) -> Stored<'_, Acceptance> {
        let has_to_know = !self.remote.nature.is(Mutant::AcceptanceGivenUp);
        self.write(has_to_know, |remote| async move { remote.accept(new).await })
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        self.write(false, |remote| async move { remote.advance(advance).await })
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        self.read(move |remote| async move { remote.in_flight(after, limit).await })
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        self.read(move |remote| async move { remote.read(id).await })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn may_send(&self) -> Stored<'_, bool> {
        if self.remote.nature.is(Mutant::ConfirmationForEver) && self.heard_at() > Timestamp(0) {
            return Box::pin(async { Ok(true) });
        }
        self.read(|remote| async move { remote.memory.may_send().await })
    }

    fn orphans(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        self.read(move |remote| async move { remote.memory.orphans(after, limit).await })
    }

    fn adopt(&self, orphans: Vec<TaskId>) -> Stored<'_, Vec<TaskId>> {
        self.write(false, |remote| async move { remote.adopt(orphans).await })
    }

    fn find_ended(&self, ids: Vec<TaskId>) -> Stored<'_, Vec<TaskId>> {
        if self.remote.nature.is(Mutant::NoticesAlone) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        self.read(|remote| async move { remote.memory.find_ended(ids).await })
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, TaskRows> {
        self.remote.memory.tasks(filter)
    }

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>> {
        self.remote.memory.timeline(id)
    }

    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>> {
        self.remote.memory.ledger(after, limit)
    }

    fn refunds(&self, filter: RefundFilter) -> Stored<'_, Vec<LedgerRow>> {
        self.remote.memory.refunds(filter)
    }

    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.write(false, move |remote| async move { remote.memory.purge(before, limit).await })
    }

    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()> {
        self.remote.memory.mark(marks)
    }

    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>> {
        self.remote.memory.marks(space, after, limit)
    }

    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.remote.memory.purge_marks(now, limit)
    }
}
