//! Ledgers against a model: platforms that rename, swap, lose and
//! contradict, and processes that end in between.

mod entries;
mod model;
mod refreshes;
mod stories;

use super::*;
use crate::phones::port::NoPlatformName;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use toolwarrant_core::store::Stored;
use toolwarrant_memory::Memory;

/// `phone` is the real phone, and does not decide anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::adapter_kit) struct TestRow {
    code: String,
    serial: Option<String>,
    phone: u32,
}

impl Row for TestRow {
    type Made = ();

    fn code(&self) -> &str {
        &self.code
    }

    fn serial(&self) -> Option<String> {
        self.serial.clone()
    }

    /// Returns the part of the code after a colon.
    fn public_address(&self) -> Option<IpAddr> {
        self.code.split_once(':')?.1.parse().ok()
    }

    fn has_answered(&self) -> bool {
        self.code.starts_with('Y')
    }

    fn plain_id(&self, platform: &PlatformName) -> String {
        format!("{platform}-{}", self.code.replace([':', '.'], "-").to_ascii_lowercase())
    }
}

pub(in crate::adapter_kit) struct TestLedger {
    store: Arc<TestStore>,
    pub(in crate::adapter_kit) clock: Clock,
    pub(in crate::adapter_kit) ledger: Arc<PhoneLedger<TestRow>>,
}

/// Can refuse writes, and counts them.
#[derive(Debug, Default)]
struct TestStore {
    files: Memory,
    refuses: AtomicBool,
    writes: AtomicUsize,
}

impl FileStore for TestStore {
    fn files(&self) -> Stored<'_, HashMap<String, Vec<u8>>> {
        self.files.files()
    }

    fn put_files(&self, files: Vec<(String, Vec<u8>)>) -> Stored<'_, ()> {
        self.writes.fetch_add(1, Relaxed);
        match self.refuses.load(Relaxed) {
            true => Box::pin(async { Err(StoreError::Unavailable("the disk is full".to_owned())) }),
            false => self.files.put_files(files),
        }
    }
}

impl TestLedger {
    pub(in crate::adapter_kit) async fn new() -> Self {
        let clock = Clock::manual(Timestamp(1_000_000));
        let store = Arc::new(TestStore::default());
        let ledger = open(store.clone(), &clock).await;
        Self { store, clock, ledger }
    }

    fn tick(&self) -> Timestamp {
        self.clock.advance(Duration::from_secs(1));
        self.clock.now()
    }

    pub(in crate::adapter_kit) async fn restart(&mut self) {
        self.ledger = open(self.store.clone(), &self.clock).await;
    }

    pub(in crate::adapter_kit) async fn take(&self, list: &str) -> String {
        self.ledger.take(rows(list), self.tick()).await;
        describe(&self.ledger)
    }

    async fn entry(&self, id: &str) -> String {
        String::from_utf8(self.store.files().await.unwrap()[&format!("phones/{id}")].clone()).unwrap()
    }

    async fn put_entry(&self, id: &str, entry: &str) {
        self.store.put_files(vec![(format!("phones/{id}"), entry.into())]).await.unwrap();
    }
}

fn page(ledger: &PhoneLedger<TestRow>, after: Option<&DeviceId>, limit: u16) -> Vec<Listed<TestRow>> {
    let ids: Vec<_> = ledger.page(after, limit, |phones| phones.map(|(id, ..)| id.clone()).collect());
    ids.iter().filter_map(|id| ledger.get(id)).collect()
}

async fn open(store: Arc<dyn FileStore>, clock: &Clock) -> Arc<PhoneLedger<TestRow>> {
    let files = ServiceFiles::open(store).await.unwrap();
    let name = PlatformName::parse("n").unwrap();
    Arc::new(PhoneLedger::open(&files, name, clock.clone()))
}

fn id(text: &str) -> DeviceId {
    DeviceId::new(text).unwrap()
}

fn parse_row(text: &str) -> TestRow {
    let (code, serial) = text.split_once('@').map_or((text, None), |(code, serial)| (code, Some(serial.to_owned())));
    TestRow { code: code.to_owned(), serial, phone: 0 }
}

fn rows(text: &str) -> Vec<TestRow> {
    text.split_whitespace().map(parse_row).collect()
}

fn describe(ledger: &PhoneLedger<TestRow>) -> String {
    let phones = page(ledger, None, u16::MAX);
    phones.iter().map(|phone| format!("{}={}", phone.id, phone.row.code)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_platforms_name_has_one_to_sixteen_of_its_characters() {
    for name in ["a", "0", "vmos2", "abcdefghijklmnop"] {
        assert_eq!(PlatformName::parse(name).unwrap().to_string(), name);
    }
    for name in ["", "A", "a-b", "a_b", "é", "abcdefghijklmnopq", " a"] {
        assert_eq!(PlatformName::parse(name), Err(NoPlatformName), "{name}");
    }
}

#[tokio::test]
async fn an_equal_row_keeps_the_value_that_was_made_of_it() {
    let kept = TestLedger::new().await;
    let told = |phone| TestRow { code: "A".to_owned(), serial: None, phone };
    let mut rows = Vec::new();
    for phone in [1, 1, 2, 2] {
        let began = kept.tick();
        match rows.len() {
            0 | 2 => kept.ledger.take(vec![told(phone)], began).await,
            _ => kept.ledger.note(told(phone), began).await,
        }
        let Listed { row, read_at, .. } = page(&kept.ledger, None, 1).remove(0);
        assert_eq!((row.phone, read_at), (phone, began));
        rows.push(row);
    }
    assert_eq!([0, 1, 2].map(|n| Arc::ptr_eq(&rows[n], &rows[n + 1])), [true, false, true]);
}
