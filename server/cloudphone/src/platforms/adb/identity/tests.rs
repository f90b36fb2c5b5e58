//! The table of identity. A connection is `ADDRESS=SERIAL MARK`, with `-` for no mark, `?` for a
//! serial that is not known, and `(…)` around a second connection. A phone with two connections has
//! a `+` between its addresses. The address of a known phone at `gone` was taken by another one.

use super::*;
use std::collections::BTreeSet;

/// The known phones, a list, and the end of each phone in it.
const TABLE: &[(&str, &str, &str)] = &[
    // Two emulators of one image. The first that was seen has the mark of the image, M.
    ("", "54=e M, 56=e M", "kept, new"),
    ("54=e N, 56=e M", "54=e N, 56=e M", "kept, kept"),
    // The copy starts again, the first sorts last and first.
    ("54=e N, 56=e M", "54=e M, 56=e M", "former N, kept"),
    ("54=e M, 56=e N", "54=e M, 56=e M", "kept, former N"),
    // So does the copy alone, which may be the first with its address, too.
    ("54=e N, 56=e M", "54=e M", "unclear"),
    ("54=e M, 56=e N", "56=e M", "unclear"),
    ("54=e N, 56=? M", "54=e M", "unclear"),
    // The first alone.
    ("54=e N, 56=e M", "56=e M", "kept"),
    ("54=e M, 56=e N", "54=e M", "kept"),
    // Only one of them is known.
    ("56=e M", "54=e M, 56=e M", "new, kept"),
    ("54=e N", "54=e M, 56=e M", "former N, kept"),
    ("54=e N", "54=e M", "former N"),
    // A mark is gone, or both are.
    ("54=e N, 56=e M", "54=e -, 56=e M", "former N, kept"),
    ("54=e N, 56=e M", "54=e N, 56=e -", "kept, former M"),
    ("54=e N, 56=e M", "54=e -, 56=e -", "former N, former M"),
    ("54=e N, 56=e M", "54=e -", "former N"),
    ("54=e N, 56=e M", "54=e M, 56=e -", "unclear, unclear"),
    // The addresses change places, also with that of a phone that is new.
    ("54=e N, 56=e M", "54=e M, 56=e N", "kept, kept"),
    ("54=e N, 56=e M", "54=e M, 58=e N", "kept, kept"),
    ("54=e N", "54=e -, 58=e N", "new, kept"),
    // The first has a new address, or a copy is taken for it.
    ("56=e M", "54=e M", "kept"),
    ("56=? M", "54=e M", "kept"),
    ("56=e M", "54=e M, 58=e M", "unclear, unclear"),
    // A mark is copied: by a copy to another known phone, and by the first from the copy.
    ("54=e N, 56=e M", "54=e N, 56=e N", "kept, former M"),
    ("54=e N, 56=e M, 58=e O", "54=e M, 56=e M, 58=e N", "unclear, kept, unclear"),
    ("54=e N, 56=e M, 58=e O", "54=e M, 56=e M, 58=e M", "former N, kept, former O"),
    // Another serial tells a copy from the first.
    ("56=d M", "54=e M", "new"),
    ("54=e N, 56=d M", "54=e M", "former N"),
    ("54=e N, 56=d M", "54=d M", "kept"),
    ("54=e N, 56=d M", "54=d -", "new"),
    ("54=e N", "54=d M", "kept"),
    // Without a serial, the address alone identifies no phone.
    ("54=? N, 56=e M", "54=e M, 56=e M", "new, kept"),
    ("54=? N, 56=? M", "54=e N, 56=e M", "kept, kept"),
    ("54=? N", "54=? -", "new"),
    // The address of a phone was taken, and its mark is shown elsewhere.
    ("54=e N, gone=d M", "54=e N, 56=e M", "kept, new"),
    ("54=e N, gone=e M", "54=e N, 56=e M", "kept, kept"),
    ("54=e N, gone=e M", "54=e M", "unclear"),
    // A phone with two connections, of which the other leads to a copy, or is alone.
    ("cable=e M, (wifi=e M)", "cable+wifi=e M", "kept"),
    ("cable=e M, (wifi=e M)", "cable=e M, wifi=e M", "kept, new"),
    ("cable=e M, (wifi=e M)", "wifi=e M", "kept"),
    ("cable=e M, (wifi=e M)", "cable=e -, wifi=e M", "new, kept"),
    ("(cable=e M), (wifi=e M)", "cable=e M, wifi=e M", "unclear, unclear"),
];

fn mark(letter: &str) -> Option<Mark> {
    Mark::parse(&letter.bytes().next().filter(|byte| *byte != b'-').map(|byte| format!("{byte:032x}"))?)
}

fn lines(text: &str) -> impl Iterator<Item = (Vec<PhoneAddress>, String, Option<Mark>, bool)> {
    text.split(", ").filter(|line| !line.is_empty()).map(|line| {
        let is_second = line.starts_with('(');
        let (addresses, rest) = line.trim_matches(['(', ')']).split_once('=').unwrap();
        let (serial, letter) = rest.split_once(' ').unwrap();
        let addresses = addresses.split('+').map(|address| PhoneAddress::parse(address).unwrap()).collect();
        (addresses, serial.replace('?', ""), mark(letter), is_second)
    })
}

fn read_known(text: &str) -> KnownPhones {
    let mut known = KnownPhones::default();
    for (mut addresses, identity, mark, is_second) in lines(text) {
        let (address, mark) = (addresses.remove(0), mark.unwrap());
        match address.as_str() {
            "gone" => drop(known.displaced.insert(mark, identity)),
            _ => drop(known.at.insert(address, KnownPhone { identity, mark, is_second })),
        }
    }
    known
}

fn read_seen(text: &str) -> Vec<SeenPhone> {
    lines(text).map(|(addresses, identity, mark, _)| SeenPhone { addresses, identity, mark }).collect()
}

fn describe(identity: &Identity) -> String {
    match identity {
        Identity::Kept => "kept".to_owned(),
        Identity::New => "new".to_owned(),
        Identity::Unclear => "unclear".to_owned(),
        Identity::Former(former) => {
            let letter = ["M", "N", "O"].into_iter().find(|letter| mark(letter).as_ref() == Some(former));
            format!("former {}", letter.unwrap())
        }
    }
}

#[test]
fn every_row_of_the_table_has_its_end() {
    for (before, list, ends) in TABLE {
        let identities = identify(&read_seen(list), &read_known(before));
        assert_eq!(identities.iter().map(describe).collect::<Vec<_>>().join(", "), *ends, "{before} | {list}");
    }
}

/// Goes through all lists of three emulators of one image, of which up to two are known.
#[test]
fn no_two_phones_have_one_mark_and_no_known_phone_takes_the_mark_of_another_in_any_list() {
    let (letters, addresses) = (["", "-", "M", "N"], ["54", "56", "58"]);
    let list = |shown: [usize; 3]| {
        let shown = addresses.into_iter().zip(shown).filter(|(_, letter)| *letter > 0);
        shown.map(|(address, letter)| format!("{address}=e {}", letters[letter])).collect::<Vec<_>>().join(", ")
    };
    let mut count = 0;
    for before in [[0, 0, 0], [2, 0, 0], [0, 3, 0], [2, 3, 0], [3, 2, 0]] {
        for shown in (0..64).map(|at| [at % 4, at / 4 % 4, at / 16]) {
            let (phones, known, text) = (read_seen(&list(shown)), read_known(&list(before)), list(shown));
            let identities = identify(&phones, &known);
            let mut marks = BTreeSet::new();
            for (phone, identity) in phones.iter().zip(&identities) {
                let own = match identity {
                    Identity::Kept => phone.mark.as_ref(),
                    Identity::Former(mark) => Some(mark),
                    Identity::New | Identity::Unclear => None,
                };
                assert!(own.is_none_or(|own| marks.insert(own)), "{before:?} | {text}: {identities:?}");
                let former = known.at.get(&phone.addresses[0]).map(|known| &known.mark);
                let has_moved = phones.iter().any(|other| other.mark.as_ref() == former);
                let is_of_another = known.at.values().any(|known| Some(&known.mark) == own && own != former);
                assert!(former.is_none() || has_moved || !is_of_another, "{before:?} | {text}: {identities:?}");
                count += 1;
            }
            // No end depends on the order of addresses, unless nobody has the mark so far.
            let mirrored = [before[1], before[0], before[2]];
            let phones = read_seen(&list([shown[1], shown[0], shown[2]]));
            if before[0] > 0 && before[1] > 0 {
                let end = |phones: &[SeenPhone], identities: &[Identity], address: &str| {
                    let at = phones.iter().position(|phone| phone.addresses[0].as_str() == address)?;
                    Some(describe(&identities[at]))
                };
                let others = identify(&phones, &read_known(&list(mirrored)));
                for (one, another) in [("54", "56"), ("56", "54"), ("58", "58")] {
                    let ends = [end(&read_seen(&text), &identities, one), end(&phones, &others, another)];
                    assert_eq!(ends[0], ends[1], "{before:?} | {text}");
                }
            }
        }
    }
    assert_eq!(count, 5 * 3 * 48);
}
