//! The phones on which a reading was seen to follow the truth, for platforms whose phones differ.

use crate::phones::contract::DeviceId;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::task::spawn_blocking;
use toolwarrant::base::ignore_poison;

/// The phones of one platform on which one kind of reading is proven, each with its identity: if
/// another phone takes an id, it needs its own proof. The file has a line per proof, `ID
/// IDENTITY;`, and the last one about an id counts. A truncated line proves nothing.
#[derive(Debug, Default)]
pub struct ProvenPhones(Arc<Mutex<ProofFile>>);

/// The identity that no phone has.
const WITHDRAWN: &str = "?";

#[derive(Debug, Default)]
struct ProofFile {
    /// `None` if the proofs end with this process.
    file: Option<File>,
    phones: HashMap<DeviceId, String>,
}

impl ProvenPhones {
    /// Reads the file at `path`, or creates it.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let mut text = String::new();
        (&file).read_to_string(&mut text)?;
        let proof = |line: &str| {
            let (id, identity) = line.strip_suffix(';')?.split_once(' ')?;
            Some((DeviceId::new(id).ok()?, identity.to_owned()))
        };
        Ok(Self(Arc::new(Mutex::new(ProofFile { phones: text.lines().filter_map(proof).collect(), file: Some(file) }))))
    }

    /// Returns true if the reading is proven on the phone of this id and identity.
    #[must_use]
    pub fn has(&self, id: &DeviceId, identity: &str) -> bool {
        ignore_poison(self.0.lock()).phones.get(id).is_some_and(|known| known == identity)
    }

    /// Returns true if the reading is proven on no phone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        ignore_poison(self.0.lock()).phones.values().all(|identity| identity == WITHDRAWN)
    }

    /// Records a proof durably. The identity must not contain a line feed.
    ///
    /// # Errors
    /// The file cannot be written. Then the proof is not recorded.
    pub async fn record(&self, id: &DeviceId, identity: &str) -> io::Result<()> {
        if self.has(id, identity) {
            return Ok(());
        }
        let (held, id, identity) = (Arc::clone(&self.0), id.clone(), identity.to_owned());
        spawn_blocking(move || {
            let mut held = ignore_poison(held.lock());
            if let Some(file) = &mut held.file {
                // A truncated line before this one does not spoil it.
                file.write_all(format!("\n{id} {identity};").as_bytes())?;
                file.sync_data()?;
            }
            held.phones.insert(id, identity);
            Ok(())
        })
        .await?
    }

    /// Withdraws the proof of a phone durably.
    ///
    /// # Errors
    /// The file cannot be written. Then the proof stays.
    pub async fn withdraw(&self, id: &DeviceId) -> io::Result<()> {
        self.record(id, WITHDRAWN).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn a_proof_outlives_the_process_and_is_of_one_phone_under_one_id() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rack.starts");
        let id = |text: &str| DeviceId::new(text).unwrap();
        let proven = ProvenPhones::open(&path).unwrap();
        proven.withdraw(&id("a")).await.unwrap();
        assert!(proven.is_empty());
        for (phone, identity) in [("a", "R58"), ("b", ""), ("a", "R59")] {
            assert!(!proven.has(&id(phone), identity));
            proven.record(&id(phone), identity).await.unwrap();
            assert!(proven.has(&id(phone), identity));
        }
        fs::write(&path, fs::read_to_string(&path).unwrap() + "\nc R6").unwrap();
        let again = ProvenPhones::open(&path).unwrap();
        let known = [("a", "R59", true), ("a", "R58", false), ("b", "", true), ("b", "x", false), ("c", "R6", false)];
        for (phone, identity, holds) in known {
            assert_eq!(again.has(&id(phone), identity), holds, "{phone} {identity}");
        }
        again.record(&id("c"), "R60").await.unwrap();
        again.withdraw(&id("b")).await.unwrap();
        let again = ProvenPhones::open(&path).unwrap();
        assert!(again.has(&id("c"), "R60") && !again.has(&id("b"), ""));
    }
}
