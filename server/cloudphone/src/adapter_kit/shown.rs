//! Which readings have been shown to follow the truth on an account of a platform.
//!
//! Whether a phone's shell takes the way of its applications, and whether what changes at a start does so on this platform, nobody can know
//! beforehand. As long as a direction was not shown, a missing effect is no evidence of absence. What was shown is kept in a small file,
//! and holds for the account that it was shown on: other credentials begin anew. Start at [`Shown::open`].

use crate::phones::port::Direction;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use toolwarrant::{Timestamp, durable, hex, unpoisoned};

/// When and how a direction was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Showing {
    /// When.
    pub at: Timestamp,
    /// The phone that it was shown on.
    pub device: String,
    /// The program on the phone that made the requests; what was read, for a start.
    pub tool: String,
}

/// What was shown on one account.
#[derive(Debug)]
pub struct Shown {
    path: PathBuf,
    account: String,
    held: Mutex<Held>,
}

/// The file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Held {
    /// A hash of the account.
    account: String,
    exit: Option<Showing>,
    start: Option<Showing>,
}

impl Shown {
    /// Reads what the file at `path` holds of the account with this access key at this base URL. A file that is missing, or of another
    /// account, holds nothing of it; one that is damaged is set aside, under its name and `.damaged`.
    ///
    /// # Errors
    /// The file cannot be read, or not be set aside.
    pub fn open(path: &Path, base_url: &str, access_key: &str) -> io::Result<Self> {
        // The length keeps what is hashed in two parts.
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
                    tracing::warn!(%error, %aside, "what was shown of a platform is damaged, set aside, and to be shown anew");
                    Held::default()
                }
            },
        };
        Ok(Self { path: path.to_owned(), account, held: Mutex::new(held) })
    }

    /// When and how a direction was shown; `None` if it was not.
    #[must_use]
    pub fn has(&self, direction: Direction) -> Option<Showing> {
        let held = self.held();
        match direction {
            Direction::Exit => held.exit.clone(),
            Direction::Start => held.start.clone(),
        }
    }

    /// Records that a direction was shown, durably: after a crash the file is this one or the one before.
    ///
    /// # Errors
    /// The file cannot be written. Then nothing was recorded.
    pub fn record(&self, direction: Direction, showing: Showing) -> io::Result<()> {
        let mut held = self.held();
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

    fn held(&self) -> MutexGuard<'_, Held> {
        unpoisoned(self.held.lock())
    }
}

#[cfg(test)]
mod tests;
