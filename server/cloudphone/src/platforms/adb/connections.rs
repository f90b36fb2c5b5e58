//! The connections of phones: which of them lead to the same phone.
//!
//! A phone has one id, whatever connects it: USB, Wi-Fi, a name on the network, or several. Another
//! phone can say the same of itself. So this server writes a mark on each phone, which only a copy
//! of the phone has, too. Two connections lead to one phone if a word that is written over one is
//! read over the other. While a phone is away, a copy is taken for it. Start at [`unite`].

use super::row::{AdbRow, LastList};
use super::wire::PhoneAddress;
use toolwarrant::BoxFuture;

const SECOND: &str = "it is a second connection of a phone that is served";

pub(super) trait Comparison: Sync {
    /// Gives the second phone another mark if the answer is false.
    fn is_one<'a>(&'a self, first: &'a AdbRow, second: &'a AdbRow) -> BoxFuture<'a, bool>;
}

pub(super) async fn unite(mut list: LastList, known: &LastList, comparison: &dyn Comparison) -> LastList {
    let of_network = |address: &PhoneAddress| address.as_str().contains(':') && !address.as_str().starts_with("usb:");
    let mut rows: Vec<_> = std::mem::take(&mut list.rows).into_iter().collect();
    rows.sort_by_key(|(address, row)| (!row.answers(), !known.rows.contains_key(address), of_network(address)));
    list.seconds = known.seconds.clone();
    for (address, mut row) in rows {
        let has_mark = |other: &&AdbRow| row.facts.mark.is_some() && row.facts.mark == other.facts.mark;
        let is_other = |other: &AdbRow| other.facts.identity != row.facts.identity;
        let first = list.rows.values().find(|first| first.answers() && has_mark(first));
        let is_second = match first {
            Some(first) if row.answers() => !is_other(first) && comparison.is_one(first, &row).await,
            Some(_) => true,
            None => !row.answers() && !known.rows.contains_key(&address) && list.seconds.contains(&address),
        };
        if is_second {
            list.left_out.push((row.address, SECOND));
            list.seconds.insert(address);
            continue;
        }
        if first.is_some() || known.rows.values().filter(has_mark).any(is_other) {
            row.facts.mark = None;
        }
        if row.answers() {
            list.seconds.remove(&address);
        }
        list.rows.insert(address, row);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::super::facts::PhoneFacts;
    use super::super::states::AdbState;
    use super::*;
    use std::collections::BTreeMap;
    use toolwarrant::text::Untrusted;

    /// Parses rows `ADDRESS=PHONE MARK`, where `-` stands for no mark, and `?` for no answer. The
    /// identity is the first letter of the phone.
    fn rows(text: &str) -> BTreeMap<PhoneAddress, AdbRow> {
        let row = |text: &str| {
            let (address, rest) = text.split_once('=').unwrap();
            let (phone, mark) = rest.split_once(' ').unwrap();
            let (state, model) = match mark {
                "?" => (AdbState::Silent, None),
                _ => (AdbState::Running, Some(Untrusted::clean(phone))),
            };
            let (mark, identity) =
                (Some(mark.to_owned()).filter(|_| !["-", "?"].contains(&mark)), phone[..1].to_owned());
            let facts = PhoneFacts { mark, model, identity, ..PhoneFacts::default() };
            (PhoneAddress::parse(address).unwrap(), AdbRow { state, facts, ..AdbRow::new(address) })
        };
        text.split(", ").map(row).collect()
    }

    struct TestComparison;

    impl Comparison for TestComparison {
        fn is_one<'a>(&'a self, first: &'a AdbRow, second: &'a AdbRow) -> BoxFuture<'a, bool> {
            Box::pin(async { first.facts.model == second.facts.model })
        }
    }

    #[tokio::test]
    async fn a_phone_has_one_row_whatever_connects_it_and_no_other_phone_takes_it() {
        let mut known = LastList::default();
        for (list, expected) in [
            ("192.0.2.1:5555=a A, emulator-1=a A, emulator-2=b B, off=c ?", "emulator-1 A, emulator-2 B, off -"),
            // The later connection alone, and then the first one, which is kept beside another.
            ("192.0.2.1:5555=a A, emulator-1=a ?, emulator-2=b B", "192.0.2.1:5555 A, emulator-2 B"),
            ("192.0.2.1:5555=a ?, emulator-1=a A", "emulator-1 A"),
            ("a-cable=a A, emulator-1=a A, 192.0.2.1:5555=c C", "192.0.2.1:5555 C, emulator-1 A"),
            // A phone that is away for several lists makes no phone of its second connection.
            ("a-cable=a ?", ""),
            ("a-cable=a ?, emulator-1=a ?", "emulator-1 -"),
            // A copy of a phone, which sorts before it, one that says another serial, and phones
            // that cannot be marked.
            ("emulator-1=a A", "emulator-1 A"),
            ("a-copy=ax A, emulator-1=a A, usb:1-1=a A", "a-copy -, emulator-1 A"),
            ("a-copy=x A", "a-copy -"),
            ("bare-1=a -, bare-2=a -", "bare-1 -, bare-2 -"),
        ] {
            let mut rows = rows(list);
            // Readings of a phone stay while it does not answer.
            for (address, row) in rows.iter_mut().filter(|(_, row)| !row.answers()) {
                row.facts = known.rows.get(address).map(|row: &AdbRow| row.facts.clone()).unwrap_or_default();
            }
            let united = unite(LastList { rows, ..LastList::default() }, &known, &TestComparison).await;
            let row = |row: &AdbRow| format!("{} {}", row.address, row.facts.mark.as_deref().unwrap_or("-"));
            assert_eq!(united.rows.values().map(row).collect::<Vec<_>>().join(", "), expected, "{list}");
            assert_eq!(united.rows.len() + united.left_out.len(), list.split(", ").count(), "{list}");
            known = united;
        }
    }
}
