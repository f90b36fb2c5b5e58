//! Authentication: applications, their keys, what they may do and see, and the proof of who calls.
//!
//! Only [`Access`] makes a [`Caller`], and judges it again later. The pipeline decides whether a caller may use a tool; the
//! [`registry`](super::registry) decides who has a key. This module holds no secret, only verifiers. Start at [`Access`].

mod recent;

pub use recent::Principal;

use super::catalogue::PermissionSet;
use super::limit::Window;
use super::reply::ToolLists;
use crate::clock::{Clock, Timestamp};
use crate::keyring::{Digest, KeyRing, SecretRow};
use crate::nonces::UsedNonce;
use crate::shards::Shards;
use arc_swap::ArcSwap;
use bytes::Bytes;
use recent::Recent;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use subtle::{Choice, ConstantTimeEq};
use tokio::sync::watch;
use toolwarrant_signing::{Signature, Signer};

/// Most live secrets of a key: the one in use and its successor.
pub(super) const LIVE_SECRETS: usize = 2;

/// What a request shows to prove who sent it, unchecked. A transport fills it.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The id of the key.
    pub key_id: &'a str,
    /// A live secret of the key.
    pub secret: &'a str,
}

/// The keys that requests are checked against. Reading waits for no other thread: a change swaps in a whole new directory, and what a
/// caller keeps of it is counted by each thread for itself.
pub struct Access {
    directory: ArcSwap<Directory>,
    /// Notified after each change.
    changed: watch::Sender<()>,
    keyring: KeyRing,
    /// Verifies in the place of a secret that is not there.
    vacant: Signer,
    recent: Shards<Mutex<Recent>>,
}

/// An application. All its keys share what is in here.
#[derive(Debug)]
pub struct Application {
    /// Its id in the audit and in storage.
    pub id: Box<str>,
    /// Its name for people.
    pub name: Box<str>,
    /// What it may do.
    pub permissions: PermissionSet,
    /// Which targets it may see.
    pub grants: Grants,
    /// Its request budget. A change of the application keeps it, so the budget goes on.
    pub window: Arc<Window>,
    /// The tools that `tools/list` shows for these permissions, made at the first request for them.
    pub(super) tools: OnceLock<ToolLists>,
    /// The instructions for these permissions as a JSON string, made likewise.
    pub(super) instructions: OnceLock<Bytes>,
}

impl Application {
    /// An application with that budget.
    #[must_use]
    pub fn new(id: &str, name: &str, permissions: PermissionSet, grants: Grants, window: Arc<Window>) -> Self {
        let (tools, instructions) = (OnceLock::new(), OnceLock::new());
        Self { id: id.into(), name: name.into(), permissions, grants, window, tools, instructions }
    }
}

/// The targets that an application may see, by resource. Ids of two resources are unrelated: a grant of the tray `p-1` shows no
/// printer `p-1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants(Visible);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Visible {
    /// Every target of every resource, present and future.
    Everything,
    /// What is granted of each resource. A resource that is absent is not granted.
    Only(BTreeMap<Box<str>, Granted>),
}

/// The targets of one resource that an application may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    /// Every one, present and future.
    All,
    /// These, by identifier.
    Some(BTreeSet<Box<str>>),
}

/// The keys that can call, each with its application.
#[derive(Clone, Default)]
pub struct Directory {
    keys: HashMap<Arc<str>, Key>,
    /// The number of changes that led here.
    version: u64,
}

#[derive(Clone)]
struct Key {
    application: Arc<Application>,
    /// Verifiers, the latest first. Every one is compared each time, so that timing does not tell how many there are.
    live: [Digest; LIVE_SECRETS],
    /// The same secrets, sealed: signatures are verified with the secret itself.
    sealed: [Option<Arc<Sealed>>; LIVE_SECRETS],
    expires_at: Option<Timestamp>,
}

/// A secret that is opened once, for the first signature.
struct Sealed {
    purpose: Arc<str>,
    bytes: Box<[u8]>,
    signer: OnceLock<Option<Signer>>,
}

impl Sealed {
    /// Signs with the secret. `None` if it cannot be opened.
    fn signer(&self, keyring: &KeyRing) -> Option<&Signer> {
        let open = || keyring.open(&self.purpose, &self.bytes).ok().map(|secret| Signer::new(secret.expose()));
        self.signer.get_or_init(open).as_ref()
    }
}

impl Directory {
    /// Puts a key with its live secrets, the latest first. Removes a key without any.
    pub fn put_key(
        &mut self,
        id: &str,
        application: &Arc<Application>,
        secrets: &[SecretRow],
        expires_at: Option<Timestamp>,
    ) {
        if secrets.is_empty() {
            self.keys.remove(id);
            return;
        }
        let live = std::array::from_fn(|n| secrets.get(n).map_or(VACANT, |secret| secret.verifier));
        let purpose: Arc<str> = purpose(&application.id, id).into();
        let seal = |secret: &SecretRow| {
            Arc::new(Sealed {
                purpose: Arc::clone(&purpose),
                bytes: secret.sealed.as_slice().into(),
                signer: OnceLock::new(),
            })
        };
        let sealed = std::array::from_fn(|n| secrets.get(n).map(seal));
        self.keys.insert(id.into(), Key { application: Arc::clone(application), live, sealed, expires_at });
    }

    /// Replaces an application for all its keys.
    pub fn put_application(&mut self, application: &Arc<Application>) {
        for key in self.keys.values_mut().filter(|key| key.application.id == application.id) {
            key.application = Arc::clone(application);
        }
    }
}

/// The purpose that the secrets of a key are sealed for.
pub(super) fn purpose(application: &str, key_id: &str) -> String {
    format!("{application} {key_id}")
}

/// Proof that a request came with a live secret of a key. Dereferences to whose key it is.
#[derive(Debug, Clone)]
pub struct Caller {
    principal: Arc<Principal>,
    /// The nonce of a signed request.
    pub nonce: Option<Arc<UsedNonce>>,
    proof: Proof,
}

impl Deref for Caller {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.principal
    }
}

/// What a caller was judged by. Private, so that only this module makes one.
#[derive(Debug, Clone, Copy)]
struct Proof {
    /// The verifier of the secret that it has.
    verifier: Digest,
    expires_at: Option<Timestamp>,
    /// The [`Directory::version`].
    version: u64,
}

impl Caller {
    /// When its key ends by itself, unless that changes.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.proof.expires_at
    }
}

/// A refusal that tells no cause: the credentials may be missing, malformed, unknown, wrong, expired or revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the credentials are missing, malformed or wrong")]
pub struct Unauthenticated;

impl Access {
    /// An empty directory. `keyring` makes the verifiers.
    #[must_use]
    pub fn new(keyring: KeyRing) -> Self {
        let recent = Shards::new(|| Mutex::new(Recent::default()));
        let vacant = Signer::new(&"0".repeat(SECRET_CHARS));
        Self { directory: ArcSwap::default(), changed: watch::Sender::new(()), keyring, vacant, recent }
    }

    /// Swaps in a changed copy of the directory. `edit` runs again if another change came in between.
    pub fn change(&self, edit: impl Fn(&mut Directory)) {
        self.directory.rcu(|directory| {
            let mut directory = Directory::clone(directory);
            edit(&mut directory);
            directory.version += 1;
            directory
        });
        // What is gone is not kept in memory for who called with it.
        self.recent.iter().for_each(|recent| *lock(recent) = Recent::default());
        self.changed.send_replace(());
    }

    /// Tells of each change from here on.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Judges a caller again: what it is by now, if its secret is still live and its key has not expired by the later of both
    /// clocks. They are read only for a key that expires.
    ///
    /// # Errors
    /// [`Unauthenticated`].
    pub fn renew<'c>(&self, caller: &'c Caller, clock: &Clock) -> Result<Cow<'c, Caller>, Unauthenticated> {
        let Proof { verifier, expires_at, version } = caller.proof;
        let directory = self.directory.load();
        if directory.version == version {
            let lives = expires_at.is_none_or(|end| clock.latest() < end);
            return lives.then_some(Cow::Borrowed(caller)).ok_or(Unauthenticated);
        }
        let known = directory.keys.get_key_value(&caller.key_id).filter(|(_, key)| key.live.contains(&verifier));
        let renewed = self.caller(&directory, known, verifier, clock)?;
        Ok(Cow::Owned(Caller { nonce: caller.nonce.clone(), ..renewed }))
    }

    /// The proof for who has the secret of this verifier, unless the key has expired by the later of both clocks.
    fn caller(
        &self,
        directory: &Directory,
        known: Option<(&Arc<str>, &Key)>,
        verifier: Digest,
        clock: &Clock,
    ) -> Result<Caller, Unauthenticated> {
        let (id, Key { application, live: _, sealed: _, expires_at }) = known.ok_or(Unauthenticated)?;
        if expires_at.is_some_and(|end| clock.latest() >= end) {
            return Err(Unauthenticated);
        }
        let principal = lock(self.recent.mine()).principal(id, application);
        let proof = Proof { verifier, expires_at: *expires_at, version: directory.version };
        Ok(Caller { principal, nonce: None, proof })
    }

    /// Authenticates credentials. An unknown key takes the same work as a wrong secret.
    ///
    /// # Errors
    /// [`Unauthenticated`].
    pub fn authenticate(&self, credentials: Credentials<'_>, clock: &Clock) -> Result<Caller, Unauthenticated> {
        let Credentials { key_id, secret } = credentials;
        let directory = self.directory.load();
        let known = directory.keys.get_key_value(key_id);
        let live = known.map_or(&[VACANT; LIVE_SECRETS], |(_, key)| &key.live);
        let shown = self.verifier(secret);
        let matches = live.iter().fold(Choice::from(0), |any, verifier| any | same(verifier, &shown));
        self.caller(&directory, known.filter(|_| matches.into()), shown, clock)
    }

    /// Verifies the signature of a canonical request. An unknown key takes the same work as a wrong secret of one that was verified
    /// before.
    ///
    /// # Errors
    /// [`Unauthenticated`].
    pub fn verify(
        &self,
        key_id: &str,
        canonical: &str,
        signature: &Signature,
        clock: &Clock,
    ) -> Result<Caller, Unauthenticated> {
        let directory = self.directory.load();
        let known = directory.keys.get_key_value(key_id);
        let mut matching = None;
        for n in 0..LIVE_SECRETS {
            let signer = known.and_then(|(_, key)| key.sealed.get(n)?.as_ref()?.signer(&self.keyring));
            let signed = signer.unwrap_or(&self.vacant).sign(canonical);
            let matches = same(&signed, signature) & Choice::from(u8::from(signer.is_some()));
            if matches.into() {
                matching = known.and_then(|(_, key)| key.live.get(n).copied());
            }
        }
        self.caller(&directory, known, matching.ok_or(Unauthenticated)?, clock)
    }

    /// Seals a secret for a key of an application. The verifier checks the secret and does not reveal it.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn secret(&self, application: &str, key_id: &str, secret: &str) -> Result<SecretRow, getrandom::Error> {
        let sealed = self.keyring.seal(&purpose(application, key_id), secret)?;
        Ok(SecretRow { verifier: self.verifier(secret), sealed })
    }

    /// Returns the verifier of a secret: it checks the secret and does not reveal it.
    fn verifier(&self, secret: &str) -> Digest {
        self.keyring.mac(&["secret", secret])
    }
}

impl Grants {
    /// Grants every target of every resource, present and future.
    #[must_use]
    pub const fn everything() -> Self {
        Self(Visible::Everything)
    }

    /// Grants no target.
    #[must_use]
    pub const fn nothing() -> Self {
        Self(Visible::Only(BTreeMap::new()))
    }

    /// Replaces what is granted of one resource. Grants of everything stay as they are.
    #[must_use]
    pub fn with(mut self, resource: &str, granted: Granted) -> Self {
        if let Some(resources) = self.resources_mut() {
            resources.insert(resource.into(), granted);
        }
        self
    }

    /// Returns what is granted of a resource; `None` for nothing.
    #[must_use]
    pub fn of(&self, resource: &str) -> Option<&Granted> {
        match &self.0 {
            Visible::Everything => Some(&Granted::All),
            Visible::Only(resources) => resources.get(resource),
        }
    }

    /// Returns whether the target may be seen.
    #[must_use]
    pub fn covers(&self, resource: &str, id: &str) -> bool {
        self.of(resource).is_some_and(|granted| granted.covers(id))
    }

    /// Returns what is granted of each resource; `None` if everything is.
    #[must_use]
    pub fn resources(&self) -> Option<&BTreeMap<Box<str>, Granted>> {
        match &self.0 {
            Visible::Everything => None,
            Visible::Only(resources) => Some(resources),
        }
    }

    /// Returns whether these show nothing that `others` do not.
    #[must_use]
    pub fn are_within(&self, others: &Self) -> bool {
        match (&self.0, &others.0) {
            (_, Visible::Everything) => true,
            (Visible::Everything, Visible::Only(_)) => false,
            (Visible::Only(resources), _) => {
                resources.iter().all(|(resource, granted)| match (granted, others.of(resource)) {
                    (Granted::Some(ids), Some(other)) => ids.iter().all(|id| other.covers(id)),
                    (Granted::Some(ids), None) => ids.is_empty(),
                    (Granted::All, other) => other == Some(&Granted::All),
                })
            }
        }
    }

    /// As [`Self::resources`], to be changed. To narrow grants of everything, call [`Self::spell_out`] first.
    pub fn resources_mut(&mut self) -> Option<&mut BTreeMap<Box<str>, Granted>> {
        match &mut self.0 {
            Visible::Everything => None,
            Visible::Only(resources) => Some(resources),
        }
    }

    /// Turns a grant of everything into a grant of all of each of these `resources`, so that one can be narrowed. Does nothing to
    /// grants by resource.
    pub fn spell_out<'a>(&mut self, resources: impl IntoIterator<Item = &'a str>) {
        if let Visible::Everything = self.0 {
            self.0 = Visible::Only(resources.into_iter().map(|resource| (resource.into(), Granted::All)).collect());
        }
    }
}

impl Granted {
    /// Grants these ids.
    #[must_use]
    pub fn some<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Some(ids.into_iter().map(Box::from).collect())
    }

    /// Returns whether the id is granted.
    #[must_use]
    pub fn covers(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(ids) => ids.contains(id),
        }
    }
}

fn lock(recent: &Mutex<Recent>) -> MutexGuard<'_, Recent> {
    recent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Characters of a secret, about.
const SECRET_CHARS: usize = 68;

/// Fills the place of a missing secret. Nobody can find a secret with this verifier.
const VACANT: Digest = [0; 32];

/// Compares two digests in constant time. By words, because each guarded comparison costs more than what it compares.
fn same(one: &Digest, other: &Digest) -> Choice {
    let (one, other) = (one.as_chunks().0, other.as_chunks().0);
    one.iter()
        .zip(other)
        .fold(Choice::from(1), |same, (one, other)| same & u64::from_ne_bytes(*one).ct_eq(&u64::from_ne_bytes(*other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn application(id: &str) -> Arc<Application> {
        Arc::new(Application::new(id, id, PermissionSet(1), Grants::everything(), Arc::new(Window::new(300))))
    }

    fn access(keys: &[(&str, &str, &str)]) -> Access {
        let access = Access::new(KeyRing::new("test", &[7; 32], Random::System));
        for (id, owner, secret) in keys {
            access.change(|directory| {
                directory.put_key(id, &application(owner), &[access.secret(owner, id, secret).unwrap()], None)
            });
        }
        access
    }

    #[test]
    fn a_change_of_an_application_reaches_its_keys_and_no_others() {
        let access = access(&[("key_1", "one", "a"), ("key_2", "two", "b")]);
        let window = Arc::new(Window::new(300));
        let changed = Arc::new(Application::new("one", "one", PermissionSet(2), Grants::everything(), window));
        access.change(|directory| directory.put_application(&changed));
        let permissions = |key, secret| {
            let caller = access
                .authenticate(Credentials { key_id: key, secret }, &Clock::manual(Timestamp(0)))
                .expect("a live key");
            caller.application.permissions
        };
        assert_eq!([permissions("key_1", "a"), permissions("key_2", "b")], [PermissionSet(2), PermissionSet(1)]);
    }

    #[test]
    fn a_grant_shows_targets_of_its_own_resource_and_no_others() {
        let tray = Grants::nothing().with("tray", Granted::some(["p-1"]));
        assert!(tray.covers("tray", "p-1") && !tray.covers("tray", "p-2") && !tray.covers("printer", "p-1"));
        let trays = Grants::nothing().with("tray", Granted::All);
        assert!(trays.covers("tray", "p-2") && !trays.covers("printer", "p-2"));
        assert!(!Grants::nothing().covers("tray", "p-1"));
        assert_eq!((tray.of("printer"), trays.of("tray")), (None, Some(&Granted::All)));
    }

    #[test]
    fn grants_of_everything_cover_what_comes_and_can_be_spelled_out_to_be_narrowed() {
        let mut grants = Grants::everything().with("tray", Granted::some([]));
        assert!(grants.covers("tray", "p-1") && grants.resources().is_none());
        grants.spell_out(["printer", "tray"]);
        grants.resources_mut().expect("no longer everything").remove("tray");
        assert!(grants.covers("printer", "p-1") && !grants.covers("tray", "p-1"));
        grants.spell_out(["tray"]);
        assert_eq!(grants, Grants::nothing().with("printer", Granted::All));
    }
}
