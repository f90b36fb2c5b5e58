//! Worlds of up to four replicas on one store, each behind its own [`link`](super::link).
//!
//! Replicas die, stand still, are cut off, stop as planned, and get a rival that starts under their
//! name. Their clocks are up to 2 s apart. They have the membership and the registry of the server.
//! Silent replicas are evicted, and others adopt their tasks. In some worlds the clock of the store
//! makes a step, or a copy replaces the store. The promises are those of one process, over all of
//! them. If the copy lacks acknowledged writes, all replicas must stop, unless no run is left that
//! can know.
//!
//! A third of the worlds is pressing. All requests are slow, none may be repeated, and the replica
//! that sends one is struck in the seconds around it.

use super::clients::{Clients, Nonce};
use super::disk::{Holds, Platters};
use super::events::{self, Call, draw_calls};
use super::failover;
use super::link::{Link, Runs, Wire};
use super::mutants::Mutant;
use super::operator::Registered;
use super::replica::{Body, Pace, RunningReplica};
use super::wheels::{Act, LATEST, Wheels};
use super::{Nature, Outcome, START, Said, Weather, World, Worlds, first_violation, is_clear};
use std::mem::{replace, take};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::{Random, SplitMix};
use toolwarrant_core::cluster::{Beat, Cluster as _, ClusterStore, StoreTrust};
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_memory::MemoryCopy;
use toolwarrant_store::{Integrity, IntegrityRule};
use toolwarrant_tasks::store::{TaskFilter, TaskStore};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Distinguishes the generator of the replicas from that of the world.
const REPLICAS: u64 = 0x7265_706c_6963_6173;

/// Longest time from the end of a replica until another goes on with its tasks: it is evicted, its
/// tasks are adopted, and a send may still arrive.
const ADOPTION: Duration = Duration::from_secs(30);

/// An event from outside, at one replica.
#[derive(Clone, Debug)]
pub(super) enum Strike {
    Call(Call, Nonce),
    /// The process dies, and starts again after this time.
    Crash(Duration),
    /// The process stands still for this time.
    Freeze(Duration),
    /// Another process starts under its name, and it goes on.
    Rival,
    /// Its beats do not get through for this time.
    Deafen(Duration),
    /// An operator evicts it.
    Evict,
    /// It does not reach the store for this time.
    Cut(Duration),
    /// No answer of the store reaches it for this time.
    Mute(Duration),
    /// No replica reaches the store for this time.
    Outage(Duration),
    /// No write lands for this time.
    Stall(Duration),
    /// It stops as planned, and starts again after this time.
    Stop(Duration),
    /// Its operator revokes the key of an application.
    Revoke(Arc<str>),
    /// The clock of the store makes a step of that many milliseconds.
    Step(i64),
    /// A copy of the store is made.
    Copy,
    /// The copy replaces the store.
    FailOver,
}

/// A place for a replica, with its name.
pub(super) struct Slot {
    name: &'static str,
    pub(super) process: Option<RunningReplica>,
    is_starting: bool,
    /// Former processes that do not know yet that they have ended.
    pub(super) former: Vec<RunningReplica>,
}

/// The replicas of a world.
pub(super) struct Cluster {
    pub(super) nature: Arc<Nature>,
    pub(super) wheels: Wheels,
    pace: Pace,
    pub(super) platters: Arc<Platters>,
    pub(super) runs: Arc<Runs>,
    pub(super) clients: Clients,
    pub(super) keyring: KeyRing,
    pub(super) random: Random,
    pub(super) said: Arc<Mutex<Vec<Said>>>,
    wires: Vec<Arc<Wire>>,
    slots: Mutex<Vec<Slot>>,
    pub(super) copy: Mutex<Option<(MemoryCopy, Holds)>>,
    /// The time from which nothing keeps the replicas from their work.
    calm_at: Mutex<Timestamp>,
}

/// Returns the events, each with its time after the start and its replica.
fn draw(random: &mut SplitMix, replicas: u64, is_pressing: bool, has_step: bool) -> Vec<(Duration, usize, Strike)> {
    let span = [5_000, 60_000][random.below(2) as usize];
    let mut events: Vec<_> = draw_calls(random, span)
        .into_iter()
        .map(|(at, call)| {
            let nonce = [None, None, Some("x"), Some("y")][random.below(4) as usize];
            (at, random.below(replicas) as usize, Strike::Call(call, nonce))
        })
        .collect();
    let strikes = if is_pressing { [2, 2, 3, 3, 4, 4] } else { [0, 1, 1, 2, 3, 4] };
    for _ in 0..strikes[random.below(6) as usize] {
        // At a random moment and replica, or while the replica sends what it was called for.
        let (called, replica, _) = events[random.below(events.len() as u64) as usize].clone();
        let soon = [1_500, 7_000][random.below(2) as usize];
        let (at, replica) = match random.below(3) {
            0 => (Duration::from_millis(random.below(span + 30_000)), random.below(replicas) as usize),
            _ => (called + Duration::from_millis(random.below(soon)), replica),
        };
        let [down, still] = [[0, 1, 1, 20, 60], [1, 4, 4, 20, 90]].map(|lengths| lengths[random.below(5) as usize]);
        let [down, still] = [down, still].map(Duration::from_secs);
        let ends = [Strike::Rival, Strike::Evict][random.below(2) as usize].clone();
        let cuts = [Strike::Cut(still / 3), Strike::Outage(still / 3), Strike::Stall(still / 3)];
        let cut = cuts[random.below(3) as usize].clone();
        let strikes = match random.below(if is_pressing { 12 } else { 8 }) {
            0 => vec![Strike::Crash(down)],
            1 => vec![Strike::Freeze(still)],
            2 => vec![cut],
            3 => vec![Strike::Stop(down)],
            4 => vec![Strike::Deafen(still)],
            5 => vec![ends],
            6 | 7 => vec![Strike::Freeze(still), ends],
            _ => vec![Strike::Deafen(still.max(Duration::from_secs(20))), ends],
        };
        events.extend(strikes.into_iter().map(|strike| (at, replica, strike)));
    }
    for _ in 0..[0, 0, 1, 2][random.below(4) as usize] {
        let (at, name) = (random.below(span + 10_000), events::NAMES[random.below(2) as usize]);
        events.push((Duration::from_millis(at), random.below(replicas) as usize, Strike::Revoke(name.into())));
    }
    if has_step {
        let (at, step) = (random.below(span), [-1_500, -1_200, -700, 700, 1_200, 1_500][random.below(6) as usize]);
        events.push((Duration::from_millis(at), 0, Strike::Step(step)));
    }
    if random.below(6) == 0 {
        let (at, late) = (random.below(span + 5_000), [0, 30, 300, 3_000][random.below(4) as usize]);
        events.extend(failover::draw(random, replicas, 4_000 + at, late));
    }
    events.sort_by_key(|(at, ..)| *at);
    events
}

/// Makes a world in which it matters most when a request leaves: none may be repeated, all are slow
/// and act.
fn press(events: &mut [(Duration, usize, Strike)], weather: Weather) -> Weather {
    for (at, _, strike) in events {
        if let Strike::Call(Call { act: act @ Act::Paint(_), .. }, _) = strike {
            *act = if at.as_millis() % 2 == 0 { Act::Turn } else { Act::Rinse };
        }
    }
    Weather { refused: 0, lost_requests: 0, slow_answers: 80, errors: 0, swallowed: 0, dark: 0, ..weather }
}

/// Runs the world of replicas of that seed.
pub(super) fn live(seed: u64, mutant: Option<Mutant>, telling: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut random = SplitMix(seed ^ REPLICAS);
        let weather = Weather { slow_disk: 0, broken_disk: 0, ..Weather::new(&mut random) };
        let replicas = if random.below(8) == 0 { 1 } else { 2 + random.below(3) };
        let is_pressing = random.below(3) == 0;
        let (has_step, needs_lease) = (random.below(8) == 0, random.below(2) == 0);
        let is_skewed = !has_step && random.below(3) == 0;
        let pace = Pace::new(&mut random, is_pressing, is_skewed);
        let mut events = draw(&mut random, replicas, is_pressing, has_step);
        let weather = if is_pressing { press(&mut events, weather) } else { weather };
        let mut wiring = SplitMix(random.below(u64::MAX));
        let (clock, dice, history) = (Clock::start_at(START), Mutex::new(random), telling.then(Mutex::default));
        let nature = Arc::new(Nature { clock, dice, weather, mutant, history });
        nature.note(|| format!("seed {seed}: {replicas} replicas, {:?}, {pace:?}", nature.weather));
        let random = Random::from_seed(seed);
        let names = &NAMES[..replicas as usize];
        let wires = names.iter().map(|_| Arc::new(Wire::new(&nature, &mut wiring))).collect();
        let slots = names.iter().map(|name| Slot { name, process: None, is_starting: false, former: Vec::new() });
        let platters = Arc::<Platters>::default();
        let clients = Clients::new(Registered::new(seed, &nature, &platters).await, needs_lease);
        let cluster =
            Arc::new(Cluster {
                wheels: Wheels::new(&nature, (!is_clear(seed)).then_some(SplitMix(!seed)))
                    .look_up_more(if is_pressing { 100 } else { 50 }),
                pace,
                platters,
                runs: Arc::default(),
                clients,
                keyring: KeyRing::new("test", &[7; 32], random.clone()),
                random,
                said: Arc::default(),
                wires,
                slots: Mutex::new(slots.collect()),
                copy: Mutex::default(),
                calm_at: Mutex::new(START),
                nature,
            });
        cluster.run(events).await
    })
}

impl Cluster {
    async fn run(self: Arc<Self>, events: Vec<(Duration, usize, Strike)>) -> Outcome {
        let clock = &self.nature.clock;
        let replicas = self.slots().len();
        for replica in 0..replicas {
            self.start(replica).await;
        }
        for (at, replica, strike) in events {
            clock.sleep_until(START.plus(at)).await;
            self.nature.note(|| format!("{}: {strike:?}", NAMES[replica]));
            self.strike(replica, strike);
            self.check_all_answers();
        }
        let (mut quiet, mut trust) = (0, StoreTrust::Settled);
        for _ in 0..400 {
            clock.sleep_until(clock.now().plus(Duration::from_secs(10))).await;
            self.check_all_answers();
            trust = self.trust().await;
            quiet = if self.is_calm() && self.is_idle().await { quiet + 1 } else { 0 };
            // Once more, for a call that was on its way while its client gave up.
            if quiet == 2 || matches!(trust, StoreTrust::Lost(_)) {
                break;
            }
        }
        drop(take(&mut *self.slots()));
        let has_lost = self.clients.lost_at.lock().expect("no panic").is_some();
        match trust {
            StoreTrust::Lost(_) => return self.outcome(self.platters.violations.lock().expect("no panic").clone()),
            _ if has_lost => self.platters.violate("the store lacks acknowledged writes, and is believed".to_owned()),
            _ => {}
        }
        // All late requests have acted by then.
        clock.sleep_until(clock.now().plus(LATEST)).await;
        let Self { nature, wheels, platters, keyring, random, said, .. } = &*self;
        let world = World {
            nature: Arc::clone(nature),
            wheels: wheels.clone(),
            platters: Arc::clone(platters),
            registered: None,
            keyring: keyring.clone(),
            random: random.clone(),
            said: Arc::clone(said),
            started: *self.calm_at.lock().expect("no panic"),
            disturbed: true,
            adoption: ADOPTION,
        };
        let mut violations = world.violations().await;
        violations.extend(platters.memory.violations(IntegrityRule::Refunds).await.expect("memory"));
        violations.extend((quiet < 2).then(|| "the replicas do not come to rest".to_owned()));
        self.outcome(violations)
    }

    fn outcome(&self, violations: Vec<String>) -> Outcome {
        let history = self.nature.history.as_ref().map(|history| history.lock().expect("no panic").clone());
        let replicas = self.wires.len();
        Outcome { violations, history: history.unwrap_or_default(), replicas, ..Outcome::default() }
    }

    /// Returns the trust of the replicas in their store. Without a run of its own, this beat only
    /// reads.
    async fn trust(&self) -> StoreTrust {
        self.platters.memory.beat(Beat::default()).await.expect("memory").trust
    }

    pub(super) fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().expect("no panic")
    }

    /// Returns true if all replicas run, nothing keeps them from their work, and no client waits.
    fn is_calm(&self) -> bool {
        let is_calm = |slot: &mut Slot| {
            let Some(RunningReplica { calls, front, .. }) = &mut slot.process else { return false };
            while calls.try_join_next().is_some() {}
            slot.former.is_empty() && calls.is_empty() && front.member.lease().stands()
        };
        *self.calm_at.lock().expect("no panic") < self.nature.clock.now() && self.slots().iter_mut().all(is_calm)
    }

    async fn is_idle(&self) -> bool {
        let statuses = vec![TaskStatus::Dispatched];
        let filter = TaskFilter { statuses, limit: 1, examine: 1_000, ..TaskFilter::default() };
        self.platters.memory.tasks(filter).await.expect("memory").records.is_empty()
    }

    /// Records that something keeps replicas from their work until then.
    pub(super) fn disturb(&self, until: Timestamp) {
        let mut calm_at = self.calm_at.lock().expect("no panic");
        *calm_at = until.max(*calm_at);
    }

    fn strike(self: &Arc<Self>, replica: usize, strike: Strike) {
        let mut slots = self.slots();
        let Slot { process, former, .. } = &mut slots[replica];
        let after = |length: Duration| self.nature.clock.now().plus(length);
        match (strike, process.as_mut()) {
            (Strike::Call(call, nonce), Some(process)) => self.call(process, call, nonce),
            (Strike::Revoke(name), Some(process)) => self.revoke(process, name),
            (Strike::Step(by), _) => self.platters.clock_off.store(by, Relaxed),
            (Strike::Copy, _) => self.copy_store(),
            (Strike::FailOver, _) => self.fail_over(),
            (Strike::Freeze(length), Some(process)) => {
                self.disturb(after(length));
                process.front.link.body.freeze(after(length));
                let (cluster, thaws_at) = (Arc::clone(self), after(length));
                tokio::spawn(async move {
                    cluster.nature.clock.sleep_until(thaws_at).await;
                    cluster.check_all_answers();
                });
            }
            (Strike::Evict, Some(process)) => {
                let (platters, epoch) = (Arc::clone(&self.platters), process.front.link.epoch());
                tokio::spawn(async move {
                    let beats = platters.memory.beat(Beat::default()).await.expect("memory").replicas;
                    if let Some(row) = beats.iter().find(|row| row.epoch == epoch) {
                        drop(platters.memory.evict(epoch, row.beat).await);
                    }
                });
            }
            (Strike::Deafen(length), Some(process)) => {
                self.disturb(after(length));
                process.front.link.body.deafen(after(length));
            }
            (Strike::Cut(length), _) => {
                self.disturb(after(length));
                self.wires[replica].cut(after(length));
            }
            (Strike::Mute(length), _) => {
                self.disturb(after(length));
                self.wires[replica].mute(after(length));
            }
            (Strike::Outage(length), _) => {
                self.disturb(after(length));
                self.wires.iter().for_each(|wire| wire.cut(after(length)));
            }
            (Strike::Stall(length), _) => {
                self.disturb(after(length));
                self.platters.stall(after(length));
            }
            (Strike::Crash(down), Some(_)) => {
                let died = process.take();
                self.start_later(replica, down);
                drop((slots, died));
            }
            (Strike::Rival, Some(_)) => {
                former.extend(process.take());
                self.start_later(replica, Duration::ZERO);
            }
            (Strike::Stop(down), Some(_)) => {
                let (cluster, stops) = (Arc::clone(self), process.take());
                tokio::spawn(async move {
                    if let Some(process) = stops {
                        process.stop().await;
                    }
                    cluster.start_later(replica, down);
                });
            }
            (_, None) => {}
        }
    }

    fn start_later(self: &Arc<Self>, replica: usize, after: Duration) {
        let (cluster, clock) = (Arc::clone(self), self.nature.clock.clone());
        tokio::spawn(async move {
            // Nothing is left of a process when another begins.
            clock.sleep_until(clock.now().plus(after + Duration::from_millis(1))).await;
            cluster.start(replica).await;
        });
    }

    /// Starts a replica, unless it runs.
    async fn start(self: &Arc<Self>, replica: usize) {
        let name = {
            let mut slots = self.slots();
            let Some(slot) = slots.get_mut(replica) else { return };
            if slot.process.is_some() || replace(&mut slot.is_starting, true) {
                return;
            }
            slot.name
        };
        let off = self.platters.clock_off.load(Relaxed);
        let beats = self.platters.memory.beat(Beat::default()).await.expect("memory");
        let now = self.nature.clock.now().0.saturating_add_signed(beats.ahead + off);
        let body = Arc::new(Body::new(&self.nature, name, Timestamp(now), self.pace));
        let link = Arc::new(Link::new(&body, &self.wires[replica], &self.platters, &self.runs));
        self.nature.note(|| format!("{name} starts as {}", link.epoch()));
        let process = RunningReplica::start(self, link).await;
        self.disturb(self.nature.clock.now());
        if let Some(slot) = self.slots().get_mut(replica) {
            (slot.process, slot.is_starting) = (Some(process), false);
        }
    }

    /// Ends the process of a run that has found out that it was evicted. Its supervisor starts
    /// another. Returns true if the process was there.
    pub(super) fn end(self: &Arc<Self>, link: &Link) -> bool {
        let mut slots = self.slots();
        let is_it = |process: &mut RunningReplica| process.front.link.epoch() == link.epoch();
        let of_name = |slot: &Slot| slot.name == link.body.name;
        let Some(replica) = slots.iter().position(of_name) else { return true };
        let Slot { process, former, .. } = &mut slots[replica];
        let current = process.take_if(is_it);
        let is_current = current.is_some();
        let ended: Vec<_> = former.extract_if(.., is_it).chain(current).collect();
        let has_ended = !ended.is_empty();
        drop((slots, ended));
        self.nature.note(|| format!("{} finds that it has ended: {has_ended}", link.epoch()));
        if is_current {
            self.start_later(replica, Duration::from_millis(self.nature.below(5_000)));
        }
        has_ended
    }
}

/// A world outside the usual range that once broke a promise. It always runs.
const BROKEN_ONCE: u64 = 86_293;

#[test]
fn no_world_of_replicas_breaks_a_promise() {
    let Worlds { worlds, replicas, first, seed } = Worlds::from_options(2_400);
    let worlds = replicas.unwrap_or(worlds.div_ceil(8));
    let describe = |seed| {
        let Outcome { violations, history, .. } = live(seed, None, true);
        format!("{}\n\nreplicas of seed {seed}:\n{}", history.join("\n"), violations.join("\n"))
    };
    if let Some(seed) = seed {
        return println!("{}", describe(seed));
    }
    let several = AtomicU64::new(0);
    let breaks = |seed| {
        let Outcome { violations, replicas, .. } = live(seed, None, false);
        several.fetch_add(u64::from(replicas > 1), Relaxed);
        !violations.is_empty()
    };
    let found = first_violation(BROKEN_ONCE..BROKEN_ONCE + 1, breaks);
    if let Some(seed) = found.or_else(|| first_violation(first..first + worlds, breaks)) {
        panic!("{}", describe(seed));
    }
    println!("{worlds} worlds of replicas from {first} on, {several:?} of them with 2 to 4, no promise broken");
}

#[test]
fn a_seed_is_the_same_world_of_replicas_each_time() {
    for seed in 0..50 {
        assert_eq!(live(seed, None, true).history, live(seed, None, true).history, "seed {seed}");
    }
}
