//! Authentication: applications, keys, permissions and grants, and the proof of a caller.
//!
//! Only [`Access`] makes a [`Caller`], and checks it again later. The pipeline decides if a caller
//! may use a tool; the [`registry`](super::registry) manages keys. This module holds no secrets,
//! only verifiers and seals. Start at [`Access`].

mod application;
mod caller;
mod directory;
mod grants;
mod key_nonces;
mod last_use;

pub use application::Application;
pub use caller::{Caller, Credentials, Principal};
pub use directory::Directory;
pub(crate) use directory::{LIVE_SECRETS, purpose};
pub use grants::{Granted, Grants, Run};
pub use key_nonces::{KeyNonces, NONCE_KEPT, UsedNonce};

use crate::lease::Lease;
use arc_swap::ArcSwap;
use caller::Proof;
use directory::{Key, VACANT};
use last_use::LastUse;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use subtle::{Choice, ConstantTimeEq};
use tokio::sync::watch;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::{Digest, KeyRing, SecretRow, SecretUse};
use toolwarrant_signing::{Signature, Signer};

/// A reader waits for no other thread: a change swaps in a whole new directory.
pub struct Access {
    directory: ArcSwap<Directory>,
    changed: watch::Sender<()>,
    keyring: KeyRing,
    /// Signs in place of a missing secret, so that all keys take equal work.
    vacant: Signer,
    /// `None` if no other process can take the place of this one.
    lease: Option<Lease>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The cause is not revealed.
    #[error("the credentials are missing, malformed or wrong")]
    Unauthenticated,
    /// Another process may lead, so this one does not know which keys are live.
    #[error("this process cannot reach its store")]
    NoLease,
}

impl Access {
    #[must_use]
    pub fn new(keyring: KeyRing) -> Self {
        let vacant = Signer::new(&"0".repeat(SECRET_CHARS));
        Self { directory: ArcSwap::default(), changed: watch::Sender::new(()), keyring, vacant, lease: None }
    }

    #[must_use]
    pub fn with_lease(self, lease: Lease) -> Self {
        Self { lease: Some(lease), ..self }
    }

    pub(crate) fn has_lease(&self) -> bool {
        self.lease.is_some()
    }

    pub(crate) fn check_lease(&self) -> Result<(), AccessError> {
        match &self.lease {
            Some(lease) if !lease.stands() => Err(AccessError::NoLease),
            _ => Ok(()),
        }
    }

    /// Swaps in a changed copy. May run `edit` more than once.
    pub fn change(&self, edit: impl Fn(&mut Directory)) {
        self.directory.rcu(|directory| {
            let mut directory = Directory::clone(directory);
            edit(&mut directory);
            directory.version += 1;
            directory
        });
        self.changed.send_replace(());
    }

    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Checks a caller again: a key expires by the later of both clocks, which are read only if it
    /// expires.
    pub fn renew<'c>(&self, caller: &'c Caller, clock: &Clock) -> Result<Cow<'c, Caller>, AccessError> {
        let Proof { verifier, expires_at, version } = caller.proof;
        let directory = self.directory.load();
        self.check_lease()?;
        if directory.version == version {
            let lives = expires_at.is_none_or(|end| clock.latest() < end);
            return lives.then_some(Cow::Borrowed(caller)).ok_or(AccessError::Unauthenticated);
        }
        let known = directory.keys.get_key_value(&caller.key_id).filter(|(_, key)| key.live.contains(&verifier));
        let renewed = self.caller(&directory, known, verifier, clock)?;
        Ok(Cow::Owned(Caller { nonce: caller.nonce.clone(), from: caller.from, ..renewed }))
    }

    fn caller(
        &self,
        directory: &Directory,
        known: Option<(&Arc<str>, &Arc<Key>)>,
        verifier: Digest,
        clock: &Clock,
    ) -> Result<Caller, AccessError> {
        let (id, key) = known.ok_or(AccessError::Unauthenticated)?;
        let Key { application, live, ends, expires_at, suspended, nonces, .. } = &**key;
        let ends_at = live.iter().zip(ends).find_map(|(live, end)| end.filter(|_| *live == verifier));
        let expires_at = [*expires_at, ends_at].into_iter().flatten().min();
        if *suspended || expires_at.is_some_and(|end| clock.latest() >= end) {
            return Err(AccessError::Unauthenticated);
        }
        let (application, key_id, nonces) = (Arc::clone(application), Arc::clone(id), Arc::clone(nonces));
        let principal = Principal { application, key_id, nonces };
        let proof = Proof { verifier, expires_at, version: directory.version };
        Ok(Caller { principal, nonce: None, from: None, proof })
    }

    /// Takes as much work for an unknown key as for a wrong secret.
    pub fn authenticate(
        &self,
        credentials: Credentials<'_>,
        from: Option<IpAddr>,
        clock: &Clock,
    ) -> Result<Caller, AccessError> {
        let Credentials { key_id, secret } = credentials;
        let directory = self.directory.load();
        self.check_lease()?;
        let known = directory.keys.get_key_value(key_id);
        let live = known.map_or(&[VACANT; LIVE_SECRETS], |(_, key)| &key.live);
        let shown = verifier(&self.keyring, secret);
        let matches = live.iter().fold(Choice::from(0), |any, verifier| any | same(verifier, &shown));
        let known = known.filter(|_| matches.into());
        let caller = self.caller(&directory, known, shown, clock)?;
        Ok(note_use(caller, known, from, clock))
    }

    /// Returns a caller with the right of the live key of the application that ends last, for a
    /// call that an operator makes.
    pub(crate) fn stand_in(&self, application: &str, clock: &Clock) -> Result<Caller, AccessError> {
        let directory = self.directory.load();
        self.check_lease()?;
        let of_application = directory.keys.iter().filter(|(_, key)| *key.application.id == *application);
        let callers = of_application.flat_map(|known| {
            let live = known.1.live.iter().filter(|live| **live != VACANT);
            live.map(move |live| (Some(known), *live))
        });
        let callers = callers.filter_map(|(known, live)| self.caller(&directory, known, live, clock).ok());
        let last = |caller: &Caller| (caller.expires_at().is_none(), caller.expires_at(), caller.key_id.clone());
        callers.max_by_key(last).ok_or(AccessError::Unauthenticated)
    }

    /// Takes as much work for an unknown key as for a wrong signature for a key that was used
    /// before.
    pub fn verify(
        &self,
        key_id: &str,
        canonical: &str,
        signature: &Signature,
        from: Option<IpAddr>,
        clock: &Clock,
    ) -> Result<Caller, AccessError> {
        let directory = self.directory.load();
        self.check_lease()?;
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
        let caller = self.caller(&directory, known, matching.ok_or(AccessError::Unauthenticated)?, clock)?;
        Ok(note_use(caller, known, from, clock))
    }

    /// Returns the uses since the last collection. Later ones are noted even if these cannot be
    /// stored.
    #[must_use]
    pub fn collect_uses(&self) -> Vec<SecretUse> {
        self.directory.load().keys.iter().flat_map(|(id, key)| key.uses(id, LastUse::collect)).collect()
    }

    #[must_use]
    pub fn uses_since_start(&self, keys: Option<&[String]>) -> Vec<SecretUse> {
        let all = &self.directory.load().keys;
        match keys {
            Some(ids) => {
                let found = ids.iter().filter_map(|id| all.get_key_value(id.as_str()));
                found.flat_map(|(id, key)| key.uses(id, LastUse::read)).collect()
            }
            None => all.iter().flat_map(|(id, key)| key.uses(id, LastUse::read)).collect(),
        }
    }

    /// Returns the number of keys that can be used, and whose end comes within that time.
    #[must_use]
    pub fn count_ending_keys(&self, within: Duration, clock: &Clock) -> usize {
        let now = clock.latest();
        let ends = |key: &&Arc<Key>| key.expires_at.is_some_and(|end| end > now && end <= now.plus(within));
        self.directory.load().keys.values().filter(|key| !key.suspended).filter(ends).count()
    }

    pub(crate) fn all_nonces(&self) -> Vec<Arc<KeyNonces>> {
        self.directory.load().keys.values().map(|key| Arc::clone(&key.nonces)).collect()
    }

    pub fn secret(
        &self,
        application: &str,
        key_id: &str,
        secret: &str,
        created_at: Timestamp,
    ) -> Result<SecretRow, getrandom::Error> {
        let sealed = self.keyring.seal(&purpose(application, key_id), secret)?;
        let verifier = verifier(&self.keyring, secret);
        Ok(SecretRow { verifier, sealed, created_at: Some(created_at), ends_at: None })
    }

    pub(crate) fn keyring(&self) -> &KeyRing {
        &self.keyring
    }
}

pub(crate) fn verifier(keyring: &KeyRing, secret: &str) -> Digest {
    keyring.mac(&["secret", secret])
}

fn note_use(caller: Caller, known: Option<(&Arc<str>, &Arc<Key>)>, from: Option<IpAddr>, clock: &Clock) -> Caller {
    let secrets = known.into_iter().flat_map(|(_, key)| key.live.iter().zip(&key.uses));
    if let Some((_, cell)) = secrets.into_iter().find(|(verifier, _)| **verifier == caller.proof.verifier) {
        cell.note(clock, from);
    }
    Caller { from, ..caller }
}

const SECRET_CHARS: usize = 68;

/// Compares in constant time: whole words, because each guarded comparison costs more than the
/// bytes that it compares.
fn same(one: &Digest, other: &Digest) -> Choice {
    let (one, other) = (one.as_chunks().0, other.as_chunks().0);
    one.iter()
        .zip(other)
        .fold(Choice::from(1), |same, (one, other)| same & u64::from_ne_bytes(*one).ct_eq(&u64::from_ne_bytes(*other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::PermissionSet;
    use crate::limit::Window;
    use toolwarrant_base::random::Random;

    fn application(id: &str) -> Arc<Application> {
        Arc::new(Application::new(id, id, PermissionSet(1), Grants::everything(), Arc::new(Window::new(300))))
    }

    fn access(keys: &[(&str, &str, &str)]) -> Access {
        let access = Access::new(KeyRing::new("test", &[7; 32], Random::System));
        for (id, owner, secret) in keys {
            access.change(|directory| {
                directory.put_key(
                    id,
                    &application(owner),
                    &[access.secret(owner, id, secret, Timestamp(0)).unwrap()],
                    None,
                )
            });
        }
        access
    }

    #[test]
    fn the_nonces_of_a_key_outlive_its_changes_and_end_when_it_is_revoked() {
        let access = access(&[("key_1", "one", "a"), ("key_2", "one", "b")]);
        let nonces = |id: &str| Arc::clone(&access.directory.load().keys[id].nonces);
        let known = ["key_1", "key_2"].map(|id| Arc::downgrade(&nonces(id)));
        let shown = Credentials { key_id: "key_1", secret: "a" };
        let caller = access.authenticate(shown, None, &Clock::manual(Timestamp(0))).expect("a live key");
        let row = access.secret("one", "key_1", "c", Timestamp(0)).unwrap();
        access.change(|directory| directory.put_key("key_1", &application("one"), std::slice::from_ref(&row), None));
        assert!(Arc::ptr_eq(&nonces("key_1"), &caller.nonces));
        access.change(|directory| directory.put_key("key_1", &application("one"), &[], None));
        drop(caller);
        assert_eq!(known.map(|nonces| nonces.upgrade().is_some()), [false, true]);
    }

    #[test]
    fn a_change_of_an_application_reaches_its_keys_and_no_others() {
        let access = access(&[("key_1", "one", "a"), ("key_2", "two", "b")]);
        let window = Arc::new(Window::new(300));
        let changed = Arc::new(Application::new("one", "one", PermissionSet(2), Grants::everything(), window));
        access.change(|directory| directory.put_application(&changed));
        let permissions = |key, secret| {
            let caller = access
                .authenticate(Credentials { key_id: key, secret }, None, &Clock::manual(Timestamp(0)))
                .expect("a live key");
            caller.application.permissions
        };
        assert_eq!([permissions("key_1", "a"), permissions("key_2", "b")], [PermissionSet(2), PermissionSet(1)]);
    }
}
