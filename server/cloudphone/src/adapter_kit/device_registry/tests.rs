//! Device registries against a model: platforms that rename, swap, lose and
//! contradict, and processes that end in between.

mod files;
mod model;
mod refreshes;
mod stories;

use super::*;
use crate::phones::port::NoPlatformName;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// A row of the platform in these tests. `phone` identifies the real phone, and does not decide
/// anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TestRow {
    code: String,
    seat: Option<String>,
    phone: u32,
}

impl Row for TestRow {
    type Made = ();

    fn code(&self) -> &str {
        &self.code
    }

    fn seat(&self) -> Option<String> {
        self.seat.clone()
    }
}

/// A device registry in its own folder, on a manual clock.
struct TestRegistry {
    folder: TempDir,
    clock: Clock,
    registry: DeviceRegistry<TestRow>,
}

impl TestRegistry {
    fn new() -> Self {
        let (folder, clock) = (TempDir::new().unwrap(), Clock::manual(Timestamp(1_000_000)));
        let registry = open(&folder, &clock);
        Self { folder, clock, registry }
    }

    fn tick(&self) -> Timestamp {
        self.clock.advance(Duration::from_secs(1));
        self.clock.now()
    }

    fn restart(&mut self) {
        self.registry = open(&self.folder, &self.clock);
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("roster")
    }
}

/// Returns the next phones of a device registry.
fn page(registry: &DeviceRegistry<TestRow>, after: Option<&DeviceId>, limit: u16) -> Vec<Listed<TestRow>> {
    let ids: Vec<_> = registry.page(after, limit, |phones| phones.map(|(id, ..)| id.clone()).collect());
    ids.iter().filter_map(|id| registry.get(id)).collect()
}

fn open(folder: &TempDir, clock: &Clock) -> DeviceRegistry<TestRow> {
    let files = ServiceFiles::in_folder(folder.path());
    DeviceRegistry::open(&files, "roster", PlatformName::parse("n").unwrap(), clock.clone()).unwrap()
}

/// Parses a row: `A@1` has the code `A` and the seat `1`; `A` has no seat.
fn parse_row(text: &str) -> TestRow {
    let (code, seat) = text.split_once('@').map_or((text, None), |(code, seat)| (code, Some(seat.to_owned())));
    TestRow { code: code.to_owned(), seat, phone: 0 }
}

fn rows(text: &str) -> Vec<TestRow> {
    text.split_whitespace().map(parse_row).collect()
}

/// Parses records: `A>B` means that the code `A` became `B`.
fn records(text: &str) -> Vec<Recoded> {
    let record =
        |text: &str| text.split_once('>').map(|(from, to)| Recoded { from: from.into(), to: to.into() }).unwrap();
    text.split_whitespace().map(record).collect()
}

/// Returns the phones that a device registry shows: `id=code`, in order.
fn describe(registry: &DeviceRegistry<TestRow>) -> String {
    let phones = page(registry, None, u16::MAX);
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

#[test]
fn a_row_is_current_for_a_minute() {
    let read_at = Timestamp(1_000_000);
    assert!(is_current(read_at, read_at.plus(SHOWN_FOR)));
    assert!(!is_current(read_at, read_at.plus(SHOWN_FOR + Duration::from_millis(1))));
}

#[tokio::test]
async fn an_equal_row_keeps_the_value_that_was_made_of_it() {
    let kept = TestRegistry::new();
    let told = |phone| TestRow { code: "A".to_owned(), seat: None, phone };
    let mut rows = Vec::new();
    for phone in [1, 1, 2, 2] {
        let began = kept.tick();
        match rows.len() {
            0 | 2 => assert!(kept.registry.take(vec![told(phone)], Vec::new(), began).await),
            _ => kept.registry.note(told(phone), Vec::new(), began).await,
        }
        let Listed { row, read_at, .. } = page(&kept.registry, None, 1).remove(0);
        assert_eq!((row.phone, read_at), (phone, began));
        rows.push(row);
    }
    assert_eq!([0, 1, 2].map(|n| Arc::ptr_eq(&rows[n], &rows[n + 1])), [true, false, true]);
}
