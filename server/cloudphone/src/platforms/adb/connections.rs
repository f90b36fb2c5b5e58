//! The connections of phones: which of them lead to the same phone.
//!
//! A phone has one id, whatever connects it: USB, Wi-Fi, or a name on the network, and several of
//! them at a time. The words of a phone about itself are no proof, because another phone can say
//! the same. So this server writes a mark on each phone, which no other phone knows. A copy of a
//! phone has its mark, too. Two connections lead to one phone if a word that is written over one is
//! read over the other. Start at [`unite`].

use super::row::{AdbRow, LastList};
use super::wire::PhoneAddress;
use std::collections::BTreeMap;
use toolwarrant::BoxFuture;

/// The reason why a connection is not served.
const SECOND: &str = "it is a second connection of a phone that is served";

/// Compares connections that lead to phones with the same mark.
pub(super) trait Comparison: Sync {
    /// Returns true if the connections lead to one phone. Gives the second phone another mark if
    /// they do not.
    fn is_one<'a>(&'a self, first: &'a AdbRow, second: &'a AdbRow) -> BoxFuture<'a, bool>;
}

/// Gives each phone one row: that of the address by which it was known before, and otherwise that
/// of its first address.
pub(super) async fn unite(
    mut list: LastList,
    known: &BTreeMap<PhoneAddress, AdbRow>,
    comparison: &dyn Comparison,
) -> LastList {
    let of_network = |address: &PhoneAddress| address.as_str().contains(':') && !address.as_str().starts_with("usb:");
    let mut rows: Vec<_> = std::mem::take(&mut list.rows).into_iter().collect();
    rows.sort_by_key(|(address, row)| (!row.answers(), !known.contains_key(address), of_network(address)));
    let mut united = BTreeMap::<PhoneAddress, AdbRow>::new();
    'rows: for (address, mut row) in rows {
        let is_same = |other: &AdbRow| row.facts.mark.is_some() && row.facts.mark == other.facts.mark;
        let (marked, answers) = (united.values_mut().find(|first| first.answers() && is_same(first)), row.answers());
        let is_one = match &marked {
            Some(first) if answers => comparison.is_one(first, &row).await,
            Some(first) => first.others.contains(&row.address),
            None => {
                !answers
                    && !known.contains_key(&address)
                    && known.values().any(|known| known.others.contains(&row.address))
            }
        };
        if is_one {
            if let Some(first) = marked {
                first.others.insert(row.address.clone());
            }
            list.left_out.push((row.address, SECOND));
            continue 'rows;
        }
        if marked.is_some() {
            row.facts.mark = None;
        } else if answers && let Some(before) = known.values().find(|known| is_same(known)) {
            let before = before.others.iter().chain([&before.address]);
            row.others = before.filter(|other| **other != row.address).cloned().collect();
        }
        united.insert(address, row);
    }
    LastList { rows: united, ..list }
}

#[cfg(test)]
mod tests {
    use super::super::facts::PhoneFacts;
    use super::super::states::AdbState;
    use super::*;
    use toolwarrant::text::Untrusted;

    /// Parses rows: `ADDRESS=PHONE MARK`, where `-` stands for no mark, and `?` for no answer.
    fn rows(text: &str) -> BTreeMap<PhoneAddress, AdbRow> {
        let row = |text: &str| {
            let (address, rest) = text.split_once('=').unwrap();
            let (phone, mark) = rest.split_once(' ').unwrap();
            let (state, model) = match mark {
                "?" => (AdbState::Silent, None),
                _ => (AdbState::Running, Some(Untrusted::clean(phone))),
            };
            let mark = Some(mark.to_owned()).filter(|_| !["-", "?"].contains(&mark));
            let facts = PhoneFacts { mark, model, ..PhoneFacts::default() };
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
        let mut known = BTreeMap::new();
        for (list, expected) in [
            ("192.0.2.1:5555=a A, emulator-1=a A, emulator-2=b B, off=c ?", "emulator-1 A, emulator-2 B, off -"),
            // The later connection alone, and then the first one, which is kept beside another.
            ("192.0.2.1:5555=a A, emulator-1=a ?, emulator-2=b B", "192.0.2.1:5555 A, emulator-2 B"),
            ("192.0.2.1:5555=a ?, emulator-1=a A", "emulator-1 A"),
            ("a-cable=a A, emulator-1=a A, 192.0.2.1:5555=c C", "192.0.2.1:5555 C, emulator-1 A"),
            ("a-cable=a ?, emulator-1=a ?", "emulator-1 A"),
            // A copy of a phone, which sorts before it, and phones that cannot be marked.
            ("emulator-1=a A", "emulator-1 A"),
            ("a-copy=x A, emulator-1=a A, usb:1-1=a A", "a-copy -, emulator-1 A"),
            ("bare-1=a -, bare-2=a -", "bare-1 -, bare-2 -"),
        ] {
            let mut rows = rows(list);
            // Readings of a phone stay while it does not answer.
            for (address, row) in rows.iter_mut().filter(|(_, row)| !row.answers()) {
                row.facts = known.get(address).map(|row: &AdbRow| row.facts.clone()).unwrap_or_default();
            }
            let list_read = LastList { rows, left_out: Vec::new() };
            let LastList { rows, left_out } = unite(list_read, &known, &TestComparison).await;
            let row = |row: &AdbRow| format!("{} {}", row.address, row.facts.mark.as_deref().unwrap_or("-"));
            assert_eq!(rows.values().map(row).collect::<Vec<_>>().join(", "), expected, "{list}");
            assert_eq!(rows.len() + left_out.len(), list.split(", ").count(), "{list}");
            known = rows;
        }
    }
}
