//! One run of a replica: an engine, its link to the store, its clock, and its membership.
//!
//! The membership is a stand-in for that of the server: it beats each second, evicts a replica that
//! was silent for 6 s, and ends the process that finds itself evicted.

use super::Nature;
use super::cluster::Cluster;
use super::link::Link;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::cluster::{Beat, Beats, Epoch};
use toolwarrant_tasks::engine::Engine;
use toolwarrant_tasks::machine::Sent;

/// Interval between two beats.
const BEAT: Duration = Duration::from_secs(1);
/// Time after which a silent replica is evicted.
const SILENT: Duration = Duration::from_secs(6);
/// Time after its last beat for which a replica judges others.
const LEASE: Duration = Duration::from_secs(5);

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
}

impl Pace {
    /// Draws the pace of a world. An adopter waits for 17 s from a permission to send that holds
    /// for a second. So a process may stand still for 6 s, and the request may travel for 9.9 s.
    pub(super) fn new(random: &mut SplitMix, is_tight: bool) -> Self {
        let [connect, stall] =
            [[0, 300, 300, 4_500, 4_500], [0, 6_000, 6_000, 6_000, 6_000]].map(|of| of[random.below(5) as usize]);
        Self { is_tight, connect, stall, travel: 9_900 }
    }

    /// Returns a time of at most `millis`; in a tight world exactly that, mostly.
    pub(super) fn draw(&self, nature: &Nature, millis: u64) -> u64 {
        if self.is_tight && nature.chance(80) { millis } else { nature.below(millis + 1) }
    }
}

impl Body {
    pub(super) fn new(nature: &Arc<Nature>, name: &'static str, pace: Pace) -> Self {
        let skew = Duration::from_millis([0, 1_000, nature.below(1_001)][nature.below(3) as usize]);
        let now = nature.clock.now();
        let clock = Clock::start_at(if nature.chance(50) { now.plus(skew) } else { now.minus(skew) });
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

    fn frozen_until(&self) -> Timestamp {
        *self.frozen_until.lock().expect("no panic")
    }

    /// Waits until the process is not frozen.
    pub(super) async fn thaw(&self) {
        while self.frozen_until() > self.nature.clock.now() {
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
        if self.body.frozen_until() <= self.body.nature.clock.now() {
            self.abort.abort();
        }
    }
}

/// A running process.
pub(super) struct RunningReplica {
    pub(super) engine: Arc<Engine>,
    pub(super) link: Arc<Link>,
    pub(super) calls: JoinSet<()>,
    runner: JoinHandle<()>,
    member: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl RunningReplica {
    pub(super) fn run(cluster: &Arc<Cluster>, engine: Arc<Engine>, link: Arc<Link>) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let running = Arc::clone(&engine).run(async { drop(stopped.await) });
        let member = Member { link: Arc::clone(&link), beats: HashMap::new(), heard_at: link.body.clock.now() };
        Self {
            runner: tokio::spawn(running),
            member: tokio::spawn(member.keep(Arc::downgrade(cluster))),
            stop: Some(stop),
            engine,
            link,
            calls: JoinSet::new(),
        }
    }

    /// Stops as planned: sends end, and the tasks are free for others.
    pub(super) async fn stop(mut self) {
        drop(self.stop.take());
        drop((&mut self.runner).await);
        for _ in 0..3 {
            if self.link.leave().await.is_ok() {
                return;
            }
        }
    }
}

impl Drop for RunningReplica {
    fn drop(&mut self) {
        self.runner.abort();
        self.member.abort();
        self.link.body.hands.lock().expect("no panic").abort_all();
    }
}

/// The membership of one run.
struct Member {
    link: Arc<Link>,
    /// The last beat of each other replica, and since when it is the last.
    beats: HashMap<Epoch, (u64, Timestamp)>,
    /// The time of the last answer of the store.
    heard_at: Timestamp,
}

impl Member {
    /// Beats until the run has ended, and then ends the process.
    async fn keep(mut self, cluster: Weak<Cluster>) {
        let (clock, epoch) = (self.link.body.clock.clone(), self.link.epoch());
        loop {
            let deaf_until = *self.link.body.deaf_until.lock().expect("no panic");
            self.link.body.nature.clock.sleep_until(deaf_until).await;
            let asked_at = clock.now();
            if let Ok(beats) = self.link.beat(Beat::default()).await {
                if beats.replicas.iter().any(|row| row.epoch == epoch && row.state.has_ended()) {
                    break;
                }
                self.judge(asked_at, &beats).await;
            }
            clock.sleep_until(clock.now().plus(BEAT)).await;
        }
        if let Some(cluster) = cluster.upgrade() {
            cluster.end(self.link.body.name, epoch);
        }
    }

    /// Evicts the replicas that were silent for too long, as seen by a replica that was not.
    async fn judge(&mut self, asked_at: Timestamp, beats: &Beats) {
        if asked_at > self.heard_at.plus(LEASE) {
            self.beats.clear();
        }
        self.heard_at = asked_at;
        for row in beats.replicas.iter().filter(|row| row.epoch != self.link.epoch() && !row.state.has_ended()) {
            let now = self.link.body.clock.now();
            let last = self.beats.entry(row.epoch).or_insert((row.beat, now));
            if last.0 != row.beat {
                *last = (row.beat, now);
            }
            if now.since(last.1) >= SILENT {
                let evicted = self.link.evict(row.epoch, row.beat).await;
                self.link.body.nature.note(|| format!("{} evicts {}: {evicted:?}", self.link.epoch(), row.epoch));
            }
        }
    }
}
