//! One run of a replica, as the server has it: its clock, its membership, the applications and keys
//! that it knows, and its engine.

use super::cluster::Cluster;
use super::link::Link;
use super::mutants::Mutant;
use super::{Nature, operator};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::cluster::{Cluster as _, ClusterStore, LEASE, Membership, ReplicaState};
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::registry::Registry;
use toolwarrant_tasks::engine::{Engine, Parts};
use toolwarrant_tasks::machine::Sent;

/// The part of a process that stands still when it is frozen: everything that it does passes here.
/// Its clock goes on.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) nature: Arc<Nature>,
    pub(super) name: &'static str,
    /// Its clock, which is up to a second ahead or behind.
    pub(super) clock: Clock,
    frozen_until: Mutex<Timestamp>,
    /// The time until which no beat gets through, and other requests do.
    deaf_until: Mutex<Timestamp>,
    pub(super) pace: Pace,
    /// Sends in progress.
    hands: Mutex<JoinSet<()>>,
}

/// The times that a request needs, each in milliseconds: at most, or exactly in a tight world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    is_tight: bool,
    /// To connect to the upstream.
    connect: u64,
    /// Between the permission to send and the first byte.
    stall: u64,
    /// On its way, if it is slow.
    pub(super) travel: u64,
    /// How much a clock is wrong at its start. It comes near to that of the store.
    skew: [u64; 4],
}

impl Pace {
    /// Draws the pace of a world. An adopter waits for 17 s from a permission to send that holds
    /// for a second. So a process may stand still for 6 s, and the request may travel for 9.9 s.
    pub(super) fn new(random: &mut SplitMix, is_tight: bool, is_skewed: bool) -> Self {
        let [connect, stall] =
            [[0, 300, 300, 4_500, 4_500], [0, 6_000, 6_000, 6_000, 6_000]].map(|of| of[random.below(5) as usize]);
        let skew = if is_skewed { [0, 400, 1_000, 1_000] } else { [0, 0, 400, 400] };
        Self { is_tight, connect, stall, travel: 9_900, skew }
    }

    /// Returns a time of at most `millis`; in a tight world exactly that, mostly.
    pub(super) fn draw(&self, nature: &Nature, millis: u64) -> u64 {
        if self.is_tight && nature.chance(80) { millis } else { nature.below(millis + 1) }
    }
}

impl Body {
    /// The process starts at `now`, by the store.
    pub(super) fn new(nature: &Arc<Nature>, name: &'static str, now: Timestamp, pace: Pace) -> Self {
        let skew = Duration::from_millis(pace.skew[nature.below(4) as usize].min(nature.below(1_500)));
        let now = if nature.chance(50) { now.plus(skew) } else { now.minus(skew) };
        let clock = Clock::of_store(now, now);
        let (nature, frozen_until, deaf_until, hands) =
            (Arc::clone(nature), Mutex::default(), Mutex::default(), Mutex::default());
        Self { nature, name, clock, frozen_until, deaf_until, pace, hands }
    }

    /// Connects to the upstream.
    pub(super) async fn connect(&self) {
        let connect = self.pace.draw(&self.nature, self.pace.connect);
        self.nature.clock.sleep_until(self.nature.clock.now().plus(Duration::from_millis(connect))).await;
        self.thaw().await;
    }

    /// Stands still right before the first byte of a request leaves. No check comes after that.
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
    }

    pub(super) fn deafen(&self, until: Timestamp) {
        *self.deaf_until.lock().expect("no panic") = until;
    }

    pub(super) fn deaf_until(&self) -> Timestamp {
        *self.deaf_until.lock().expect("no panic")
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

    /// Waits until the process is not frozen.
    pub(super) async fn thaw(&self) {
        while self.is_frozen() {
            self.nature.clock.sleep_until(self.frozen_until()).await;
        }
    }
}

/// Ends a send that is given up.
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

/// The parts of a run that answer clients.
pub(super) struct Front {
    pub(super) link: Arc<Link>,
    pub(super) engine: Arc<Engine>,
    pub(super) member: Arc<Membership>,
    pub(super) registry: Arc<Registry>,
    pub(super) nonces: Nonces,
    /// Held by the operator's command. Two that wait for the same beat are woken in a random order.
    pub(super) acting: tokio::sync::Mutex<()>,
    /// The lease as a mutant sees it.
    timer: AtomicBool,
}

/// A running process.
pub(super) struct RunningReplica {
    pub(super) front: Arc<Front>,
    pub(super) calls: JoinSet<()>,
    runner: JoinHandle<()>,
    /// Everything else that runs in the process.
    others: JoinSet<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl RunningReplica {
    /// Starts a process that has joined the store: begins to beat, reads applications and keys, and
    /// finds its tasks.
    pub(super) async fn start(cluster: &Arc<Cluster>, link: Arc<Link>) -> Self {
        let body = &link.body;
        let mut others = JoinSet::new();
        let member = Arc::new(Membership::new(link.clone(), body.clock.clone()));
        cluster.runs.leases.lock().expect("no panic").insert(link.epoch(), member.lease());
        let (beating, beats, owner) = (Arc::clone(&member), Arc::clone(&link), Arc::downgrade(cluster));
        others.spawn(async move {
            if beats.body.live(beating.run()).await.is_err() {
                while owner.upgrade().is_some_and(|cluster| !cluster.end(&beats)) {
                    beats.body.nature.pause(Duration::from_secs(1)).await;
                }
            }
        });
        let (store, shared) = (link.store(), Some(member.clone() as Arc<dyn toolwarrant_core::cluster::Cluster>));
        let registry = Arc::new(operator::open(store, &body.clock, &cluster.random, shared).await);
        let (followed, follower) = (Arc::clone(&registry), Arc::clone(&link));
        others.spawn(async move { follower.body.live(followed.follow()).await });
        let engine = loop {
            let engine = Engine::start(Parts {
                store: link.clone(),
                executor: Arc::new(cluster.wheels.reach(&link)),
                catalogue: None,
                keyring: cluster.keyring.clone(),
                clock: body.clock.clone(),
                random: cluster.random.clone(),
                max_in_flight: 100,
            });
            if let Ok(engine) = engine.await {
                break engine;
            }
            body.nature.pause(Duration::from_secs(1)).await;
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let runner = tokio::spawn(Arc::clone(&engine).run(async { drop(stopped.await) }));
        let nonces = Nonces::new(body.clock.clone()).share();
        let front = Arc::new(Front {
            link,
            engine,
            member,
            registry,
            nonces,
            acting: Default::default(),
            timer: Default::default(),
        });
        if cluster.nature.is(Mutant::LeaseByTimer) {
            others.spawn(Arc::clone(&front).keep_timer());
        }
        Self { front, calls: JoinSet::new(), runner, others, stop: Some(stop) }
    }

    /// Stops as planned: sends end, and the tasks are free for others.
    pub(super) async fn stop(mut self) {
        let Front { link, member, .. } = &*self.front;
        member.set_state(ReplicaState::Draining);
        link.body.nature.pause(Duration::from_secs(3)).await;
        drop(self.stop.take());
        drop((&mut self.runner).await);
        drop(member.leave().await);
    }
}

impl Drop for RunningReplica {
    fn drop(&mut self) {
        self.runner.abort();
        self.others.abort_all();
        self.front.link.body.hands.lock().expect("no panic").abort_all();
    }
}

impl Front {
    /// Returns true if the replica may answer.
    pub(super) fn has_lease(&self) -> bool {
        match self.link.body.nature.is(Mutant::LeaseByTimer) {
            false => self.member.lease().stands(),
            true => self.timer.load(Relaxed),
        }
    }

    /// Ends the lease by a timer, which stands still with the process.
    async fn keep_timer(self: Arc<Self>) {
        let body = &self.link.body;
        loop {
            body.nature.clock.sleep_until(body.nature.clock.now().plus(LEASE / 50)).await;
            body.thaw().await;
            self.timer.store(self.member.lease().stands(), Relaxed);
        }
    }
}
