//! The address from which each phone makes requests without a proxy that this server set, if known.
//!
//! The operator of a proxy chooses the address from which its users are seen. Suppose that a client
//! has such a proxy in force and sets another. It could make ordinary requests come from the
//! address before the send, and would get a refund for a write that took effect. So an absence is
//! measured against an address that was read before this server ever set a proxy. The address is
//! stored before the proxy is sent. A phone whose address was not read by then never gets one.

use crate::phones::contract::DeviceId;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use toolwarrant::base::ignore_poison;

/// The addresses of the phones of one platform. The file has a line per phone, `ID ADDRESS;` or `ID
/// -;`. Each entry starts a new line, so that a truncated entry does not spoil the next one.
#[derive(Debug)]
pub struct DirectAddresses(Mutex<StoredAddresses>);

#[derive(Debug)]
struct StoredAddresses {
    file: File,
    phones: HashMap<DeviceId, Option<IpAddr>>,
}

impl DirectAddresses {
    /// Reads the file at `path`, or creates it. If there are two lines about a phone, the first
    /// counts. A truncated line means that the address is not known.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let mut text = String::new();
        (&file).read_to_string(&mut text)?;
        let mut phones = HashMap::new();
        for line in text.lines() {
            let (id, address) = line.split_once(' ').unwrap_or((line, ""));
            if let Ok(id) = DeviceId::new(id) {
                phones.entry(id).or_insert_with(|| address.strip_suffix(';')?.parse().ok());
            }
        }
        let written = StoredAddresses { file, phones };
        Ok(Self(Mutex::new(written)))
    }

    /// Returns the address of a phone; `None` if it is not known.
    #[must_use]
    pub fn of(&self, id: &DeviceId) -> Option<IpAddr> {
        self.lock().phones.get(id).copied().flatten()
    }

    /// Returns true if the entry of the phone is final.
    #[must_use]
    pub fn is_settled(&self, id: &DeviceId) -> bool {
        self.lock().phones.contains_key(id)
    }

    /// Stores the address of a phone durably, before the first proxy is sent to it. `None` means
    /// that a proxy is about to be sent and the address was not read. An earlier entry stays.
    /// Blocks on the disk.
    ///
    /// # Errors
    /// The file cannot be written. Then the entry is not stored.
    pub fn note(&self, id: &DeviceId, address: Option<IpAddr>) -> io::Result<()> {
        let mut written = self.lock();
        if written.phones.contains_key(id) {
            return Ok(());
        }
        let line = match address {
            Some(address) => format!("\n{id} {address};"),
            None => format!("\n{id} -;"),
        };
        written.file.write_all(line.as_bytes())?;
        written.file.sync_data()?;
        written.phones.insert(id.clone(), address);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, StoredAddresses> {
        ignore_poison(self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_address_from_before_the_first_proxy_stays_and_what_was_not_read_by_then_is_never_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pads.direct");
        let id = |text: &str| DeviceId::new(text).ok().unwrap();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let other: IpAddr = "192.0.2.2".parse().unwrap();
        {
            let direct = DirectAddresses::open(&path).unwrap();
            assert!(!direct.is_settled(&id("a")) && direct.of(&id("a")).is_none());
            direct.note(&id("a"), Some(address)).unwrap();
            direct.note(&id("a"), Some(other)).unwrap();
            direct.note(&id("b"), None).unwrap();
            direct.note(&id("b"), Some(other)).unwrap();
        }
        fs::write(&path, fs::read_to_string(&path).unwrap() + "\nc 192.0.2.1").unwrap();
        for _ in 0..2 {
            let direct = DirectAddresses::open(&path).unwrap();
            assert_eq!(["a", "b", "c", "d"].map(|phone| direct.of(&id(phone))), [Some(address), None, None, None]);
            assert_eq!(["a", "b", "c", "d"].map(|phone| direct.is_settled(&id(phone))), [true, true, true, false]);
        }
        let direct = DirectAddresses::open(&path).unwrap();
        direct.note(&id("d"), Some(other)).unwrap();
        assert_eq!(DirectAddresses::open(&path).unwrap().of(&id("d")), Some(other));
    }
}
