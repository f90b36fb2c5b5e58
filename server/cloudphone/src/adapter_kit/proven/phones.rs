//! The phones on which a reading was seen to follow the truth, for platforms whose phones differ.

use crate::phones::contract::DeviceId;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::sync::Mutex as FileMutex;
use toolwarrant::base::ignore_poison;
use toolwarrant::files::{LineFile, ServiceFiles};

/// The phones of one platform on which one kind of reading is proven, each with its identity: if
/// another phone takes an id, it needs its own proof. The file has a line per proof, `ID
/// IDENTITY;`, and the last one about an id counts. A truncated line proves nothing.
#[derive(Debug)]
pub struct ProvenPhones(Arc<ProofFile>);

/// The identity that no phone has.
const WITHDRAWN: &str = "?";

#[derive(Debug)]
struct ProofFile {
    phones: Mutex<HashMap<DeviceId, String>>,
    /// Locked for a whole change.
    lines: FileMutex<LineFile>,
}

impl ProvenPhones {
    /// Reads the file of that name, or creates it.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(files: &ServiceFiles, file: &str) -> io::Result<Self> {
        let (lines, text) = files.open_lines(file)?;
        let proof = |line: &str| {
            let (id, identity) = line.strip_suffix(';')?.split_once(' ')?;
            Some((DeviceId::new(id).ok()?, identity.to_owned()))
        };
        let phones = Mutex::new(text.lines().filter_map(proof).collect());
        Ok(Self(Arc::new(ProofFile { phones, lines: FileMutex::new(lines) })))
    }

    /// Returns true if the reading is proven on the phone of this id and identity.
    #[must_use]
    pub fn has(&self, id: &DeviceId, identity: &str) -> bool {
        ignore_poison(self.0.phones.lock()).get(id).is_some_and(|known| known == identity)
    }

    /// Returns true if the reading is proven on no phone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        ignore_poison(self.0.phones.lock()).values().all(|identity| identity == WITHDRAWN)
    }

    /// Records a proof durably, even if the caller goes away. The identity must not contain a line
    /// feed.
    ///
    /// # Errors
    /// The file cannot be written. Then the proof is not recorded.
    pub async fn record(&self, id: &DeviceId, identity: &str) -> io::Result<()> {
        if self.has(id, identity) {
            return Ok(());
        }
        let (stored, id, identity) = (Arc::clone(&self.0), id.clone(), identity.to_owned());
        let record = async move {
            let mut lines = stored.lines.lock().await;
            lines.append(&format!("{id} {identity};")).await?;
            ignore_poison(stored.phones.lock()).insert(id, identity);
            Ok(())
        };
        tokio::spawn(record).await?
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
        let files = ServiceFiles::in_folder(folder.path());
        let open = || ProvenPhones::open(&files, "rack.starts").unwrap();
        let id = |text: &str| DeviceId::new(text).unwrap();
        let proven = open();
        proven.withdraw(&id("a")).await.unwrap();
        assert!(proven.is_empty());
        for (phone, identity) in [("a", "R58"), ("b", ""), ("a", "R59")] {
            assert!(!proven.has(&id(phone), identity));
            proven.record(&id(phone), identity).await.unwrap();
            assert!(proven.has(&id(phone), identity));
        }
        fs::write(&path, fs::read_to_string(&path).unwrap() + "\nc R6").unwrap();
        let again = open();
        let known = [("a", "R59", true), ("a", "R58", false), ("b", "", true), ("b", "x", false), ("c", "R6", false)];
        for (phone, identity, holds) in known {
            assert_eq!(again.has(&id(phone), identity), holds, "{phone} {identity}");
        }
        again.record(&id("c"), "R60").await.unwrap();
        again.withdraw(&id("b")).await.unwrap();
        let again = open();
        assert!(again.has(&id("c"), "R60") && !again.has(&id("b"), ""));
    }
}
