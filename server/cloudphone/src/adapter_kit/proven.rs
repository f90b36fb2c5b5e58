//! The proven directions of an account of a platform: the readings that were seen to follow the
//! truth.
//!
//! Two things are unknown until they are tested: whether requests of a phone's shell take the route
//! of its applications, and whether the value that is read for a start changes at each start on
//! this platform. Until a direction is proven, a missing effect is not evidence of absence. The
//! proofs are stored in a small file and hold for the account that they were made on: other
//! credentials need new ones. Start at [`ProvenDirections::open`].

use crate::phones::port::Direction;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use toolwarrant::Timestamp;
use toolwarrant::base::{durable, hex, ignore_poison};

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
    path: PathBuf,
    account: String,
    held: Mutex<Held>,
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
    /// Reads the proofs in the file at `path` for the account with this access key at this base
    /// URL. A missing file, or one of another account, has no proof for it. A damaged file is
    /// renamed, with `.damaged` after its name.
    ///
    /// # Errors
    /// The file cannot be read, or cannot be renamed.
    pub fn open(path: &Path, base_url: &str, access_key: &str) -> io::Result<Self> {
        // The length separates the two parts that are hashed.
        let parts = format!("{}:{base_url}{access_key}", base_url.len());
        let account = hex::encode(&Sha256::digest(parts));
        let held = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Held::default(),
            read => match serde_json::from_slice::<Held>(&read?) {
                Ok(held) if held.account == account => held,
                Ok(_) => Held::default(),
                Err(error) => {
                    let aside = path.with_added_extension("damaged");
                    fs::rename(path, &aside)?;
                    let aside = aside.display();
                    tracing::warn!(%error, %aside, "the proven directions of a platform are damaged; the file was renamed, and they must be proven again");
                    Held::default()
                }
            },
        };
        Ok(Self { path: path.to_owned(), account, held: Mutex::new(held) })
    }

    /// Returns the proof of a direction; `None` if it is not proven.
    #[must_use]
    pub fn has(&self, direction: Direction) -> Option<Showing> {
        let held = self.lock();
        match direction {
            Direction::Exit => held.exit.clone(),
            Direction::Start => held.start.clone(),
        }
    }

    /// Records the proof of a direction durably: after a crash the file is the new or the old one.
    ///
    /// # Errors
    /// The file cannot be written. Then the proof is not recorded.
    pub fn record(&self, direction: Direction, showing: Showing) -> io::Result<()> {
        let mut held = self.lock();
        let mut next = Held { account: self.account.clone(), ..held.clone() };
        match direction {
            Direction::Exit => next.exit = Some(showing),
            Direction::Start => next.start = Some(showing),
        }
        let text = serde_json::to_string_pretty(&next)? + "\n";
        durable::replace(&self.path, |file| file.write_all(text.as_bytes()))?;
        *held = next;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        ignore_poison(self.held.lock())
    }
}

#[cfg(test)]
mod tests;
