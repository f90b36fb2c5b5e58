//! The proven directions of an account of a platform: the readings that were seen to follow the
//! truth.
//!
//! Two things are unknown until they are tested: whether requests of a phone's shell take the route
//! of its applications, and whether the value that is read for a start changes at each start on
//! this platform. Until a direction is proven, a missing effect is not evidence of absence. The
//! proofs are stored in a small file, or in a document that replicas share. They hold for the
//! account that they were made on: other credentials need new ones. Start at
//! [`ProvenDirections::open`].

mod phones;

pub use phones::ProvenPhones;

use super::shared::FollowedDocument;
use crate::phones::port::Direction;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::task::spawn_blocking;
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
    account: String,
    place: ProofPlace,
}

/// The place of the proofs.
#[derive(Debug)]
enum ProofPlace {
    File(PathBuf, Arc<Mutex<Held>>),
    Shared(FollowedDocument),
}

/// The content of the file or the document.
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
        let account = hash(base_url, access_key);
        let held = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Held::default(),
            read => match serde_json::from_slice::<Held>(&read?) {
                Ok(held) => held.of(&account),
                Err(error) => {
                    let aside = path.with_added_extension("damaged");
                    fs::rename(path, &aside)?;
                    let aside = aside.display();
                    tracing::warn!(%error, %aside, "the proven directions of a platform are damaged; the file was renamed, and they must be proven again");
                    Held::default()
                }
            },
        };
        Ok(Self { account, place: ProofPlace::File(path.to_owned(), Arc::new(Mutex::new(held))) })
    }

    /// Shares the proofs of an account with other replicas.
    #[must_use]
    pub fn of_replicas(document: FollowedDocument, base_url: &str, access_key: &str) -> Self {
        Self { account: hash(base_url, access_key), place: ProofPlace::Shared(document) }
    }

    /// Returns the proof of a direction; `None` if it is not proven.
    #[must_use]
    pub fn has(&self, direction: Direction) -> Option<Showing> {
        let held = match &self.place {
            ProofPlace::File(_, held) => ignore_poison(held.lock()).clone(),
            ProofPlace::Shared(document) => document.latest().value::<Held>().of(&self.account),
        };
        match direction {
            Direction::Exit => held.exit,
            Direction::Start => held.start,
        }
    }

    /// Records the proof of a direction durably: after a crash the file is the new or the old one.
    ///
    /// # Errors
    /// The file or the document cannot be written. Then the proof is not recorded.
    pub async fn record(&self, direction: Direction, showing: Showing) -> io::Result<()> {
        self.set(direction, Some(showing)).await
    }

    /// Withdraws the proof of a direction durably, after readings were seen not to follow.
    ///
    /// # Errors
    /// The file or the document cannot be written. Then the proof stays.
    pub async fn withdraw(&self, direction: Direction) -> io::Result<()> {
        self.set(direction, None).await
    }

    async fn set(&self, direction: Direction, proof: Option<Showing>) -> io::Result<()> {
        let account = self.account.clone();
        let add = move |held: Held| {
            let held = Held { account: account.clone(), ..held.of(&account) };
            let proof = proof.clone();
            match direction {
                Direction::Exit => Held { exit: proof, ..held },
                Direction::Start => Held { start: proof, ..held },
            }
        };
        match &self.place {
            ProofPlace::File(path, held) => {
                let (path, held) = (path.clone(), Arc::clone(held));
                let write = move || {
                    let mut held = ignore_poison(held.lock());
                    let next = add(held.clone());
                    let text = serde_json::to_string_pretty(&next)? + "\n";
                    durable::replace(&path, |file| file.write_all(text.as_bytes()))?;
                    *held = next;
                    Ok(())
                };
                spawn_blocking(write).await?
            }
            ProofPlace::Shared(document) => document.update(|held| Some(add(held))).await.map_err(io::Error::other),
        }
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
