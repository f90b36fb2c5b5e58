//! A process that may lead, as the product has it: it waits for its claim, starts as after a crash,
//! beats, and hands over.

use super::Nature;
use super::clients::{Front, open};
use super::disk::Disk;
use super::mutants::Mutant;
use super::pair::Pair;
use super::way::{Asked, Way};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::lease::Lease;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::store::StoreError;
use toolwarrant_memory::Memory;
use toolwarrant_tasks::engine::{Engine, Parts};
use toolwarrant_tasks::machine::Sent;

/// As in the product.
const LEASE: Duration = Duration::from_secs(5);
const MARGIN: Duration = Duration::from_secs(1);
const BEAT_EVERY: Duration = Duration::from_secs(1);
const ASK_EVERY: Duration = Duration::from_millis(200);

/// The times that a request needs, each in milliseconds: at most, or exactly in a tight world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    is_tight: bool,
    connect: u64,
    /// Between the permission to send and the first byte.
    stall: u64,
    pub(super) travel: u64,
}

impl Pace {
    /// Draws the pace of a world. A successor waits for 17 s, from a second after the end of the
    /// lease. So a process may stand still for 6 s, and the request may travel for 9.9 s.
    pub(super) fn new(random: &mut SplitMix, is_tight: bool) -> Self {
        let [connect, stall] =
            [[0, 300, 300, 4_500, 4_500], [0, 6_000, 6_000, 6_000, 6_000]].map(|of| of[random.below(5) as usize]);
        Self { is_tight, connect, stall, travel: 9_900 }
    }

    pub(super) fn draw(&self, nature: &Nature, millis: u64) -> u64 {
        if self.is_tight && nature.chance(80) { millis } else { nature.below(millis + 1) }
    }
}

/// The part of a process that stands still when it is frozen: everything that it does passes here.
/// Its clock goes on.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) nature: Arc<Nature>,
    pub(super) clock: Clock,
    /// In milliseconds.
    pub(super) ahead: i64,
    way: Arc<Way>,
    pub(super) pace: Pace,
    frozen_until: Mutex<Timestamp>,
    hands: Mutex<JoinSet<()>>,
    lease: Lease,
    pub(super) session: AtomicU64,
}

impl Body {
    pub(super) fn new(nature: &Arc<Nature>, way: &Arc<Way>, pace: Pace, ahead: i64) -> Self {
        let clock = Clock::start_at(Timestamp(nature.clock.now().0.saturating_add_signed(ahead)));
        let (nature, way, lease) = (Arc::clone(nature), Arc::clone(way), Lease::new(clock.clone()));
        let (frozen_until, hands, session) = Default::default();
        Self { nature, clock, ahead, way, pace, frozen_until, hands, lease, session }
    }

    pub(super) async fn connect(&self) {
        let connect = self.pace.draw(&self.nature, self.pace.connect);
        self.nature.clock.sleep_until(self.nature.clock.now().plus(Duration::from_millis(connect))).await;
        self.thaw().await;
    }

    pub(super) async fn stall(&self) {
        let stall = Duration::from_millis(self.pace.draw(&self.nature, self.pace.stall));
        let until = self.nature.clock.now().plus(stall);
        self.freeze(until);
        self.nature.clock.sleep_until(until).await;
    }

    /// Carries out a send. If it is given up, it ends, unless the process is frozen: then it does
    /// not notice, and goes on when it has thawed.
    pub(super) async fn send(&self, work: impl Future<Output = Sent> + Send + 'static) -> Sent {
        let (tell, told) = oneshot::channel();
        let abort = self.hands.lock().expect("no panic").spawn(async { drop(tell.send(work.await)) });
        let guard = Guard { body: self, abort };
        let sent = told.await.unwrap_or_else(|_| Sent::NoAnswer("the process died".into()));
        drop(guard);
        sent
    }

    pub(super) fn freeze(&self, until: Timestamp) {
        let mut frozen_until = self.frozen_until.lock().expect("no panic");
        *frozen_until = until.max(*frozen_until);
        if self.nature.is(Mutant::LeaseByTimer) && self.lease.stands() {
            let (clock, lease) = (self.nature.clock.clone(), self.lease.clone());
            tokio::spawn(async move {
                clock.sleep_until(until).await;
                lease.extend(lease.begin(), LEASE / 2);
            });
        }
    }

    fn frozen_until(&self) -> Timestamp {
        *self.frozen_until.lock().expect("no panic")
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen_until() > self.nature.clock.now()
    }

    /// Does work of the process, which stands still at any await while the process is frozen.
    pub(super) async fn live<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let poll = |context: &mut std::task::Context<'_>| {
            if !self.is_frozen() {
                return work.as_mut().poll(context);
            }
            let (clock, until, waker) = (self.nature.clock.clone(), self.frozen_until(), context.waker().clone());
            tokio::spawn(async move {
                clock.sleep_until(until).await;
                waker.wake();
            });
            Poll::Pending
        };
        poll_fn(poll).await
    }

    pub(super) async fn thaw(&self) {
        while self.is_frozen() {
            self.nature.clock.sleep_until(self.frozen_until()).await;
        }
    }

    pub(super) async fn ask<T: Send + 'static>(
        &self,
        is_beat: bool,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.thaw().await;
        let answer = self.way.carry(is_beat, work).await;
        self.thaw().await;
        answer
    }
}

struct Guard<'a> {
    body: &'a Body,
    abort: AbortHandle,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.body.is_frozen() {
            self.abort.abort();
        }
    }
}

pub(super) struct Contender {
    pub(super) body: Arc<Body>,
    pub(super) front: Option<Arc<Front>>,
    pub(super) calls: JoinSet<()>,
    pub(super) stop: Option<oneshot::Sender<()>>,
    main: JoinHandle<()>,
}

impl Contender {
    pub(super) fn start(pair: &Arc<Pair>, place: usize, body: Body) -> Self {
        let (body, (stop, stopped)) = (Arc::new(body), oneshot::channel());
        let (pair, its) = (Arc::clone(pair), Arc::clone(&body));
        let main = tokio::spawn(async move {
            its.live(pair.contend(place, &its, stopped)).await;
            pair.end(place, &its);
        });
        Self { body, front: None, calls: JoinSet::new(), stop: Some(stop), main }
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        self.main.abort();
        self.body.hands.lock().expect("no panic").abort_all();
    }
}

/// With the time since which each part is known.
#[derive(Default)]
struct Watched {
    beat: Option<((u64, u64), Timestamp)>,
    holder: Option<(u64, Timestamp)>,
}

fn note<T: PartialEq>(known: &mut Option<(T, Timestamp)>, seen: T, now: Timestamp) -> Duration {
    if known.as_ref().is_none_or(|(known, _)| *known != seen) {
        *known = Some((seen, now));
    }
    known.as_ref().map_or(Duration::ZERO, |(_, since)| now.since(*since))
}

impl Pair {
    async fn contend(self: &Arc<Self>, place: usize, body: &Arc<Body>, stopped: oneshot::Receiver<()>) {
        let (epoch, memory) = self.wait_to_lead(place, body).await;
        self.world.nature.note(|| format!("process {place} leads as {epoch}"));
        tokio::select! {
            biased;
            () = self.beat(body, epoch) => {}
            _ = self.lead(place, body, (epoch, memory), stopped) => {}
        }
    }

    async fn wait_to_lead(self: &Arc<Self>, place: usize, body: &Body) -> (u64, Memory) {
        let (mut watched, former) = (Watched::default(), self.folders[place].load(Relaxed));
        let mut session = self.claim.connect();
        loop {
            body.session.store(session, Relaxed);
            let (claim, now) = (Arc::clone(&self.claim), || self.world.nature.clock.now());
            match body.ask(false, async move { Ok(claim.ask(session, former)) }).await {
                Ok(Asked { other, run }) => {
                    let silence = run.map(|run| note(&mut watched.beat, run, now()));
                    let is_over = silence.is_none_or(|silence| silence >= LEASE + MARGIN);
                    let held_for = other.map(|other| note(&mut watched.holder, other, now()));
                    match held_for {
                        None if is_over || self.world.nature.is(Mutant::TakeOverAtOnce) => {
                            let pair = Arc::clone(self);
                            if let Ok(begun) = body.ask(false, async move { pair.begin(session) }).await {
                                self.folders[place].store(begun.0, Relaxed);
                                return begun;
                            }
                        }
                        Some(held_for) if is_over && held_for >= LEASE + MARGIN => self.claim.disconnect(other),
                        _ => {}
                    }
                }
                Err(_) => {
                    self.claim.disconnect(Some(session));
                    session = self.claim.connect();
                }
            }
            self.world.nature.clock.sleep_until(now().plus(ASK_EVERY)).await;
        }
    }

    fn begin(&self, session: u64) -> Result<(u64, Memory), StoreError> {
        let begun = self.claim.begin(session, &self.world.platters.memory)?;
        self.check_all_answers();
        Ok(begun)
    }

    async fn beat(&self, body: &Body, epoch: u64) {
        let Nature { clock, .. } = &*self.world.nature;
        let session = body.session.load(Relaxed);
        loop {
            let (next, start, claim) = (clock.now().plus(BEAT_EVERY), body.lease.begin(), Arc::clone(&self.claim));
            if body.ask(true, async move { claim.beat(session, epoch) }).await.is_err() {
                return;
            }
            let is_late = self.world.nature.is(Mutant::LeaseFromAnswer);
            body.lease.extend(if is_late { body.lease.begin() } else { start }, LEASE);
            clock.sleep_until(next).await;
        }
    }

    async fn lead(
        self: &Arc<Self>,
        place: usize,
        body: &Arc<Body>,
        (epoch, memory): (u64, Memory),
        stopped: oneshot::Receiver<()>,
    ) -> Result<(), StoreError> {
        let memory = Arc::new(memory);
        let disk = Arc::new(Disk::reach(body, &self.world.platters, Arc::clone(&memory)));
        let mut lease = body.lease.clone();
        if self.world.nature.is(Mutant::AnswerWithoutLease) {
            lease = Lease::new(body.clock.clone());
            lease.extend(lease.begin(), Duration::from_hours(24));
        }
        let registry = open(memory, &body.clock, &self.world.random, Some(lease)).await;
        let engine = Engine::start(Parts {
            store: disk.clone(),
            executor: Arc::new(self.world.wheels.reach(body)),
            catalogue: None,
            keyring: self.world.keyring.clone(),
            clock: body.clock.clone(),
            random: self.world.random.clone(),
            max_in_flight: 100,
            lease: Some(body.lease.clone()),
        });
        let engine = engine.await?;
        disk.has_started.store(true, Relaxed);
        // Without it, they would read the clock of this machine.
        let wall = Clock::manual(body.clock.now());
        let mut nonces = Nonces::new(wall.clone());
        if !self.world.nature.is(Mutant::NoncesOfOneClock) {
            nonces = nonces.after_another_machine();
        }
        let read = engine.first_read().await?;
        if !self.world.nature.is(Mutant::BelieveEachRead) {
            nonces = nonces.after_runs(&registry.access(), read.as_deref());
        }
        let body = Arc::clone(body);
        let front = Front { body, epoch, registry, nonces, wall, engine, is_closed: Default::default() };
        let front = Arc::new(front);
        let Front { body, engine, is_closed, .. } = &*front;
        self.serve(place, &front);
        Arc::clone(engine).run(async { drop(stopped.await) }).await;
        engine.close();
        *is_closed.write().await = true;
        self.world.nature.note(|| format!("process {place} leaves"));
        body.lease.end();
        let claim = Arc::clone(&self.claim);
        body.ask(false, async move { claim.leave(epoch) }).await
    }
}
