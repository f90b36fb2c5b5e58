//! The link from one replica to the store: late, cut, and losing requests and answers. Under some
//! mutants, the store omits a duty.
//!
//! A request that is on its way arrives even if its sender dies. When the link reports a failure,
//! the request has arrived, or it never will. Each write of a run that has ended, and lands all the
//! same, is a violation.

use super::disk::{Disk, Platters};
use super::replica::Body;
use super::{Mutant, Nature, short};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::cluster::{Beat, Beats, ClusterStore, Epoch};
use toolwarrant_core::store::{StoreError, Stored};
use toolwarrant_store::testing::memory::Memory;
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, DeduplicationKey, DuplicateOf, Identity, LedgerRow, NewTask, OpenTask, Record,
    RefundFilter, TaskFilter, TaskRows, TaskStore, TimelineEvent,
};
use toolwarrant_tasks::task::{Phase, TaskId};

/// Longest wait for a link that is cut, until a request fails.
const PATIENCE: Duration = Duration::from_secs(3);

/// The way between a replica and the store, which stays when the replica starts again.
#[derive(Debug)]
pub(super) struct Wire {
    nature: Arc<Nature>,
    /// The longest delay of each direction, in milliseconds.
    pub(super) slow: u64,
    /// Percentage of requests that are lost, and of answers.
    pub(super) lossy: u64,
    cut_until: Mutex<Timestamp>,
}

impl Wire {
    pub(super) fn new(nature: &Arc<Nature>, random: &mut SplitMix) -> Self {
        let (slow, lossy) =
            ([0, 2, 200, 2_000, 2_000][random.below(5) as usize], [0, 0, 2, 8][random.below(4) as usize]);
        Self { nature: Arc::clone(nature), slow, lossy, cut_until: Mutex::default() }
    }

    pub(super) fn cut(&self, until: Timestamp) {
        let mut cut_until = self.cut_until.lock().expect("no panic");
        *cut_until = until.max(*cut_until);
    }

    /// Passes something on, or loses it.
    async fn pass(&self) -> Result<(), StoreError> {
        let Nature { clock, .. } = &*self.nature;
        if self.slow > 0 {
            self.nature.pause(Duration::from_millis(self.slow)).await;
        }
        let gives_up = clock.now().plus(PATIENCE);
        let cut_until = || *self.cut_until.lock().expect("no panic");
        while cut_until() > clock.now() && clock.now() < gives_up {
            clock.sleep_until(cut_until().min(gives_up)).await;
        }
        if cut_until() > clock.now() || self.nature.chance(self.lossy) {
            return Err(StoreError::Unavailable("the connection to the store broke".to_owned()));
        }
        Ok(())
    }
}

/// The runs of all replicas, by epoch, and the run that drives each task.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) stores: Mutex<HashMap<Epoch, Arc<Memory>>>,
    owners: Mutex<HashMap<TaskId, Epoch>>,
}

/// The store, as one run of a replica reaches it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) body: Arc<Body>,
    wire: Arc<Wire>,
    remote: Arc<Remote>,
    /// True if the store has once answered that this run has not ended.
    confirmed: AtomicBool,
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
        let memory = Arc::new(platters.memory.replica(body.name));
        runs.stores.lock().expect("no panic").insert(memory.epoch(), Arc::clone(&memory));
        let nature = &body.nature;
        let disk = Disk::new(nature, platters, Arc::clone(&memory));
        let adopted = Mutex::default();
        let (nature, platters, runs) = (Arc::clone(nature), Arc::clone(platters), Arc::clone(runs));
        let remote = Arc::new(Remote { nature, platters, runs, memory, disk, adopted });
        Self { body: Arc::clone(body), wire: Arc::clone(wire), remote, confirmed: AtomicBool::new(false) }
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.remote.memory.epoch()
    }

    pub(super) fn beat(&self, beat: Beat) -> Stored<'_, Beats> {
        Box::pin(async move {
            let beats = self.carry(move |remote| async move { remote.memory.beat(beat).await }).await?;
            let is_member = beats.replicas.iter().any(|row| row.epoch == self.epoch() && !row.state.has_ended());
            self.confirmed.fetch_or(is_member, Relaxed);
            Ok(beats)
        })
    }

    pub(super) fn evict(&self, epoch: Epoch, beat: u64) -> Stored<'_, bool> {
        self.carry(move |remote| async move { remote.memory.evict(epoch, beat).await })
    }

    pub(super) fn leave(&self) -> Stored<'_, ()> {
        self.carry(|remote| async move { remote.memory.leave().await })
    }

    /// Lets the store do `work`, unless the request is lost. The answer can be lost, too.
    fn carry<'a, T, F>(&'a self, work: impl FnOnce(Arc<Remote>) -> F + Send + 'a) -> Stored<'a, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        Box::pin(async move {
            self.body.thaw().await;
            let (tell, told) = oneshot::channel();
            let (wire, work) = (Arc::clone(&self.wire), work(Arc::clone(&self.remote)));
            tokio::spawn(async move {
                let answer = async {
                    wire.pass().await?;
                    let done = work.await;
                    wire.pass().await?;
                    done
                };
                drop(tell.send(answer.await));
            });
            let answer = told.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the world ends".to_owned())));
            self.body.thaw().await;
            answer
        })
    }
}

impl Remote {
    /// Returns true if this run has ended.
    async fn has_ended(&self) -> bool {
        !self.memory.may_send().await.unwrap_or(false)
    }

    /// Records a write of a run that has ended.
    async fn check(&self, lands: bool, what: &str) {
        if lands && self.has_ended().await {
            let what = format!("a write of the ended run {} lands: {what}", self.memory.epoch());
            self.platters.violations.lock().expect("no panic").push(what);
        }
    }

    fn own(&self, id: TaskId) {
        self.runs.owners.lock().expect("no panic").insert(id, self.memory.epoch());
    }

    async fn accept(&self, new: NewTask) -> Result<Acceptance, StoreError> {
        let id = new.id;
        let accepted = TaskStore::accept(&self.disk, new).await?;
        let is_fresh = matches!(accepted, Acceptance::Fresh { .. });
        self.check(is_fresh, "an acceptance").await;
        if is_fresh {
            self.own(id);
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
        self.check(advanced == Advanced::Written, "a step").await;
        Ok(advanced)
    }

    async fn adopt(&self, orphans: Vec<TaskId>) -> Result<Vec<TaskId>, StoreError> {
        let adopted = self.memory.adopt(orphans).await?;
        self.check(!adopted.is_empty(), "an adoption").await;
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

impl TaskStore for Link {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<DuplicateOf>> {
        self.carry(|remote| async move { remote.memory.repeat(identity).await })
    }

    fn accept(&self, new: NewTask) -> Stored<'_, Acceptance> {
        self.carry(|remote| async move { remote.accept(new).await })
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        self.carry(|remote| async move { remote.advance(advance).await })
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        self.carry(move |remote| async move { remote.in_flight(after, limit).await })
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        self.carry(move |remote| async move { remote.read(id).await })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn may_send(&self) -> Stored<'_, bool> {
        if self.remote.nature.is(Mutant::ConfirmationForEver) && self.confirmed.load(Relaxed) {
            return Box::pin(async { Ok(true) });
        }
        Box::pin(async {
            let answer = self.carry(|remote| async move { remote.memory.may_send().await }).await;
            self.confirmed.fetch_or(answer == Ok(true), Relaxed);
            answer
        })
    }

    fn orphans(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        self.carry(move |remote| async move { remote.memory.orphans(after, limit).await })
    }

    fn adopt(&self, orphans: Vec<TaskId>) -> Stored<'_, Vec<TaskId>> {
        self.carry(|remote| async move { remote.adopt(orphans).await })
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
        self.carry(move |remote| async move { remote.memory.purge(before, limit).await })
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
