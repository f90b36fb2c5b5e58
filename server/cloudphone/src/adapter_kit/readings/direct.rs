//! The address from which each phone makes requests without a proxy that this server set, if known.
//!
//! The operator of a proxy chooses the address from which its users are seen. Suppose that a client
//! has such a proxy in force and sets another. It could make ordinary requests come from the
//! address before the send, and would get a refund for a write that took effect. So an absence is
//! measured against an address that was read before this server ever set a proxy. The address is
//! stored before the proxy is sent. A phone whose address was not read by then never gets one.

use crate::adapter_kit::shared::{SharedPlatforms, within_patience};
use crate::phones::contract::{DeviceId, SetProxyArgs};
use crate::phones::port::Exits;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::task::spawn_blocking;
use toolwarrant::base::ignore_poison;
use toolwarrant::sharing::{Document, StoreError};

/// The name space of the addresses that replicas share. Their keys are the ids of the phones.
const SPACE: &str = "direct";

/// The text for a phone whose address was not read in time.
const UNKNOWN: &str = "-";

/// The addresses of the phones of one platform. The file has a line per phone, `ID ADDRESS;` or `ID
/// -;`. Each entry starts a new line, so that a truncated entry does not spoil the next one.
/// Replicas share a document per phone, `ADDRESS` or `-`, which never changes.
#[derive(Debug)]
pub struct DirectAddresses {
    phones: Arc<Mutex<KnownAddresses>>,
    shared: Option<Arc<SharedPlatforms>>,
}

#[derive(Debug, Default)]
struct KnownAddresses {
    /// `None` if replicas share the addresses.
    file: Option<File>,
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
        let known = KnownAddresses { file: Some(file), phones };
        Ok(Self { phones: Arc::new(Mutex::new(known)), shared: None })
    }

    /// Shares the addresses with other replicas.
    #[must_use]
    pub fn of_replicas(shared: Arc<SharedPlatforms>) -> Self {
        Self { phones: Arc::default(), shared: Some(shared) }
    }

    /// Returns the address of a phone; `None` if it is not known. Another replica may have stored
    /// it, so this may ask the store. If that does not answer, the address is not known, which is
    /// the safe side: no absence is provable then.
    pub async fn of(&self, id: &DeviceId) -> Option<IpAddr> {
        let known = self.lock().phones.get(id).copied();
        match (known, &self.shared) {
            (None, Some(shared)) => self.read(shared, id).await.ok().flatten(),
            (known, _) => known.flatten(),
        }
    }

    /// Adds the address without a proxy to a reading. A reading that was taken before a proxy is
    /// sent is that address. If it cannot be stored, an absence is never evidence on this phone.
    pub async fn complete(&self, id: &DeviceId, proxy: Option<&SetProxyArgs>, exits: Exits) -> Exits {
        if proxy.is_none() {
            let _ = self.note(id, Some(exits.ordinary)).await;
        }
        Exits { direct: self.of(id).await, ..exits }
    }

    /// Returns true if this process knows that the entry of the phone is final.
    #[must_use]
    pub fn is_settled(&self, id: &DeviceId) -> bool {
        self.lock().phones.contains_key(id)
    }

    /// Stores the address of a phone durably, before the first proxy is sent to it. `None` means
    /// that a proxy is about to be sent and the address was not read. An earlier entry stays.
    ///
    /// # Errors
    /// The file or the document cannot be written. Then it is not known if there is an entry.
    pub async fn note(&self, id: &DeviceId, address: Option<IpAddr>) -> io::Result<()> {
        if self.is_settled(id) {
            return Ok(());
        }
        if let Some(shared) = &self.shared {
            return self.put(shared, id, address).await.map_err(io::Error::other);
        }
        let (known, id) = (Arc::clone(&self.phones), id.clone());
        spawn_blocking(move || ignore_poison(known.lock()).append(id, address)).await?
    }

    async fn put(&self, shared: &SharedPlatforms, id: &DeviceId, address: Option<IpAddr>) -> Result<(), StoreError> {
        let body = address.map_or_else(|| UNKNOWN.to_owned(), |address| address.to_string()).into_bytes();
        let document = Document { key: id.to_string(), version: 0, body };
        let put = within_patience(shared.sharing.documents.put_documents(SPACE, vec![document])).await?;
        match put == [true] {
            true => drop(self.lock().phones.insert(id.clone(), address)),
            // Another replica was first.
            false => drop(self.read(shared, id).await?),
        }
        Ok(())
    }

    async fn read(&self, shared: &SharedPlatforms, id: &DeviceId) -> Result<Option<IpAddr>, StoreError> {
        let found = within_patience(shared.sharing.documents.documents(SPACE, vec![id.to_string()])).await?;
        let Some(Document { body, .. }) = found.first() else { return Ok(None) };
        let address = std::str::from_utf8(body).ok().and_then(|text| text.parse().ok());
        self.lock().phones.insert(id.clone(), address);
        Ok(address)
    }

    fn lock(&self) -> MutexGuard<'_, KnownAddresses> {
        ignore_poison(self.phones.lock())
    }
}

impl KnownAddresses {
    fn append(&mut self, id: DeviceId, address: Option<IpAddr>) -> io::Result<()> {
        if let (Some(file), false) = (&mut self.file, self.phones.contains_key(&id)) {
            let address = address.map_or_else(|| UNKNOWN.to_owned(), |address| address.to_string());
            file.write_all(format!("\n{id} {address};").as_bytes())?;
            file.sync_data()?;
        }
        self.phones.entry(id).or_insert(address);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn the_address_from_before_the_first_proxy_stays_and_what_was_not_read_by_then_is_never_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pads.direct");
        let id = |text: &str| DeviceId::new(text).ok().unwrap();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let other: IpAddr = "192.0.2.2".parse().unwrap();
        {
            let direct = DirectAddresses::open(&path).unwrap();
            assert!(!direct.is_settled(&id("a")) && direct.of(&id("a")).await.is_none());
            direct.note(&id("a"), Some(address)).await.unwrap();
            direct.note(&id("a"), Some(other)).await.unwrap();
            direct.note(&id("b"), None).await.unwrap();
            direct.note(&id("b"), Some(other)).await.unwrap();
        }
        fs::write(&path, fs::read_to_string(&path).unwrap() + "\nc 192.0.2.1").unwrap();
        for _ in 0..2 {
            let direct = DirectAddresses::open(&path).unwrap();
            for (phone, known) in [("a", Some(address)), ("b", None), ("c", None), ("d", None)] {
                assert_eq!(direct.of(&id(phone)).await, known, "{phone}");
            }
            assert_eq!(["a", "b", "c", "d"].map(|phone| direct.is_settled(&id(phone))), [true, true, true, false]);
        }
        let direct = DirectAddresses::open(&path).unwrap();
        direct.note(&id("d"), Some(other)).await.unwrap();
        assert_eq!(DirectAddresses::open(&path).unwrap().of(&id("d")).await, Some(other));
    }
}
