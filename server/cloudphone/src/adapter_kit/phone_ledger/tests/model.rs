//! Any order of changes, readings and restarts: an id always leads to one phone, and a phone has
//! one id.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;

const PHONES: u32 = 5;

/// An event. Numbers of phones count modulo [`PHONES`].
#[derive(Clone, Copy, Debug)]
enum Act {
    Toggle(u32),
    /// The code is one of a few, which others may have had.
    Recode(u32, u8),
    Swap(u32, u32),
    /// The list will lack some phones and contain some twice.
    Begin {
        lost: u8,
        twice: u8,
    },
    End,
    Note(u32),
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (0..PHONES).prop_map(Act::Toggle),
        2 => ((0..PHONES), any::<u8>()).prop_map(|(phone, code)| Act::Recode(phone, code)),
        1 => ((0..PHONES), (0..PHONES)).prop_map(|(one, other)| Act::Swap(one, other)),
        3 => (any::<u8>(), any::<u8>(), any::<bool>()).prop_map(|(lost, twice, whole)| {
            Act::Begin { lost: if whole { 0 } else { lost }, twice }
        }),
        4 => Just(Act::End),
        3 => (0..PHONES).prop_map(Act::Note),
        1 => Just(Act::Restart),
    ]
}

struct World {
    codes: Vec<String>,
    there: Vec<bool>,
    reading: Option<(Vec<TestRow>, Timestamp)>,
    phones: HashMap<DeviceId, u32>,
    ids: HashMap<u32, DeviceId>,
    read_at: HashMap<DeviceId, Timestamp>,
}

impl World {
    fn new() -> Self {
        Self {
            codes: (0..PHONES).map(|phone| format!("P{phone}")).collect(),
            there: vec![true; PHONES as usize],
            reading: None,
            phones: HashMap::new(),
            ids: HashMap::new(),
            read_at: HashMap::new(),
        }
    }

    fn row_of(&self, phone: u32) -> TestRow {
        TestRow { code: self.codes[phone as usize].clone(), serial: Some(phone.to_string()), phone }
    }

    fn all(&self) -> Vec<TestRow> {
        (0..PHONES).filter(|phone| self.there[*phone as usize]).map(|phone| self.row_of(phone)).collect()
    }

    async fn act(&mut self, act: &Act, kept: &mut TestLedger) {
        let now = kept.tick();
        match *act {
            Act::Toggle(phone) => self.there[phone as usize] ^= true,
            Act::Recode(phone, n) => {
                // Codes that differ only in case give the same id.
                let code = ["P0", "p0", "P1", "P7"][usize::from(n) % 4];
                if !self.codes.iter().any(|used| used == code) {
                    self.codes[phone as usize] = code.to_owned();
                }
            }
            Act::Swap(one, other) => self.codes.swap(one as usize, other as usize),
            Act::Begin { lost, twice } => {
                let told = self.all().into_iter();
                let mut list: Vec<TestRow> = told.filter(|row| lost >> row.phone & 1 == 0).collect();
                list.extend(list.clone().into_iter().filter(|row| twice >> row.phone & 1 == 1));
                self.reading = Some((list, now));
            }
            Act::End => {
                if let Some((list, began)) = self.reading.take() {
                    kept.ledger.take(list, began).await;
                }
            }
            Act::Note(phone) => {
                if self.there[phone as usize] {
                    kept.ledger.note(self.row_of(phone), now).await;
                }
            }
            Act::Restart => {
                self.reading = None;
                kept.restart().await;
                self.read_at.clear();
            }
        }
    }

    fn check(&mut self, ledger: &PhoneLedger<TestRow>) {
        let page = page(ledger, None, u16::MAX);
        assert!(page.is_sorted_by(|one, next| one.id < next.id));
        let mut codes: Vec<&str> = page.iter().map(|phone| phone.row.code()).collect();
        codes.sort_unstable();
        assert!(codes.is_sorted_by(|one, next| one < next), "two ids lead to one code: {codes:?}");
        for Listed { id, row, read_at } in &page {
            assert_eq!(self.phones.entry(id.clone()).or_insert(row.phone), &row.phone, "{id} leads to another phone");
            assert_eq!(self.ids.entry(row.phone).or_insert_with(|| id.clone()), id, "a phone has another id");
            let before = self.read_at.insert(id.clone(), *read_at);
            assert!(before.is_none_or(|before| before <= *read_at), "{id} was overwritten by an older reading");
        }
        assert_eq!(ledger.count(), page.len());
    }

    /// Checks that two lists suffice to show a platform that does not change any more.
    async fn settle(&mut self, kept: &TestLedger) {
        for _ in 0..2 {
            kept.ledger.take(self.all(), kept.tick()).await;
            self.check(&kept.ledger);
        }
        let mut shown: Vec<TestRow> =
            page(&kept.ledger, None, u16::MAX).iter().map(|phone| TestRow::clone(&phone.row)).collect();
        shown.sort_by_key(|row| row.phone);
        assert_eq!(shown, self.all());
    }
}

fn lives(acts: &[Act]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut world, mut kept) = (World::new(), TestLedger::new().await);
        for act in acts {
            world.act(act, &mut kept).await;
            world.check(&kept.ledger);
        }
        world.settle(&kept).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_id_leads_to_one_phone(acts in vec(act(), 0..40)) {
        lives(&acts);
    }
}
