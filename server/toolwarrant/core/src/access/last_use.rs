//! The last use of each secret, in memory until it is stored.

use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_base::keyring::SecretUse;

/// The first use after each collection, so that most requests read one flag and write nothing.
#[derive(Debug, Default)]
pub(super) struct LastUse {
    is_noted: AtomicBool,
    noted: Mutex<Option<(Timestamp, Option<IpAddr>)>>,
}

impl LastUse {
    pub(super) fn note(&self, clock: &Clock, from: Option<IpAddr>) {
        if !self.is_noted.load(Relaxed) {
            *ignore_poison(self.noted.lock()) = Some((clock.latest(), from));
            self.is_noted.store(true, Relaxed);
        }
    }

    /// Returns the noted use. The note stays, for readers and in case it cannot be stored.
    pub(super) fn collect(&self) -> Option<(Timestamp, Option<IpAddr>)> {
        let fresh = self.is_noted.swap(false, Relaxed);
        self.read().filter(|_| fresh)
    }

    pub(super) fn read(&self) -> Option<(Timestamp, Option<IpAddr>)> {
        *ignore_poison(self.noted.lock())
    }
}

pub(super) fn row(key: &str, verifier: [u8; 32], (at, from): (Timestamp, Option<IpAddr>)) -> SecretUse {
    SecretUse { key: key.to_owned(), verifier, at, from }
}
