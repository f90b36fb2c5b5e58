//! State that all parts of the program share.

use crate::journal::Journal;
use crate::sign::hex;
use crate::switches::Switches;
use crate::truth::Truth;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;

const SHELLS: usize = 64;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) access_key: &'static str,
    pub(crate) secret_key: &'static str,
    pub(crate) journal: Journal,
    /// With `/double`. The phones' tools ask there for the routes of their requests.
    pub(crate) control: String,
    pub(crate) adb: SocketAddr,
    pub(crate) shells: Semaphore,
    pub(crate) folder: PathBuf,
    truth: Mutex<Truth>,
    switches: Mutex<Switches>,
    counted: AtomicU64,
    rotated: AtomicU64,
}

impl World {
    pub(crate) fn new(pads: usize, journal: Journal, (control, adb): (String, SocketAddr), folder: PathBuf) -> Self {
        Self {
            access_key: "AKTEST0123456789",
            secret_key: "SKTEST9876543210",
            journal,
            control,
            adb,
            shells: Semaphore::new(SHELLS),
            folder,
            truth: Mutex::new(Truth::new(pads, now())),
            switches: Mutex::default(),
            counted: AtomicU64::new(0),
            rotated: AtomicU64::new(0),
        }
    }

    /// Waits for the scripts that run now. Later ones wait meanwhile.
    pub(crate) async fn rest(&self) {
        let _ = self.shells.acquire_many(SHELLS as u32).await;
    }

    /// Locks the truth. Lock order: [`Self::switches`] before the truth, never the reverse.
    pub(crate) fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns milliseconds since the Unix epoch. A switch can make the time wrong.
    pub(crate) fn platform_time(&self) -> u64 {
        let ahead = self.switches().all.clock_skew_s.value.unwrap_or_default();
        now().saturating_add_signed(ahead.saturating_mul(1_000))
    }

    pub(crate) fn rotate(&self) -> u64 {
        self.rotated.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn fresh(&self, what: &str) -> String {
        let count = self.counted.fetch_add(1, Ordering::Relaxed);
        hex(&Sha256::digest(format!("{what} {} {count}", self.secret_key)))
    }

    pub(crate) fn did(&self, entry: Value) {
        self.journal.write(now(), "did", entry);
    }
}

/// Returns milliseconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
