//! Worlds of up to four replicas on one store, each behind its own [`link`](super::link).
//!
//! Replicas die, stand still, are cut off, stop as planned, and get a rival that starts under their
//! name. Their clocks are up to 2 s apart. A replica that is silent for 6 s is evicted, and others
//! adopt its tasks. The promises are those of one process, over all of them.
//!
//! A third of the worlds is pressing. All requests are slow, none may be repeated, and the replica
//! that sends one is struck in the seconds around it.

use super::disk::Platters;
use super::events::{Call, draw_calls};
use super::link::{Link, Runs, Wire};
use super::replica::{Body, Pace, RunningReplica};
use super::wheels::{Act, LATEST, Wheels};
use super::{Mutant, Nature, Outcome, START, Said, Weather, World, Worlds, ask, first_violation, is_clear};
use std::mem::{replace, take};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::{Random, SplitMix};
use toolwarrant_core::cluster::{Beat, ClusterStore, Epoch};
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_store::{Integrity, IntegrityRule};
use toolwarrant_tasks::engine::{Engine, Parts};
use toolwarrant_tasks::store::{TaskFilter, TaskStore};

const MUTANTS: [Mutant; 11] = [
    Mutant::NoGate,
    Mutant::SendWithoutAsking,
    Mutant::AskBeforeConnecting,
    Mutant::ConfirmationForEver,
    Mutant::NoOwnerInFence,
    Mutant::AdoptAtOnce,
    Mutant::QuiesceByOwnersClock,
    Mutant::AdopterRepeats,
    Mutant::AdoptionOnce,
    Mutant::DuplicatesPerReplica,
    Mutant::TargetLockPerReplica,
];

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Distinguishes the generator of the replicas from that of the world.
const REPLICAS: u64 = 0x7265_706c_6963_6173;

/// Longest time from the end of a replica until another goes on with its tasks: it is evicted, its
/// tasks are adopted, and a send may still arrive.
const ADOPTION: Duration = Duration::from_secs(30);

/// An event from outside, at one replica.
#[derive(Clone, Debug)]
enum Strike {
    Call(Call),
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
    /// It stops as planned, and starts again after this time.
    Stop(Duration),
}

/// A place for a replica, with its name and its wire.
struct Slot {
    name: &'static str,
    wire: Arc<Wire>,
    process: Option<RunningReplica>,
    is_starting: bool,
    /// Former processes that do not know yet that they have ended.
    former: Vec<RunningReplica>,
}

/// The replicas of a world.
pub(super) struct Cluster {
    nature: Arc<Nature>,
    wheels: Wheels,
    pace: Pace,
    platters: Arc<Platters>,
    runs: Arc<Runs>,
    keyring: KeyRing,
    random: Random,
    said: Arc<Mutex<Vec<Said>>>,
    slots: Mutex<Vec<Slot>>,
    /// The time from which nothing keeps the replicas from their work.
    calm_at: Mutex<Timestamp>,
}

/// Returns the events, each with its time after the start and its replica.
fn draw(random: &mut SplitMix, replicas: u64, is_pressing: bool) -> Vec<(Duration, usize, Strike)> {
    let span = [5_000, 60_000][random.below(2) as usize];
    let mut events: Vec<_> = draw_calls(random, span)
        .into_iter()
        .map(|(at, call)| (at, random.below(replicas) as usize, Strike::Call(call)))
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
        let strikes = match random.below(if is_pressing { 12 } else { 8 }) {
            0 => vec![Strike::Crash(down)],
            1 => vec![Strike::Freeze(still)],
            2 => vec![Strike::Cut(still / 3)],
            3 => vec![Strike::Stop(down)],
            4 => vec![Strike::Deafen(still)],
            5 => vec![ends],
            6 | 7 => vec![Strike::Freeze(still), ends],
            _ => vec![Strike::Deafen(still.max(Duration::from_secs(20))), ends],
        };
        events.extend(strikes.into_iter().map(|strike| (at, replica, strike)));
    }
    events.sort_by_key(|(at, ..)| *at);
    events
}

/// Makes a world in which it matters most when a request leaves: none may be repeated, all are slow
/// and act.
fn press(events: &mut [(Duration, usize, Strike)], weather: Weather) -> Weather {
    for (at, _, strike) in events {
        if let Strike::Call(Call { act: act @ Act::Paint(_), .. }) = strike {
            *act = if at.as_millis() % 2 == 0 { Act::Turn } else { Act::Rinse };
        }
    }
    Weather { refused: 0, lost_requests: 0, slow_answers: 80, errors: 0, swallowed: 0, dark: 0, ..weather }
}

/// Runs the world of replicas of that seed.
fn live(seed: u64, mutant: Option<Mutant>, telling: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut random = SplitMix(seed ^ REPLICAS);
        let weather = Weather { slow_disk: 0, broken_disk: 0, ..Weather::new(&mut random) };
        let (replicas, is_pressing) = (1 + random.below(4), random.below(3) == 0);
        let pace = Pace::new(&mut random, is_pressing);
        let mut events = draw(&mut random, replicas, is_pressing);
        let weather = if is_pressing { press(&mut events, weather) } else { weather };
        let mut wiring = SplitMix(random.below(u64::MAX));
        let (clock, dice, history) = (Clock::start_at(START), Mutex::new(random), telling.then(Mutex::default));
        let nature = Arc::new(Nature { clock, dice, weather, mutant, history });
        nature.note(|| format!("seed {seed}: {replicas} replicas, {:?}, {pace:?}", nature.weather));
        let random = Random::from_seed(seed);
        let slot = |name: &&'static str| {
            let (wire, process, former) = (Arc::new(Wire::new(&nature, &mut wiring)), None, Vec::new());
            nature.note(|| format!("{name}: {} ms slow, {} percent lost", wire.slow, wire.lossy));
            Slot { name, wire, process, is_starting: false, former }
        };
        let slots = NAMES[..replicas as usize].iter().map(slot).collect();
        let cluster =
            Arc::new(Cluster {
                wheels: Wheels::new(&nature, (!is_clear(seed)).then_some(SplitMix(!seed)))
                    .look_up_more(if is_pressing { 100 } else { 50 }),
                pace,
                platters: Arc::default(),
                runs: Arc::default(),
                keyring: KeyRing::new("test", &[7; 32], random.clone()),
                random,
                said: Arc::default(),
                slots: Mutex::new(slots),
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
        }
        let mut quiet = 0;
        for _ in 0..400 {
            clock.sleep_until(clock.now().plus(Duration::from_secs(10))).await;
            quiet = if self.is_calm() && self.is_idle().await { quiet + 1 } else { 0 };
            // Once more, for a call that was on its way while its client gave up.
            if quiet == 2 {
                break;
            }
        }
        drop(take(&mut *self.slots()));
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
        let (mut violations, stored) = (world.violations().await, world.describe_tasks().await);
        violations.extend(platters.memory.violations(IntegrityRule::Refunds).await.expect("memory"));
        let history = nature.history.as_ref().map(|history| history.lock().expect("no panic").clone());
        Outcome { violations, history: history.unwrap_or_default(), stored, happened: Vec::new(), met: 0 }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().expect("no panic")
    }

    /// Returns true if all replicas run, nothing keeps them from their work, and no client waits.
    fn is_calm(&self) -> bool {
        let is_calm = |slot: &mut Slot| {
            let Some(RunningReplica { calls, .. }) = &mut slot.process else { return false };
            while calls.try_join_next().is_some() {}
            slot.former.is_empty() && calls.is_empty()
        };
        *self.calm_at.lock().expect("no panic") < self.nature.clock.now() && self.slots().iter_mut().all(is_calm)
    }

    async fn is_idle(&self) -> bool {
        let statuses = vec![TaskStatus::Dispatched];
        let filter = TaskFilter { statuses, limit: 1, examine: 1_000, ..TaskFilter::default() };
        self.platters.memory.tasks(filter).await.expect("memory").records.is_empty()
    }

    /// Records that something keeps replicas from their work until then.
    fn disturb(&self, until: Timestamp) {
        let mut calm_at = self.calm_at.lock().expect("no panic");
        *calm_at = until.max(*calm_at);
    }

    fn strike(self: &Arc<Self>, replica: usize, strike: Strike) {
        let mut slots = self.slots();
        let Slot { wire, process, former, .. } = &mut slots[replica];
        let after = |length: Duration| self.nature.clock.now().plus(length);
        match (strike, process.as_mut()) {
            (Strike::Call(call), Some(process)) => self.call(process, call),
            (Strike::Freeze(length), Some(process)) => {
                self.disturb(after(length));
                process.link.body.freeze(after(length));
            }
            (Strike::Evict, Some(process)) => {
                let (memory, epoch) = (Arc::clone(&self.platters), process.link.epoch());
                tokio::spawn(async move {
                    // Without a run of its own, this beat only reads.
                    let beats = memory.memory.beat(Beat::default()).await.expect("memory").replicas;
                    if let Some(row) = beats.iter().find(|row| row.epoch == epoch) {
                        memory.memory.evict(epoch, row.beat).await.expect("memory");
                    }
                });
            }
            (Strike::Deafen(length), Some(process)) => {
                self.disturb(after(length));
                process.link.body.deafen(after(length));
            }
            (Strike::Cut(length), _) => {
                self.disturb(after(length));
                wire.cut(after(length));
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

    fn call(&self, process: &mut RunningReplica, call: Call) {
        let (engine, said, nature) = (Arc::clone(&process.engine), Arc::clone(&self.said), Arc::clone(&self.nature));
        let (policy, clock) = (self.wheels.policy(call.wheel, call.act), process.link.body.clock.clone());
        process.calls.spawn(async move {
            let answer = ask(&engine, &nature, &clock, &call, policy).await;
            said.lock().expect("no panic").extend(answer.map(|answer| (call, answer)));
        });
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
        let (name, wire) = {
            let mut slots = self.slots();
            let Some(slot) = slots.get_mut(replica) else { return };
            if slot.process.is_some() || replace(&mut slot.is_starting, true) {
                return;
            }
            (slot.name, Arc::clone(&slot.wire))
        };
        let body = Arc::new(Body::new(&self.nature, name, self.pace));
        let link = Arc::new(Link::new(&body, &wire, &self.platters, &self.runs));
        self.nature.note(|| format!("{name} starts as {}", link.epoch()));
        let engine = loop {
            let engine = Engine::start(Parts {
                store: link.clone(),
                executor: Arc::new(self.wheels.reach(&link)),
                catalogue: None,
                keyring: self.keyring.clone(),
                clock: body.clock.clone(),
                random: self.random.clone(),
                max_in_flight: 100,
            });
            if let Ok(engine) = engine.await {
                break engine;
            }
            self.nature.pause(Duration::from_secs(1)).await;
        };
        self.disturb(self.nature.clock.now());
        let process = RunningReplica::run(self, engine, link);
        if let Some(slot) = self.slots().get_mut(replica) {
            (slot.process, slot.is_starting) = (Some(process), false);
        }
    }

    /// Ends the process of a run that has found out that it was evicted. Its supervisor starts
    /// another.
    pub(super) fn end(self: &Arc<Self>, name: &str, epoch: Epoch) {
        let mut slots = self.slots();
        let Some(replica) = slots.iter().position(|slot| slot.name == name) else { return };
        let Slot { process, former, .. } = &mut slots[replica];
        let is_it = |process: &mut RunningReplica| process.link.epoch() == epoch;
        let current = process.take_if(is_it);
        let is_current = current.is_some();
        let ended: Vec<_> = former.extract_if(.., is_it).chain(current).collect();
        drop((slots, ended));
        self.nature.note(|| format!("{epoch} finds that it has ended"));
        if is_current {
            self.start_later(replica, Duration::from_millis(self.nature.below(5_000)));
        }
    }
}

#[test]
fn no_world_of_replicas_breaks_a_promise() {
    // Each takes about as long as eight of one process.
    let Worlds { worlds, first, seed } = Worlds::from_options(2_400);
    let worlds = worlds.div_ceil(8);
    let describe = |seed| {
        let Outcome { violations, history, .. } = live(seed, None, true);
        format!("{}\n\nreplicas of seed {seed}:\n{}", history.join("\n"), violations.join("\n"))
    };
    if let Some(seed) = seed {
        return println!("{}", describe(seed));
    }
    if let Some(seed) = first_violation(first..first + worlds, |seed| !live(seed, None, false).violations.is_empty()) {
        panic!("{}", describe(seed));
    }
    println!("{worlds} worlds of replicas from {first} on, no promise broken");
}

#[test]
fn every_mutant_of_replicas_is_caught() {
    for mutant in MUTANTS {
        let seed = first_violation(0..10_000, |seed| !live(seed, Some(mutant), false).violations.is_empty());
        let seed = seed.unwrap_or_else(|| panic!("{mutant:?} breaks no promise in 10,000 worlds"));
        let violations = live(seed, Some(mutant), false).violations;
        println!("{mutant:?} is caught by replicas of world {seed}: {}", violations[0]);
    }
}

#[test]
fn a_seed_is_the_same_world_of_replicas_each_time() {
    for seed in 0..50 {
        assert_eq!(live(seed, None, true).history, live(seed, None, true).history, "seed {seed}");
    }
}
