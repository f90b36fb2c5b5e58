//! The clients of replicas, who call and poll, and an operator who revokes their keys.
//!
//! Clients repeat signed requests on other replicas. They wait for the end of a task on any of
//! them. In half of the worlds a call comes through although the lease is over, like one that was
//! checked before and took long.

use super::ask;
use super::cluster::Cluster;
use super::events::Call;
use super::operator::{Registered, origin};
use super::replica::{Front, RunningReplica};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::access::{AccessError, Caller, Credentials};
use toolwarrant_core::cluster::{ClusterStore, LEASE};
use toolwarrant_core::registry::{Durability, NewKey};
use toolwarrant_core::tasks::{LongPoll, Poll, Tasks};

/// A nonce of a signed request. Equal ones of an application are repeated requests.
pub(super) type Nonce = Option<&'static str>;

/// The id of an application, and its key.
type Account = (String, Arc<NewKey>);

/// The credentials of the clients.
pub(super) struct Clients {
    /// The account of each name.
    accounts: Mutex<HashMap<Arc<str>, Account>>,
    /// Keys whose revocation was confirmed.
    revoked: Mutex<Vec<Arc<NewKey>>>,
    /// True if calls need a lease.
    needs_lease: bool,
    /// The time of a failover that has lost acknowledged writes.
    pub(super) lost_at: Mutex<Option<Timestamp>>,
}

impl Clients {
    pub(super) fn new(registered: Registered, needs_lease: bool) -> Self {
        let accounts = registered.accounts.into_iter().map(|(name, (id, key))| (name, (id, Arc::new(key))));
        let (accounts, revoked, lost_at) = (Mutex::new(accounts.collect()), Mutex::default(), Mutex::default());
        Self { accounts, revoked, needs_lease, lost_at }
    }

    fn account(&self, name: &str) -> Account {
        self.accounts.lock().expect("no panic")[name].clone()
    }
}

impl Front {
    fn authenticate(&self, NewKey { key_id, secret, .. }: &NewKey) -> Result<Caller, AccessError> {
        let shown = Credentials { key_id, secret: secret.expose() };
        self.registry.access().authenticate(shown, None, &self.link.body.clock)
    }
}

impl Cluster {
    /// Checks that a process answers only what it may answer, unless it stands still.
    pub(super) fn check_answers(&self, front: &Front) {
        let (clients, epoch) = (&self.clients, front.link.epoch());
        if front.link.body.is_frozen() {
            return;
        }
        if clients.revoked.lock().expect("no panic").iter().any(|key| front.authenticate(key).is_ok()) {
            self.platters.violate(format!("{epoch} answers a key after its revocation was confirmed"));
        }
        if !front.has_lease() {
            return;
        }
        // Its clock can be slower by a hundredth.
        let longest = LEASE + LEASE / 50;
        let now = self.nature.clock.now();
        if now > front.link.heard_at().plus(longest) {
            self.platters.violate(format!("the lease of {epoch} stands for too long"));
        }
        if clients.lost_at.lock().expect("no panic").is_some_and(|at| now > at.plus(longest)) {
            self.platters.violate(format!("{epoch} answers without acknowledged writes"));
        }
    }

    pub(super) fn call(self: &Arc<Self>, process: &mut RunningReplica, call: Call, nonce: Nonce) {
        let (cluster, front) = (Arc::clone(self), Arc::clone(&process.front));
        process.calls.spawn(async move { front.link.body.live(cluster.answer_call(&front, call, nonce)).await });
    }

    async fn answer_call(self: &Arc<Self>, front: &Front, call: Call, nonce: Nonce) {
        self.check_answers(front);
        let ((id, key), clock) = (self.clients.account(&call.application), &front.link.body.clock);
        let caller = match front.authenticate(&key) {
            Ok(caller) => Some(caller),
            Err(AccessError::NoLease) if !self.clients.needs_lease => None,
            Err(_) => return,
        };
        let used = match nonce.zip(caller) {
            Some((nonce, caller)) => match front.nonces.take(&caller, nonce, clock.now().0 / 1_000, false) {
                Ok(used) => Some(used),
                Err(_) => return,
            },
            None => None,
        };
        let call = Call { application: id.into(), ..call };
        let policy = self.wheels.policy(call.wheel, call.act);
        let answer = ask(&front.engine, &self.nature, clock, (&call, used.as_ref()), policy).await;
        if let Some(Ok(task)) = &answer
            && self.nature.chance(30)
        {
            self.poll(task.task_id.clone(), key);
        }
        // The pipeline tells clients nothing without a lease.
        if front.has_lease() {
            self.said.lock().expect("no panic").extend(answer.map(|answer| (call, answer)));
        }
    }

    /// Waits for the end of a task on some replica.
    fn poll(&self, id: String, key: Arc<NewKey>) {
        let mut slots = self.slots();
        let place = self.nature.below(slots.len() as u64) as usize;
        let Some(RunningReplica { front, calls, .. }) = &mut slots[place].process else { return };
        let front = Arc::clone(front);
        calls.spawn(async move {
            let polling = async {
                let Ok(caller) = front.authenticate(&key) else { return };
                // No world takes that long.
                let (wait, hold_at_most, interval) = (Some(Duration::from_hours(24)), Duration::ZERO, Duration::ZERO);
                let poll = Poll { caller: &caller, id: &id, wait, hold_at_most, hold: LongPoll::Allowed, interval };
                drop(front.engine.poll(poll).await);
            };
            front.link.body.live(polling).await;
        });
    }

    /// Revokes the key of an application, and then issues another.
    pub(super) fn revoke(self: &Arc<Self>, process: &mut RunningReplica, name: Arc<str>) {
        let (cluster, front, (id, key)) = (Arc::clone(self), Arc::clone(&process.front), self.clients.account(&name));
        process.calls.spawn(async move {
            let revoking = async {
                let _acting = front.acting.lock().await;
                let revoked = front.registry.revoke_key(&key.key_id, &origin()).await;
                cluster.nature.note(|| format!("revoked: {revoked:?}"));
                if !revoked.is_ok_and(|changed| changed.durability == Durability::Stored) {
                    return;
                }
                cluster.clients.revoked.lock().expect("no panic").push(key);
                cluster.check_all_answers();
                if let Ok(key) = front.registry.issue_key(&id, None, &origin()).await {
                    cluster.clients.accounts.lock().expect("no panic").insert(name, (id, Arc::new(key)));
                }
            };
            front.link.body.live(revoking).await;
        });
    }

    /// Checks that each process answers only what it may answer.
    pub(super) fn check_all_answers(&self) {
        let slots = self.slots();
        let processes = slots.iter().flat_map(|slot| slot.process.iter().chain(&slot.former));
        processes.for_each(|process| self.check_answers(&process.front));
    }
}
