//! The keys that can call, with verifiers and seals of their secrets.

use super::application::Application;
use super::key_nonces::KeyNonces;
use super::last_use::{self, LastUse};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use toolwarrant_base::Timestamp;
use toolwarrant_base::keyring::{Digest, KeyRing, SecretRow, SecretUse};
use toolwarrant_signing::Signer;

/// The secret in use and its successor.
pub(crate) const LIVE_SECRETS: usize = 2;

/// The verifier in place of a missing secret; no secret has it.
pub(super) const VACANT: Digest = [0; 32];

#[derive(Clone, Default)]
pub struct Directory {
    pub(super) keys: HashMap<Arc<str>, Arc<Key>>,
    pub(super) version: u64,
}

#[derive(Clone)]
pub(super) struct Key {
    pub(super) application: Arc<Application>,
    /// The latest first, in all arrays. Each one is compared every time, so that timing does not
    /// reveal their number.
    pub(super) live: [Digest; LIVE_SECRETS],
    /// Sealed, because a signature is verified with the secret itself.
    pub(super) sealed: [Option<Arc<Sealed>>; LIVE_SECRETS],
    pub(super) uses: [Arc<LastUse>; LIVE_SECRETS],
    pub(super) ends: [Option<Timestamp>; LIVE_SECRETS],
    pub(super) expires_at: Option<Timestamp>,
    pub(super) suspended: bool,
    pub(super) nonces: Arc<KeyNonces>,
}

impl Key {
    pub(super) fn uses(
        &self,
        id: &str,
        read: impl Fn(&LastUse) -> Option<(Timestamp, Option<IpAddr>)>,
    ) -> impl Iterator<Item = SecretUse> {
        let cells = self.live.iter().zip(&self.uses);
        cells.filter_map(move |(verifier, cell)| Some(last_use::row(id, *verifier, read(cell)?)))
    }
}

/// A sealed secret, opened once, for the first signature.
pub(super) struct Sealed {
    purpose: Arc<str>,
    bytes: Box<[u8]>,
    signer: OnceLock<Option<Signer>>,
}

impl Sealed {
    pub(super) fn signer(&self, keyring: &KeyRing) -> Option<&Signer> {
        let open = || keyring.open(&self.purpose, &self.bytes).ok().map(|secret| Signer::new(secret.expose()));
        self.signer.get_or_init(open).as_ref()
    }
}

impl Directory {
    /// Puts a key with its live secrets, the latest first. Without secrets, removes it.
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

    pub fn put_application(&mut self, application: &Arc<Application>) {
        for key in self.keys.values_mut().filter(|key| key.application.id == application.id) {
            Arc::make_mut(key).application = Arc::clone(application);
        }
    }
}

pub(crate) fn purpose(application: &str, key_id: &str) -> String {
    format!("{application} {key_id}")
}
