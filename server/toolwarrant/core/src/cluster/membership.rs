//! The membership of this replica: its beats, its lease, and its view of the others.
//!
//! No clock of a replica is compared with that of another. A replica measures the silence of
//! another one by its own monotonic clock, from the moment when it learnt of the latest beat. It
//! evicts only replicas whose leases are over by then. A lease that has run out stands again after
//! the next beat: nobody may have taken the replica for gone meanwhile, because only an evicted one
//! counts as gone. Times that replicas exchange are near the time of the store.

use super::{Beat, BeatNumber, Beats, Cluster, ClusterStore, Epoch, Lease, ReplicaRow, ReplicaState, StoreTrust};
use crate::store::{StoreError, Stored};
use std::collections::HashMap;
use std::mem::{replace, take};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::{BoxFuture, ignore_poison};

/// The usual length of a lease.
pub const LEASE: Duration = Duration::from_secs(5);

/// The interval between two beats.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// Silence beyond the lease before a replica is evicted. Clocks that run at different speeds differ
/// by less.
const MARGIN: Duration = Duration::from_secs(1);

/// The shortest pause before a beat that asks if the others have a version in force. A later one is
/// a quarter of the time waited so far.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The interval at which replicas that have ended are forgotten.
const FORGET_EVERY: Duration = Duration::from_mins(1);

/// Largest error of the clock of a replica: half of the error with which replicas reckon.
const CLOCK_OFF: Duration = Duration::from_millis(500);

/// A run that has beaten that much less often has joined later.
const NEW: u64 = 10;

/// Largest drift between the clock of the store and that of this process: one part in a thousand.
const DRIFT: u32 = 1_000;

/// The membership of this replica in its cluster.
#[derive(Debug)]
pub struct Membership {
    store: Arc<dyn ClusterStore>,
    clock: Clock,
    /// The length of the lease.
    length: Duration,
    lease: Lease,
    /// The message of the next beat. A change makes the beat come at once.
    said: watch::Sender<Beat>,
    /// The latest version of the directory.
    directory: watch::Sender<u64>,
    /// The latest version that was in force on every replica.
    everywhere: watch::Sender<u64>,
    /// The runs that may still act, this one included.
    present: watch::Sender<Vec<Epoch>>,
    /// The trust in the store, as of the latest beat.
    trust: watch::Sender<StoreTrust>,
    /// True once an operator has asked this replica to stop.
    is_asked_to_leave: watch::Sender<bool>,
    /// The longest lease of them.
    longest: Mutex<Duration>,
    /// The latest time of the store, and the time of this clock at which it was read.
    time: Mutex<Option<(StoreTime, Timestamp)>>,
}

/// Other replicas, or a later run under the same name, have ended this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this replica was evicted: it was silent for too long, an operator has evicted it, or another process has started under its name; \
     start it again, and let each replica have a name of its own"
)]
pub struct Eviction;

/// The time of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTime {
    /// The likeliest time.
    pub now: Timestamp,
    /// Its largest error in both directions.
    pub uncertainty: Duration,
}

/// The other replicas, as this one has seen them.
#[derive(Default)]
struct Others {
    /// The latest beat of each one, and the time since which it is known.
    beats: HashMap<Epoch, (BeatNumber, Timestamp)>,
    /// The time before the latest own beat that was answered.
    confirmed: Timestamp,
    /// The time of the next forgetting.
    forget_at: Timestamp,
    /// The time of the store minus that of this clock, in milliseconds.
    off: i64,
    /// The largest number of runs that the store has had.
    runs: u64,
    /// Set while the clock is too far from that of the store.
    is_off: bool,
    /// Set once the clock was near that of the store.
    has_agreed: bool,
    /// The wall clock minus this clock, in milliseconds, at the latest beat.
    lead: Option<i64>,
    /// Set once the machine has slept, so that this clock is late.
    has_slept: bool,
}

impl Membership {
    /// Makes the membership of a store that was opened by joining. The lease does not stand before
    /// the first beat of [`Self::run`].
    #[must_use]
    pub fn new(store: Arc<dyn ClusterStore>, clock: Clock) -> Self {
        let length = store.lease();
        let (lease, said) = (Lease::new(clock.clone()), watch::Sender::default());
        let (directory, everywhere, trust, is_asked_to_leave, time) = Default::default();
        let present = watch::Sender::new(vec![store.epoch()]);
        let longest = Mutex::new(length);
        Self {
            store,
            clock,
            length,
            lease,
            said,
            directory,
            everywhere,
            present,
            longest,
            trust,
            is_asked_to_leave,
            time,
        }
    }

    /// Returns the run of this replica.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.store.epoch()
    }

    /// Returns the name of this replica. No other live replica has it, and its next run has it too.
    #[must_use]
    pub fn name(&self) -> String {
        self.store.name()
    }

    /// Returns the runs that may still act, in order, this one included: those that live, and
    /// those that were evicted and whose leases may stand.
    #[must_use]
    pub fn present(&self) -> watch::Receiver<Vec<Epoch>> {
        self.present.subscribe()
    }

    /// Returns the longest lease of the runs that may still act. A run that has been present for
    /// longer is known to each other run that may act.
    #[must_use]
    pub fn longest_lease(&self) -> Duration {
        *ignore_poison(self.longest.lock())
    }

    /// Beats each second, and at once if there is something to say, until [`Self::leave`]. Start it
    /// right after joining, because others evict a replica that does not beat.
    ///
    /// # Errors
    /// [`Eviction`]. The lease never stands again, and the process must end.
    pub async fn run(&self) -> Result<(), Eviction> {
        let forget_at = self.clock.now().plus(FORGET_EVERY);
        let mut others = Others { forget_at, ..Others::default() };
        let (mut said, mut fails) = (self.said.subscribe(), false);
        loop {
            let beat = Beat { off: others.off, runs: others.runs, ..*said.borrow_and_update() };
            if beat.state == ReplicaState::Left {
                return Ok(());
            }
            let sent = self.clock.now();
            let mut next = sent.plus(BEAT_EVERY);
            match self.within_patience(self.store.beat(beat)).await {
                Ok(beats) => {
                    if take(&mut fails) {
                        tracing::warn!("the store answers again");
                    }
                    if self.learn(sent, beats, &mut others).await? {
                        next = sent;
                    }
                }
                Err(error) if !replace(&mut fails, true) => {
                    tracing::warn!(%error, "the store does not answer; without it, this replica stops to answer");
                }
                Err(_) => {}
            }
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                _ = said.changed() => {}
            }
        }
    }

    /// Answers nothing any more, because this replica does not lead any more.
    pub fn end_lease(&self) {
        self.lease.end();
    }

    /// Waits until an operator asks this replica to stop.
    pub async fn wait_for_drain(&self) {
        // The sender lives as long as this does.
        let _ = self.is_asked_to_leave.subscribe().wait_for(|asked| *asked).await;
    }

    /// Says with each later beat that the replica serves, or is about to leave.
    pub fn set_state(&self, state: ReplicaState) {
        self.said.send_modify(|beat| beat.state = state);
    }

    /// Ends this run as planned. It answers no more, and [`Self::run`] returns.
    ///
    /// # Errors
    /// The store could not be reached. The others evict this replica later.
    pub async fn leave(&self) -> Result<(), StoreError> {
        self.lease.end();
        self.set_state(ReplicaState::Left);
        self.within_patience(self.store.leave()).await
    }

    /// Returns the time of the store, as the latest beat has shown it; `None` before the first one.
    #[must_use]
    pub fn store_time(&self) -> Option<StoreTime> {
        let (StoreTime { now, uncertainty }, read_at) = (*ignore_poison(self.time.lock()))?;
        let elapsed = self.clock.now().since(read_at);
        Some(StoreTime { now: now.plus(elapsed), uncertainty: uncertainty + elapsed / DRIFT })
    }

    /// Returns the trust in the store, as of the latest beat.
    #[must_use]
    pub fn trust(&self) -> watch::Receiver<StoreTrust> {
        self.trust.subscribe()
    }

    async fn within_patience<T>(&self, work: Stored<'_, T>) -> Result<T, StoreError> {
        let patience = patience(self.length);
        let done = self.clock.before(self.clock.now().plus(patience), work).await;
        let silent = || StoreError::Unavailable(format!("no answer for {} ms", patience.as_millis()));
        done.unwrap_or_else(|| Err(silent()))
    }

    /// Learns from the answer to a beat, and evicts silent replicas. Returns true if it did.
    async fn learn(&self, sent: Timestamp, beats: Beats, others: &mut Others) -> Result<bool, Eviction> {
        let epoch = self.store.epoch();
        let Beats { now: store_now, ahead, directory, runs, replicas, trust } = beats;
        others.runs = others.runs.max(runs);
        let is_settled = trust == StoreTrust::Settled;
        let own = replicas.iter().find(|row| row.epoch == epoch && !row.state.has_ended());
        let Some(ReplicaRow { seen, is_asked_to_leave, .. }) = own else {
            // A store that lacks this run may have forgotten it.
            if matches!(trust, StoreTrust::Lost(_)) {
                self.replace_trust(trust);
                return Ok(false);
            }
            self.lease.end();
            let has_left = self.said.borrow().state == ReplicaState::Left;
            return if has_left { Ok(false) } else { Err(Eviction) };
        };
        self.replace_trust(trust);
        self.learn_time(sent, store_now, others);
        let now = self.clock.now();
        if others.has_slept {
            self.lease.end();
            return Err(Eviction);
        }
        if *is_asked_to_leave {
            self.is_asked_to_leave.send_replace(true);
        }
        raise(&self.directory, directory);

        let gap = now.since(others.confirmed);
        others.confirmed = sent;
        self.absorb_step(ahead, &replicas, others).await;
        let (mut everywhere, mut silent, mut over) = (*seen, Vec::new(), Vec::new());
        for row in replicas.iter().filter(|row| row.epoch != epoch) {
            // If this replica has missed beats, others have, too. After the store is back, a beat
            // of theirs that still fails takes less time than is left until they are evicted.
            let shorter = row.lease.min(self.length);
            let anew = gap > shorter - patience(shorter);
            let is_silent = others.measure_silence(row, now, anew) >= row.lease + MARGIN;
            match (row.state, is_silent) {
                (ReplicaState::Left, _) | (ReplicaState::Evicted, true) => over.push(row.epoch),
                (state, _) => {
                    everywhere = everywhere.min(row.seen);
                    silent.extend((is_silent && !state.has_ended()).then_some(row));
                }
            }
        }
        // A run that is missing was forgotten by the store, with everything that it was told.
        let is_missing = |epoch: &Epoch| replicas.iter().all(|row| row.epoch != *epoch);
        if !is_settled && self.present.borrow().iter().any(is_missing) {
            return Ok(false);
        }
        let present: Vec<_> = replicas.iter().map(|row| row.epoch).filter(|epoch| !over.contains(epoch)).collect();
        let longest = replicas.iter().filter(|row| present.contains(&row.epoch)).map(|row| row.lease).max();
        *ignore_poison(self.longest.lock()) = longest.unwrap_or(self.length);
        self.present.send_if_modified(|known| {
            let is_news = *known != present;
            *known = present;
            is_news
        });
        // The present replicas are known before this one may act.
        if is_settled && !others.is_off {
            self.lease.extend(sent.plus(self.length));
        }
        others.beats.retain(|epoch, _| replicas.iter().any(|row| row.epoch == *epoch));
        raise(&self.everywhere, everywhere);
        if !over.is_empty() && others.forget_at <= now {
            others.forget_at = now.plus(FORGET_EVERY);
            let _ = self.within_patience(self.store.forget_ended(over)).await;
        }
        if is_settled {
            return Ok(self.evict(silent).await);
        }
        let missing = |row: &&ReplicaRow| !row.state.has_ended() && !row.is_whole;
        let is_silent = |row: &ReplicaRow| silent.iter().any(|silent| silent.epoch == row.epoch);
        if replicas.iter().filter(missing).all(is_silent) {
            let silent = silent.iter().map(|row| row.epoch).collect();
            let _ = self.within_patience(self.store.settle(silent)).await;
        }
        Ok(false)
    }

    /// Learns the time of the store. The store has read its clock between `sent` and now; both
    /// moments are exact to a millisecond. A beat that took long says less than an earlier one.
    fn learn_time(&self, sent: Timestamp, store_now: Timestamp, others: &mut Others) {
        let half = self.clock.now().since(sent) / 2;
        if !others.has_agreed {
            // The start took time, and the store's time was learnt before. No silence is measured
            // over the step.
            self.clock.catch_up(store_now);
            others.beats.clear();
        }
        let now = self.clock.now();
        let heard = StoreTime { now: store_now.plus(half), uncertainty: half + Duration::from_millis(1) };
        let known = self.store_time().filter(|known| known.uncertainty < heard.uncertainty && known.agrees(heard));
        let time = known.unwrap_or(heard);
        *ignore_poison(self.time.lock()) = Some((time, now));
        others.off = time.now.0.cast_signed().saturating_sub(now.0.cast_signed());
        self.clock.steer(others.off);
        let is_off = Duration::from_millis(others.off.unsigned_abs()) + time.uncertainty > CLOCK_OFF;
        if is_off && !others.is_off {
            tracing::warn!(
                milliseconds = others.off,
                uncertain_by = time.uncertainty.as_millis(),
                "the clock of the store differs from that of this replica, which stops to answer until they agree"
            );
        }
        others.is_off = is_off;
        others.has_agreed |= !is_off;
        // While a machine sleeps, its wall clock goes on, and the other one stands still.
        let lead = self.clock.wall().0.cast_signed().saturating_sub(now.0.cast_signed());
        let leap = lead.saturating_sub(others.lead.replace(lead).unwrap_or(lead));
        others.has_slept = is_off && leap > 0 && Duration::from_millis(leap.abs_diff(others.off)) < CLOCK_OFF;
    }

    /// Corrects the clock of the store if it differs from the clocks of all replicas in the same
    /// way: then it has made a step, as at another server, and they have not.
    async fn absorb_step(&self, ahead: i64, replicas: &[ReplicaRow], others: &Others) {
        let is_off = |off: i64| Duration::from_millis(off.unsigned_abs()) > CLOCK_OFF;
        // A newcomer may have the time of the store from after the step.
        let own = replicas.iter().find(|row| row.epoch == self.store.epoch());
        let is_new =
            |row: &ReplicaRow| own.is_some_and(|own| own.epoch < row.epoch && row.beat.number + NEW < own.beat.number);
        let mut living = replicas.iter().filter(|row| !row.state.has_ended() && !is_new(row));
        let agree = |row: &ReplicaRow| is_off(row.off) && !is_off(row.off.saturating_sub(others.off));
        // A clock that has never agreed may be late itself, unless it goes on from a later time.
        let is_steady = others.has_agreed || others.off < 0;
        if is_steady && is_off(others.off) && living.all(agree) {
            let corrected = ahead.saturating_sub(others.off);
            let _ = self.within_patience(self.store.correct_time(ahead, corrected)).await;
        }
    }

    /// Logs a change of the trust in the store.
    fn replace_trust(&self, trust: StoreTrust) {
        if *self.trust.borrow() == trust {
            return;
        }
        match &trust {
            StoreTrust::Settled => tracing::warn!("each replica has found its writes in the store; this one goes on"),
            StoreTrust::Unsettled => tracing::warn!(
                "a copy has replaced the store; this replica stops to answer until each one has looked for its writes"
            ),
            StoreTrust::Lost(why) => tracing::error!(
                why,
                "the store has lost acknowledged writes, and all replicas have stopped; `cluster accept-loss` goes on without them"
            ),
        }
        self.trust.send_replace(trust);
    }

    /// Evicts silent replicas. Returns true if one was evicted.
    async fn evict(&self, silent: Vec<&ReplicaRow>) -> bool {
        let mut any = false;
        for ReplicaRow { epoch, name, beat, .. } in silent {
            match self.within_patience(self.store.evict(*epoch, *beat)).await {
                Ok(evicted) => {
                    if evicted {
                        tracing::warn!(name, %epoch, "evicted a replica that was silent for longer than its lease");
                    }
                    any |= evicted;
                }
                // The own beat must not wait for all of them.
                Err(_) => break,
            }
        }
        any
    }
}

impl StoreTime {
    /// Returns true if both can be true of one moment.
    fn agrees(self, other: Self) -> bool {
        let apart = self.now.since(other.now).max(other.now.since(self.now));
        apart <= self.uncertainty + other.uncertainty
    }
}

impl Others {
    /// Returns how long a replica has been silent. After an outage, everybody has been silent for
    /// no time, except for replicas that have ended.
    fn measure_silence(&mut self, row: &ReplicaRow, now: Timestamp, anew: bool) -> Duration {
        let (beat, since) = self.beats.entry(row.epoch).or_insert((row.beat, now));
        if *beat != row.beat || anew && !row.state.has_ended() {
            (*beat, *since) = (row.beat, now);
        }
        now.since(*since)
    }
}

impl Cluster for Membership {
    fn lease(&self) -> Lease {
        self.lease.clone()
    }

    fn directory_version(&self) -> watch::Receiver<u64> {
        self.directory.subscribe()
    }

    fn put_in_force(&self, version: u64) {
        self.said.send_if_modified(|beat| {
            let is_later = version > beat.seen;
            beat.seen = beat.seen.max(version);
            is_later
        });
    }

    fn in_force_everywhere(&self, version: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (mut everywhere, begun) = (self.everywhere.subscribe(), self.clock.now());
            while *everywhere.borrow_and_update() < version {
                let now = self.clock.now();
                let pause = (now.since(begun) / 4).clamp(ASK_AGAIN, BEAT_EVERY);
                tokio::select! {
                    _ = everywhere.changed() => {}
                    () = self.clock.sleep_until(now.plus(pause)) => self.said.send_modify(|_| {}),
                }
            }
        })
    }
}

/// Returns the longest time for one statement. A lease outlives several beats that fail.
fn patience(lease: Duration) -> Duration {
    lease * 3 / 10
}

/// Raises a number that only grows.
fn raise(known: &watch::Sender<u64>, to: u64) {
    known.send_if_modified(|known| {
        let is_later = to > *known;
        *known = to.max(*known);
        is_later
    });
}
