//! The clients of two processes, which call, read and poll, and an operator that revokes their
//! keys.
//!
//! A request goes to any process that answers. Repetitions can reach the other one.

use super::contender::{Body, Contender};
use super::disk::Platters;
use super::events::{Call, NAMES};
use super::mutants::Mutant;
use super::pair::Pair;
use super::{Nature, ask};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::RwLock;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::access::{AccessError, Caller, Credentials, Grants, UsedNonce};
use toolwarrant_core::act::{Channel, Claims, Operator, Origin, Role};
use toolwarrant_core::lease::Lease;
use toolwarrant_core::nonces::{BadNonce, Nonces};
use toolwarrant_core::registry::{KeyPrefixes, NewApplication, NewKey, Registry};
use toolwarrant_core::tasks::{LongPoll, Poll, TaskStatus, Tasks};
use toolwarrant_memory::Memory;
use toolwarrant_tasks::engine::Engine;
use toolwarrant_tasks::store::{TaskFilter, TaskStore};

mod contract {
    toolwarrant_macros::contract!("../../../tests/services/print_shop/spec", runtime = ::toolwarrant_core);
}

type Account = (String, Arc<NewKey>);

/// Equal ones are repetitions.
#[derive(Clone, Debug)]
pub(super) struct SignedRead {
    pub(super) name: Arc<str>,
    pub(super) nonce: &'static str,
    /// In Unix seconds.
    pub(super) signed: u64,
}

pub(super) struct Clients {
    accounts: Mutex<HashMap<Arc<str>, Account>>,
    revoked: Mutex<Vec<Arc<NewKey>>>,
    /// Key, nonce and time of signing.
    reads: Mutex<HashSet<(String, &'static str, u64)>>,
    /// As polls reported them.
    ends: Mutex<Vec<(String, TaskStatus)>>,
}

pub(super) async fn open(store: Arc<Memory>, clock: &Clock, random: &Random, lease: Option<Lease>) -> Registry {
    let keyring = KeyRing::new("test", &[7; 32], random.clone());
    let (prefixes, clock, random) = (KeyPrefixes { id: "tk_", secret: "ts_" }, clock.clone(), random.clone());
    Registry::open(store, &contract::CATALOGUE, prefixes, keyring, clock, random, lease).await.expect("memory")
}

fn origin() -> Origin {
    let claims = Claims::default();
    let operator = Operator { role: Role::Owner, name: "alice".to_owned(), uid: 7, channel: Channel::Offline, claims };
    Origin { operator, command: "test".to_owned() }
}

impl Clients {
    /// Registers applications that see no targets but those of their own tasks.
    pub(super) async fn new(nature: &Nature, platters: &Platters, random: &Random) -> Self {
        let registry = open(Arc::clone(&platters.memory), &nature.clock, random, None).await;
        let (mut accounts, (revoked, reads, ends)) = (HashMap::new(), Default::default());
        for name in NAMES {
            let (permissions, grants) = (Vec::new(), Grants::nothing());
            let new = NewApplication { name: name.to_owned(), permissions, grants, requests_per_minute: 300 };
            let id = registry.create(new, &origin()).await.expect("a free name").object;
            let key = registry.issue_key(&id, None, &origin()).await.expect("memory");
            accounts.insert(name.into(), (id, Arc::new(key)));
        }
        Self { accounts: Mutex::new(accounts), revoked, reads, ends }
    }

    fn account(&self, name: &str) -> Account {
        self.accounts.lock().expect("no panic")[name].clone()
    }
}

pub(super) struct Front {
    pub(super) body: Arc<Body>,
    pub(super) epoch: u64,
    pub(super) registry: Registry,
    pub(super) nonces: Nonces,
    /// Follows the clock of the process.
    pub(super) wall: Clock,
    pub(super) engine: Arc<Engine>,
    /// True once it hands over. A request under way holds it.
    pub(super) is_closed: RwLock<bool>,
}

impl Front {
    fn authenticate(&self, NewKey { key_id, secret, .. }: &NewKey) -> Result<Caller, AccessError> {
        let shown = Credentials { key_id, secret: secret.expose() };
        self.registry.access().authenticate(shown, None, &self.body.clock)
    }

    fn take(&self, caller: &Caller, nonce: &str, signed: Option<u64>) -> Result<UsedNonce, BadNonce> {
        let now = self.body.clock.now();
        self.wall.advance(now.since(self.wall.now()));
        self.nonces.take(caller, nonce, signed.unwrap_or(now.0 / 1_000), signed.is_some())
    }
}

impl Pair {
    /// Checks that no process answers which another has replaced, or with a key after its
    /// revocation was confirmed. A process that stands still answers nothing.
    pub(super) fn check_all_answers(&self) {
        let slots = self.slots();
        let fronts = slots.iter().flatten().filter_map(|process| process.front.as_ref());
        fronts.filter(|front| !front.body.is_frozen()).for_each(|front| self.check_answers(front));
    }

    fn check_answers(&self, front: &Front) {
        let answers = |key: &NewKey| front.authenticate(key).is_ok();
        if self.clients.revoked.lock().expect("no panic").iter().any(|key| answers(key)) {
            self.world.platters.violate(format!("{} answers a key after its revocation was confirmed", front.epoch));
        }
        let accounts = self.clients.accounts.lock().expect("no panic");
        if front.epoch != self.claim.epoch() && accounts.values().any(|(_, key)| answers(key)) {
            self.world.platters.violate(format!("{} answers although another process leads", front.epoch));
        }
    }

    fn may_answer(&self, front: &Front, caller: &Caller) -> bool {
        self.check_answers(front);
        front.registry.access().renew(caller, &front.body.clock).is_ok()
    }

    pub(super) fn reach<F>(self: &Arc<Self>, request: impl FnOnce(Arc<Self>, Arc<Front>) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let pair = Arc::clone(self);
        tokio::spawn(async move {
            for _ in 0..20 {
                if let Some(Contender { front: Some(front), calls, .. }) = pair.choose(&mut pair.slots()) {
                    let (front, request) = (Arc::clone(front), request(Arc::clone(&pair), Arc::clone(front)));
                    calls.spawn(async move { front.body.live(request).await });
                    return;
                }
                pair.world.nature.clock.sleep_until(pair.world.nature.clock.now().plus(Duration::from_secs(1))).await;
            }
        });
    }

    fn choose<'a>(&self, slots: &'a mut [Option<Contender>; 2]) -> Option<&'a mut Contender> {
        let mut leading: Vec<_> = slots.iter_mut().flatten().filter(|process| process.front.is_some()).collect();
        let chosen = if leading.len() > 1 { self.world.nature.below(2) as usize } else { 0 };
        (chosen < leading.len()).then(|| leading.swap_remove(chosen))
    }

    pub(super) async fn answer_call(self: Arc<Self>, front: Arc<Front>, call: Call, nonce: Option<&'static str>) {
        let is_closed = front.is_closed.read().await;
        let (id, key) = self.clients.account(&call.application);
        let Ok(caller) = front.authenticate(&key) else { return };
        if *is_closed {
            return;
        }
        let used = match nonce.map(|nonce| front.take(&caller, nonce, None)) {
            Some(Err(_)) => return,
            used => used.and_then(Result::ok),
        };
        let call = Call { application: id.into(), ..call };
        let (policy, clock) = (self.world.wheels.policy(call.wheel, call.act), &front.body.clock);
        let answer = ask(&front.engine, &self.world.nature, clock, (&call, used.as_ref()), policy).await;
        if let Some(Ok(task)) = &answer
            && self.world.nature.chance(30)
        {
            let id = task.task_id.clone();
            self.reach(move |pair, front| pair.answer_poll(front, id, key));
        }
        // The pipeline tells clients nothing without a lease.
        if self.may_answer(&front, &caller) {
            self.world.said.lock().expect("no panic").extend(answer.map(|answer| (call, answer)));
        }
    }

    pub(super) async fn answer_read(self: Arc<Self>, front: Arc<Front>, read: SignedRead) {
        let is_closed = front.is_closed.read().await;
        let SignedRead { name, nonce, signed } = read;
        let (_, key) = self.clients.account(&name);
        let Ok(caller) = front.authenticate(&key) else { return };
        if *is_closed {
            return;
        }
        let Ok(used) = front.take(&caller, nonce, Some(signed)) else { return };
        if used.is_due() && front.engine.keep_nonce(&used).await.is_err() {
            return;
        }
        let read = (key.key_id.clone(), nonce, signed);
        if self.may_answer(&front, &caller) && !self.clients.reads.lock().expect("no panic").insert(read) {
            self.world.platters.violate(format!("a read with the nonce {nonce} of {} is answered twice", key.key_id));
        }
    }

    async fn answer_poll(self: Arc<Self>, front: Arc<Front>, id: String, key: Arc<NewKey>) {
        let is_closed = front.is_closed.read().await;
        let Ok(caller) = front.authenticate(&key) else { return };
        if *is_closed {
            return;
        }
        let (wait, hold_at_most, interval) = (Some(Duration::from_hours(24)), Duration::ZERO, Duration::ZERO);
        let poll = Poll { caller: &caller, id: &id, wait, hold_at_most, hold: LongPoll::Allowed, interval };
        let told = front.engine.poll(poll).await.ok().filter(|_| self.may_answer(&front, &caller));
        let ended = told.filter(|task| task.finished_at.is_some()).map(|task| (id, task.status));
        self.clients.ends.lock().expect("no panic").extend(ended);
    }

    pub(super) async fn find_wrong_ends(&self) -> Vec<String> {
        let all = TaskFilter { limit: 1_000, examine: 1_000, ..TaskFilter::default() };
        let records = self.world.platters.memory.tasks(all).await.expect("memory").records;
        let is_end = |(id, status): &(String, TaskStatus)| {
            records.iter().any(|record| record.id.to_string() == *id && record.task.outward_status() == *status)
        };
        let ends = self.clients.ends.lock().expect("no panic");
        ends.iter().filter(|end| !is_end(end)).map(|end| format!("a poll was told {end:?}")).collect()
    }

    pub(super) async fn revoke(self: Arc<Self>, front: Arc<Front>, name: Arc<str>) {
        let (id, key) = self.clients.account(&name);
        let revoked = front.registry.revoke_key(&key.key_id, &origin()).await;
        self.world.nature.note(|| format!("revoked: {revoked:?}"));
        if revoked.is_err() && !self.world.nature.is(Mutant::UnstoredRevocation) {
            return;
        }
        self.clients.revoked.lock().expect("no panic").push(key);
        self.check_all_answers();
        if let Ok(key) = front.registry.issue_key(&id, None, &origin()).await {
            self.clients.accounts.lock().expect("no panic").insert(name, (id, Arc::new(key)));
        }
    }
}
