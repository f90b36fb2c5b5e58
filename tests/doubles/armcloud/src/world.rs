//! State that all parts of the program share.

use crate::journal::Journal;
use crate::sign::hex;
use crate::switches::{Switch, Switches};
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
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) journal: Journal,
    /// With `/double`. The phones' tools ask there for the routes of their requests.
    pub(crate) control: String,
    pub(crate) adb: SocketAddr,
    pub(crate) shells: Semaphore,
    pub(crate) folder: PathBuf,
    seed: u64,
    truth: Mutex<Truth>,
    switches: Mutex<Switches>,
    counted: AtomicU64,
    rotated: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) pads: usize,
    pub(crate) seed: u64,
    pub(crate) journal: Journal,
    pub(crate) control: String,
    pub(crate) adb: SocketAddr,
    pub(crate) folder: PathBuf,
}

impl World {
    pub(crate) fn new(beginning: Beginning) -> Self {
        let Beginning { access_key, secret_key, pads, seed, journal, control, adb, folder } = beginning;
        Self {
            access_key,
            secret_key,
            journal,
            control,
            adb,
            shells: Semaphore::new(SHELLS),
            folder,
            seed,
            truth: Mutex::new(Truth::new(pads, seed, now())),
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
        let ahead = self.switches().global(Switch::ClockSkew).and_then(Value::as_i64).unwrap_or_default();
        now().saturating_add_signed(ahead.saturating_mul(1_000))
    }

    pub(crate) fn rotate(&self) -> u64 {
        self.rotated.fetch_add(1, Ordering::Relaxed)
    }

    /// Depends on the seed.
    pub(crate) fn fresh(&self, what: &str) -> String {
        let count = self.counted.fetch_add(1, Ordering::Relaxed);
        hex(&Sha256::digest(format!("{what} {} {} {}", self.seed, self.secret_key, count)))
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
