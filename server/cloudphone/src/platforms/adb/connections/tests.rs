//! Lists that follow each other, of phones that keep their marks.

use super::*;
use async_trait::async_trait;
use std::sync::Mutex;

/// The marks of phones, by their names. The first letter of a name is the serial.
#[derive(Default)]
struct TestPhones {
    marks: Mutex<BTreeMap<&'static str, u32>>,
    made: Mutex<u32>,
    /// The phone at each address of the list.
    at: BTreeMap<PhoneAddress, &'static str>,
}

impl TestPhones {
    fn mark_of(&self, phone: &str) -> Option<Mark> {
        let number = self.marks.lock().unwrap().get(phone).copied()?;
        Mark::parse(&format!("{number:032}"))
    }

    /// Parses `ADDRESS=PHONE`, with a `?` for one that does not answer. A name with an `=` in front
    /// of the list copies the mark of a phone to another one.
    fn list(&mut self, text: &'static str, known: &Connections) -> Connections {
        let mut list = Connections::default();
        for connection in text.split(", ") {
            let (address, phone) = connection.split_once('=').unwrap();
            let (address, name) = (PhoneAddress::parse(address).unwrap(), phone.trim_end_matches('?'));
            let row = known.get(&address).map_or_else(|| AdbRow::new(address.clone()), |known| known.row.clone());
            let (state, facts) = match phone.ends_with('?') {
                true => (AdbState::Silent, row.facts.clone()),
                false => {
                    let (identity, mark) = (name[..1].to_owned(), self.mark_of(name));
                    (AdbState::Running, PhoneFacts { identity, mark, ..PhoneFacts::default() })
                }
            };
            list.add(AdbRow { state, facts, ..row }, None, known);
            self.at.insert(address, name);
        }
        list
    }
}

#[async_trait]
impl Marking for TestPhones {
    async fn is_one(&self, first: &AdbRow, second: &AdbRow) -> Option<bool> {
        Some(self.at[&first.address] == self.at[&second.address])
    }

    async fn mark(&self, orders: Vec<MarkOrder>) -> BTreeMap<PhoneAddress, Option<Mark>> {
        let mark = |order: MarkOrder| {
            let phone = self.at[&order.address];
            let has_mark = self.marks.lock().unwrap().contains_key(phone);
            if !(phone.starts_with('z') || order.is_first && has_mark) {
                let number = order.mark.map_or_else(
                    || {
                        *self.made.lock().unwrap() += 1;
                        *self.made.lock().unwrap()
                    },
                    |mark| mark.as_str().parse().unwrap(),
                );
                self.marks.lock().unwrap().insert(phone, number);
            }
            (order.address, self.mark_of(phone))
        };
        orders.into_iter().map(mark).collect()
    }
}

#[tokio::test]
async fn a_phone_has_one_row_whatever_connects_it_and_no_other_phone_takes_it() {
    let (mut phones, mut known) = (TestPhones::default(), Connections::default());
    for (copy, list, expected) in [
        (None, "192.0.2.1:5555=a, emulator-1=a, emulator-2=b, off=c?", "emulator-1 1, emulator-2 2, off -"),
        // The later connection alone, and then the first one, which is kept beside another.
        (None, "192.0.2.1:5555=a, emulator-1=a?, emulator-2=b", "192.0.2.1:5555 1, emulator-2 2"),
        (None, "192.0.2.1:5555=a?, emulator-1=a", "emulator-1 1"),
        (None, "a-cable=a, emulator-1=a, 192.0.2.1:5555=c", "192.0.2.1:5555 3, emulator-1 1"),
        // A phone that is away for several lists makes no phone of its second connection.
        (None, "a-cable=a?", ""),
        (None, "a-cable=a?, emulator-1=a?", "emulator-1 1"),
        (None, "emulator-1=a", "emulator-1 1"),
        // A copy of a phone, which sorts before it, starts several times, and once alone.
        (Some(("ax", "a")), "a-copy=ax, emulator-1=a, usb:1-1=a", "a-copy 4, emulator-1 1"),
        (Some(("ax", "a")), "a-copy=ax, emulator-1=a", "a-copy 4, emulator-1 1"),
        (Some(("ax", "a")), "a-copy=ax", "a-copy 4 Unclear"),
        (None, "a-copy=ax, emulator-1=a", "a-copy 4, emulator-1 1"),
        (Some(("ax", "a")), "a-copy=ax, emulator-1=a?", "a-copy 4 Unclear, emulator-1 1"),
        // One that says another serial, and phones that cannot be marked, one of which is a copy.
        (None, "a-copy=x", "a-copy 5"),
        (None, "bare-1=z, bare-2=z", "bare-1 -, bare-2 -"),
        (Some(("zx", "a")), "bare-1=zx, emulator-1=a", "bare-1 - Unclear, emulator-1 1"),
        // The address of a phone that is away is taken, and one with another serial has its mark.
        (None, "emulator-2=y", "emulator-2 6"),
        (Some(("kx", "b")), "emulator-2=y, k-1=kx", "emulator-2 6, k-1 7"),
        (None, "emulator-2=y, emulator-3=b", "emulator-2 6, emulator-3 2"),
    ] {
        if let Some((copy, phone)) = copy {
            let mark = phones.marks.lock().unwrap()[phone];
            phones.marks.lock().unwrap().insert(copy, mark);
        }
        let shown = phones.list(list, &known);
        known = known.follow(shown, &phones).await;
        let row = |AdbRow { address, state, facts }: &AdbRow| {
            let mark = facts.mark.as_ref().map_or("-", |mark| mark.as_str().trim_start_matches('0'));
            let is_unclear = *state == AdbState::Unclear;
            format!("{address} {mark}{}", if is_unclear { " Unclear" } else { "" })
        };
        assert_eq!(known.phones().map(row).collect::<Vec<_>>().join(", "), expected, "{list}");
        assert_eq!(known.phones().count() + known.left_out.len(), list.split(", ").count(), "{list}");
    }
}

#[tokio::test]
async fn starts_in_a_row_are_counted_until_the_phone_has_run_for_long() {
    let (mut phones, mut known) = (TestPhones::default(), Connections::default());
    for (start, list, has_run_long, expected) in [
        ("a", "emulator-1=a", false, 0),
        ("b", "emulator-1=a", false, 1),
        ("b", "emulator-1=a?", false, 1),
        ("c", "emulator-1=a", false, 2),
        // Another phone.
        ("d", "emulator-1=b", false, 0),
        ("e", "emulator-1=b", false, 1),
        ("e", "emulator-1=b", true, 0),
    ] {
        let mut shown = phones.list(list, &known);
        let mut connection = shown.all.remove(&PhoneAddress::parse("emulator-1").unwrap()).unwrap();
        if !list.ends_with('?') {
            (connection.row.facts.start, connection.row.facts.has_run_long) = (Some(start.to_owned()), has_run_long);
        }
        shown.add(connection.row, None, &known);
        known = known.follow(shown, &phones).await;
        assert_eq!(known.all.values().next().unwrap().starts, expected, "{start}");
    }
}
