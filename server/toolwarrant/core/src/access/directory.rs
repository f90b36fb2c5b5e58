//! The directory: the keys that can call, with the verifiers of their secrets. It holds no secrets,
//! only verifiers and seals.

use super::application::Application;
use super::key_nonces::KeyNonces;
use super::last_use::{self, LastUse};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use toolwarrant_base::Timestamp;
use toolwarrant_base::keyring::{Digest, KeyRing, SecretRow, SecretUse};
use toolwarrant_signing::Signer;

/// Most live secrets of a key: the one in use and its successor.
pub(crate) const LIVE_SECRETS: usize = 2;

/// Fills the place of a missing secret. A secret with this verifier cannot be found.
pub(super) const VACANT: Digest = [0; 32];

/// The keys that can call, each with its application.
#[derive(Clone, Default)]
pub struct Directory {
    /// Shared with the directory before a change, which is copied as a whole.
    pub(super) keys: HashMap<Arc<str>, Arc<Key>>,
    /// The number of changes so far.
    pub(super) version: u64,
}

/// A key with the verifiers of its secrets.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) application: Arc<Application>,
    /// Verifiers, the latest first. Each one is compared every time, so that timing does not reveal
    /// their number.
    pub(super) live: [Digest; LIVE_SECRETS],
    /// The same secrets, sealed, because a signature is verified with the secret itself.
    pub(super) sealed: [Option<Arc<Sealed>>; LIVE_SECRETS],
    /// The last uses of the secrets, in the same order.
    pub(super) uses: [Arc<LastUse>; LIVE_SECRETS],
    /// The times when the secrets end, in the same order.
    pub(super) ends: [Option<Timestamp>; LIVE_SECRETS],
    pub(super) expires_at: Option<Timestamp>,
    /// True if it may not be used for now.
    pub(super) suspended: bool,
    /// The nonces that it has used.
    pub(super) nonces: Arc<KeyNonces>,
}

impl Key {
    /// Returns the last use of each secret that `read` finds in its cell. `id` is the key's own.
    pub(super) fn uses(
        &self,
        id: &str,
        read: impl Fn(&LastUse) -> Option<(Timestamp, Option<IpAddr>)>,
    ) -> impl Iterator<Item = SecretUse> {
        let cells = self.live.iter().zip(&self.uses);
        cells.filter_map(move |(verifier, cell)| Some(last_use::row(id, *verifier, read(cell)?)))
    }
}

/// A sealed secret that is opened once, for the first signature.
pub(super) struct Sealed {
    purpose: Arc<str>,
    bytes: Box<[u8]>,
    signer: OnceLock<Option<Signer>>,
}

impl Sealed {
    /// Returns the signer for the secret. Returns `None` if the secret cannot be opened.
    pub(super) fn signer(&self, keyring: &KeyRing) -> Option<&Signer> {
        let open = || keyring.open(&self.purpose, &self.bytes).ok().map(|secret| Signer::new(secret.expose()));
        self.signer.get_or_init(open).as_ref()
    }
}

impl Directory {
    /// Puts a key with its live secrets, the latest first. Removes a key that has no secrets.
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
        let before = self.keys.get(id);
        let nonces = before.map(|key| Arc::clone(&key.nonces)).unwrap_or_default();
        let use_of = |verifier: &Digest| {
            let same = before.and_then(|key| key.live.iter().zip(&key.uses).find(|(known, _)| *known == verifier));
            same.map(|(_, cell)| Arc::clone(cell)).unwrap_or_default()
        };
        let uses = live.each_ref().map(use_of);
        let ends = std::array::from_fn(|n| secrets.get(n).and_then(|secret| secret.ends_at));
        let (application, suspended) = (Arc::clone(application), false);
        let key = Key { application, live, uses, ends, sealed, expires_at, suspended, nonces };
        self.keys.insert(id.into(), Arc::new(key));
    }

    /// Refuses a key until it is put again. It keeps its nonces.
    pub fn suspend_key(&mut self, id: &str) {
        if let Some(key) = self.keys.get_mut(id) {
            Arc::make_mut(key).suspended = true;
        }
    }

    /// Replaces an application for all its keys.
    pub fn put_application(&mut self, application: &Arc<Application>) {
        for key in self.keys.values_mut().filter(|key| key.application.id == application.id) {
            Arc::make_mut(key).application = Arc::clone(application);
        }
    }
}

/// Returns the purpose that the secrets of a key are sealed for.
pub(crate) fn purpose(application: &str, key_id: &str) -> String {
    format!("{application} {key_id}")
}
