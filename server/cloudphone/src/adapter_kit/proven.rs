//! The proven directions of an account of a platform: the readings that were seen to follow the
//! truth.
//!
//! Two things are unknown until they are tested: whether requests of a phone's shell take the route
//! of its applications, and whether the value that is read for a start changes at each start on
//! this platform. Until a direction is proven, a missing effect is not evidence of absence. The
//! proofs are stored in a small file. They hold for the account that they were made on: other
//! credentials need new ones. Start at [`ProvenDirections::open`].

mod phones;

pub use phones::ProvenPhones;

use crate::phones::port::Direction;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::sync::Mutex as FileMutex;
use toolwarrant::Timestamp;
use toolwarrant::base::{hex, ignore_poison};
use toolwarrant::files::{ServiceFile, ServiceFiles};

/// The time and the circumstances of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Showing {
    /// The time of the proof.
    pub at: Timestamp,
    /// The phone on which the direction was proven.
    pub device: String,
    /// The program on the phone that made the requests; for a start, what was read.
    pub tool: String,
}

/// The proven directions of one account.
#[derive(Debug)]
pub struct ProvenDirections {
    account: String,
    stored: Arc<StoredProofs>,
}

#[derive(Debug)]
struct StoredProofs {
    held: Mutex<Held>,
    /// Locked for a whole change.
    file: FileMutex<ServiceFile>,
}

/// The content of the file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Held {
    /// A hash of the account.
    account: String,
    exit: Option<Showing>,
    start: Option<Showing>,
}

impl ProvenDirections {
    /// Reads the proofs in the file of that name for the account with this access key at this base
    /// URL. A missing file, or one of another account, has no proof for it. A damaged file is kept
    /// with `.damaged` after its name.
    ///
    /// # Errors
    /// The file cannot be read, or cannot be renamed.
    pub fn open(files: &ServiceFiles, file: &str, base_url: &str, access_key: &str) -> io::Result<Self> {
        let account = hash(base_url, access_key);
        let (mut file, content) = files.open(file)?;
        let held = match content.map(|content| (serde_json::from_slice::<Held>(&content), content)) {
            None => Held::default(),
            Some((Ok(held), _)) => held.of(&account),
            Some((Err(error), content)) => {
                tracing::warn!(%error, %file, "the proven directions of a platform are damaged and kept as `.damaged`; they must be proven again");
                file.set_aside(content)?;
                Held::default()
            }
        };
        let stored = Arc::new(StoredProofs { held: Mutex::new(held), file: FileMutex::new(file) });
        Ok(Self { account, stored })
    }

    /// Returns the proof of a direction; `None` if it is not proven.
    #[must_use]
    pub fn has(&self, direction: Direction) -> Option<Showing> {
        let held = ignore_poison(self.stored.held.lock());
        match direction {
            Direction::Exit => held.exit.clone(),
            Direction::Start => held.start.clone(),
        }
    }

    /// Records the proof of a direction durably: after a crash the file is the new or the old one.
    ///
    /// # Errors
    /// The file cannot be written. Then the proof is not recorded.
    pub async fn record(&self, direction: Direction, showing: Showing) -> io::Result<()> {
        self.set(direction, Some(showing)).await
    }

    /// Withdraws the proof of a direction durably, after readings were seen not to follow.
    ///
    /// # Errors
    /// The file cannot be written. Then the proof stays.
    pub async fn withdraw(&self, direction: Direction) -> io::Result<()> {
        self.set(direction, None).await
    }

    /// The change completes even if the caller goes away.
    async fn set(&self, direction: Direction, proof: Option<Showing>) -> io::Result<()> {
        let (stored, account) = (Arc::clone(&self.stored), self.account.clone());
        let set = async move {
            let mut file = stored.file.lock().await;
            let held = Held { account, ..ignore_poison(stored.held.lock()).clone() };
            let next = match direction {
                Direction::Exit => Held { exit: proof, ..held },
                Direction::Start => Held { start: proof, ..held },
            };
            file.replace((serde_json::to_string_pretty(&next)? + "\n").into_bytes()).await?;
            *ignore_poison(stored.held.lock()) = next;
            Ok(())
        };
        tokio::spawn(set).await?
    }
}

impl Held {
    /// Returns the proofs if they are of this account, and otherwise none.
    fn of(self, account: &str) -> Self {
        if self.account == account { self } else { Self::default() }
    }
}

/// Returns a hash of the account.
fn hash(base_url: &str, access_key: &str) -> String {
    // The length separates the two parts that are hashed.
    let parts = format!("{}:{base_url}{access_key}", base_url.len());
    hex::encode(&Sha256::digest(parts))
}

#[cfg(test)]
mod tests;
