//! An operator that changes applications and keys while their tasks are in flight.
//!
//! Each world runs twice. With the operator, a client calls the engine only if the registry admits
//! it at that moment. Without the operator, the clients make exactly those calls, as the same
//! applications. Changes draw from generators of their own and take no time, so everything that is
//! stored about tasks must be equal in both runs.

use super::disk::Platters;
use super::events::{Call, Change, Happens, NAMES};
use super::{Nature, Outcome, Worlds, first_violation, live_through};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::{Random, SplitMix};
use toolwarrant_core::access::{Caller, Credentials, Grants, Principal};
use toolwarrant_core::act::{Channel, Claims, Operator, Origin, Role};
use toolwarrant_core::lease::Lease;
use toolwarrant_core::registry::{KeyPrefixes, NewApplication, NewKey, Registry, RegistryError};
use toolwarrant_core::store::ApplicationRow;
use toolwarrant_core::tasks::{LongPoll, Poll, TASK_PAGE_MAX, TaskQuery, TaskReadError, Tasks};
use toolwarrant_memory::Memory;
use toolwarrant_tasks::engine::Engine;
use toolwarrant_tasks::store::{TaskFilter, TaskStore};

mod contract {
    toolwarrant_macros::contract!("../../../tests/services/print_shop/spec", runtime = ::toolwarrant_core);
}

const OPERATOR: u64 = 0x6f70_6572_6174_6f72;

pub(super) struct Registered {
    registry: Registry,
    nature: Arc<Nature>,
    platters: Arc<Platters>,
    random: Random,
    pub(super) accounts: HashMap<Arc<str>, (String, NewKey)>,
    /// Also of those that were deleted.
    callers: Vec<Caller>,
    pub(super) met: u64,
}

impl Registered {
    /// Registers applications that see no targets but those of their own tasks.
    pub(super) async fn new(seed: u64, nature: &Arc<Nature>, platters: &Arc<Platters>) -> Self {
        let random = Random::from_seed(seed ^ OPERATOR);
        let registry = open(Arc::clone(&platters.memory), &nature.clock, &random, None).await;
        let (nature, platters) = (Arc::clone(nature), Arc::clone(platters));
        let (accounts, callers, met) = Default::default();
        let mut registered = Self { registry, nature, platters, random, accounts, callers, met };
        for name in NAMES {
            registered.create(name.into()).await;
        }
        registered
    }

    pub(super) async fn reopen(&mut self) {
        self.registry = open(Arc::clone(&self.platters.memory), &self.nature.clock, &self.random, None).await;
    }

    async fn create(&mut self, name: Arc<str>) {
        let (permissions, grants) = (Vec::new(), Grants::nothing());
        let new = NewApplication { name: name.to_string(), permissions, grants, requests_per_minute: 300 };
        let id = self.registry.create(new, &origin()).await.expect("a free name").object;
        let key = self.registry.issue_key(&id, None, &origin()).await.expect("memory");
        self.accounts.insert(Arc::clone(&name), (id, key));
        self.callers.extend(self.authenticate(&name));
    }

    fn authenticate(&self, name: &str) -> Option<Caller> {
        let (_, NewKey { key_id, secret, .. }) = &self.accounts[name];
        let shown = Credentials { key_id, secret: secret.expose() };
        self.registry.access().authenticate(shown, None, &self.nature.clock).ok()
    }

    /// Returns any other event, unless it is a call that is refused.
    pub(super) async fn filter(&mut self, happens: Happens) -> Option<Happens> {
        match happens {
            Happens::Call(call) => {
                let Principal { application, .. } = &*self.authenticate(&call.application)?;
                let fits = application.window.admit(None, self.nature.clock.now(), 1).is_ok();
                let admitted = Call { application: (&*application.id).into(), ..call };
                (fits && !application.suspended).then_some(Happens::Call(admitted))
            }
            Happens::Change(name, change) => {
                let id = self.accounts[&name].0.clone();
                let in_flight = self.platters.memory.in_flight(None, 100).await.expect("memory");
                let done = self.change(name, change).await;
                self.nature.note(|| format!("{done:?}"));
                let met = in_flight.iter().filter(|task| done.is_ok() && task.identity.application == id);
                self.met += met.count() as u64;
                None
            }
            other => Some(other),
        }
    }

    async fn change(&mut self, name: Arc<str>, change: Change) -> Result<(), RegistryError> {
        let (now, origin) = (self.nature.clock.now(), origin());
        let Self { registry, accounts, .. } = self;
        let (id, key) = accounts.get_mut(&name).expect("a name");
        let changed = match change {
            Change::Revoke => registry.revoke_key(&key.key_id, &origin).await,
            Change::Rotate => {
                *key = match registry.rotate_key(&key.key_id, None, &origin).await {
                    Ok(rotated) => rotated,
                    Err(_) => registry.issue_key(id, None, &origin).await?,
                };
                return Ok(());
            }
            Change::Suspend | Change::Resume | Change::Rate(_) | Change::Delete | Change::Replace => {
                let edit = |row: &mut ApplicationRow| match change {
                    Change::Suspend => row.suspended_at = Some(now),
                    Change::Resume => row.suspended_at = None,
                    Change::Rate(limit) => row.requests_per_minute = limit,
                    _ => row.delete(now),
                };
                registry.change(id, &origin, edit).await
            }
        };
        if let Change::Replace = change {
            self.create(name).await;
        }
        changed.map(drop)
    }

    /// Returns each application that cannot read a task of its own, or can read one of another. A
    /// new application with the id of a former one could read its tasks, too.
    pub(super) async fn find_wrong_readers(&self, engine: &Engine) -> Vec<String> {
        let all = TaskFilter { limit: 1_000, examine: 1_000, ..TaskFilter::default() };
        let records = self.platters.memory.tasks(all).await.expect("memory").records;
        let mut wrong = Vec::new();
        for (n, caller) in self.callers.iter().enumerate() {
            let own = &caller.application.id;
            if self.callers[..n].iter().any(|former| former.application.id == *own) {
                wrong.push(format!("{own} is the id of two applications"));
            }
            let query = TaskQuery { limit: TASK_PAGE_MAX, ..TaskQuery::default() };
            let page = engine.list(own, query).await.expect("memory");
            for record in &records {
                let id = record.id.to_string();
                let (hold_at_most, interval) = (Duration::ZERO, Duration::ZERO);
                let poll = Poll { caller, id: &id, wait: None, hold_at_most, hold: LongPoll::Never, interval };
                let reads = [
                    engine.poll(poll).await != Err(TaskReadError::NotFound),
                    page.tasks.iter().any(|task| task.id == id),
                ];
                if reads != [*record.identity.application == **own; 2] {
                    wrong.push(format!("{own} reads {reads:?} of {record:?}"));
                }
            }
        }
        wrong
    }
}

pub(super) async fn open(store: Arc<Memory>, clock: &Clock, random: &Random, lease: Option<Lease>) -> Registry {
    let keyring = KeyRing::new("test", &[7; 32], random.clone());
    let (prefixes, clock, random) = (KeyPrefixes { id: "tk_", secret: "ts_" }, clock.clone(), random.clone());
    Registry::open(store, &contract::CATALOGUE, prefixes, keyring, clock, random, lease).await.expect("memory")
}

pub(super) fn origin() -> Origin {
    let claims = Claims::default();
    let operator = Operator { role: Role::Owner, name: "alice".to_owned(), uid: 7, channel: Channel::Offline, claims };
    Origin { operator, command: "test".to_owned() }
}

fn add_changes(seed: u64, mut events: Vec<(Duration, Happens)>) -> Vec<(Duration, Happens)> {
    let mut random = SplitMix(seed ^ OPERATOR);
    let call = |(at, happens): &(Duration, Happens)| match happens {
        Happens::Call(call) => Some((*at, Arc::clone(&call.application))),
        _ => None,
    };
    let calls: Vec<_> = events.iter().filter_map(call).collect();
    for _ in 0..1 + random.below(8) {
        let (at, name) = calls[random.below(calls.len() as u64) as usize].clone();
        let after = [100, 1_000, 10_000, 60_000][random.below(4) as usize];
        let change = match random.below(8) {
            0 => Change::Suspend,
            1 => Change::Resume,
            2 => Change::Rate([1, 2, 300][random.below(3) as usize]),
            3 => Change::Delete,
            4 | 5 => Change::Replace,
            6 => Change::Revoke,
            _ => Change::Rotate,
        };
        events.push((at + Duration::from_millis(random.below(after)), Happens::Change(name, change)));
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

fn live_twice(seed: u64, telling: bool) -> (Outcome, Vec<String>) {
    let with = live_through(seed, None, telling, |events| add_changes(seed, events));
    let without = live_through(seed, None, telling, |_| with.happened.clone());
    let differences = |one: &Outcome, other: &Outcome, whose: &str| {
        let lines = one.stored.iter().filter(|line| !other.stored.contains(line));
        lines.map(|line| format!("only {whose} the operator: {line}")).collect::<Vec<_>>()
    };
    let differ = [differences(&with, &without, "with"), differences(&without, &with, "without")];
    let broken = [with.violations.clone(), without.violations.clone(), differ.concat()].concat();
    (with, broken)
}

#[test]
fn an_operator_changes_no_charge_and_no_end_of_tasks_in_flight() {
    let Worlds { worlds, first, .. } = Worlds::from_options(800);
    let worlds = worlds.div_ceil(4);
    let met = AtomicU64::new(0);
    let breaks = |seed| {
        let (with, broken) = live_twice(seed, false);
        met.fetch_add(with.met, Relaxed);
        !broken.is_empty()
    };
    if let Some(seed) = first_violation(first..first + worlds, breaks) {
        let (with, broken) = live_twice(seed, true);
        panic!("{}\n\nseed {seed}:\n{}", with.history.join("\n"), broken.join("\n"));
    }
    println!("{worlds} worlds from {first} on, equal without their operator, who met {met:?} tasks in flight");
}
