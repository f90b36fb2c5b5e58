//! Each fact of a record is watched by a rule.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::mem::discriminant;
use std::path::Path;
use toolwarrant_gate::{ContractChange, compare};
use toolwarrant_reader::{ContractRecord, load};

const CONTRACTS: [&str; 3] = ["spec", "tests/services/print_shop/spec", "tests/contract/forms"];

fn record(folder: &str) -> ContractRecord {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ContractRecord::of(&load(&root.join(folder)).expect("a valid contract"))
}

/// Removes the fact by `None`; its arrival is judged as the opposite.
fn others(value: &Value) -> Vec<Option<Value>> {
    let other = match value {
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(7);
            vec![json!(number + 1), json!(number - 1)]
        }
        Value::String(text) => vec![json!(format!("{text} x"))],
        Value::Array(all) => {
            let mut more = all.clone();
            more.push(json!("é"));
            vec![Value::Array(more), Value::Array(all.iter().skip(1).cloned().collect())]
        }
        other => panic!("{other} is no value of a fact"),
    };
    other.into_iter().map(Some).chain([None]).filter(|other| other.as_ref() != Some(value)).collect()
}

/// `tool.print_page.argument.mode.doc` is of the kind `tool.argument.doc`.
fn kind(key: &str) -> String {
    let parts: Vec<_> = key.split('.').collect();
    if parts.len() < 3 { key.to_owned() } else { parts.into_iter().step_by(2).collect::<Vec<_>>().join(".") }
}

fn names(change: &ContractChange, key: &str) -> bool {
    let is_part = key.strip_prefix(&*change.fact).is_some_and(|rest| rest.starts_with('.'));
    let is_watched = change.rule.id != "behaviour-changed" || key.starts_with("framework.");
    (is_watched && (change.fact == key || is_part)) || change.consequences.iter().any(|below| names(below, key))
}

#[test]
fn a_record_has_no_change_against_itself_and_is_read_as_it_is_written() {
    for folder in CONTRACTS {
        let record = record(folder);
        assert!(compare(&record, &record).is_empty(), "{folder}");
        assert_eq!(ContractRecord::parse(&record.text()), Ok(record), "{folder}");
    }
}

#[test]
fn each_fact_that_changes_alone_is_named_by_a_change() {
    let mut unwatched = Vec::new();
    for folder in CONTRACTS {
        let record = record(folder);
        // A rule watches a kind of facts, so a few of each kind show it.
        let mut tried = HashMap::new();
        for (key, value) in &record.facts {
            let count: &mut usize = tried.entry((kind(key), discriminant(value))).or_default();
            *count += 1;
            if *count > 2 {
                continue;
            }
            for other in others(value) {
                let mut changed = record.clone();
                match &other {
                    Some(other) => drop(changed.facts.insert(key.clone(), other.clone())),
                    None => drop(changed.facts.remove(key)),
                }
                if !compare(&record, &changed).iter().any(|change| names(change, key)) {
                    unwatched.push(format!("{folder}: {key}: {value} {other:?}"));
                }
            }
        }
    }
    assert!(
        unwatched.is_empty(),
        "{} unwatched:\n{}",
        unwatched.len(),
        unwatched[..unwatched.len().min(40)].join("\n")
    );
}

/// Returns the rules that judge the change of a fact of the print shop.
fn judge(key: &str, old: Value, new: Value) -> Vec<String> {
    let [old, new] = [old, new].map(|value| {
        let mut record = record("tests/services/print_shop/spec");
        record.facts.insert(key.to_owned(), value);
        record
    });
    compare(&old, &new).into_iter().map(|change| change.rule.id.clone()).collect()
}

#[test]
fn a_set_that_is_written_in_another_way_has_not_changed() {
    let (charset, former) = ("type.PrinterId.charset", "tool.print_page.argument.mode.formerly");
    for (key, before, after) in [
        (charset, json!(["a-z", "0-9"]), json!(["0-9", "a-z"])),
        (charset, json!(["-", "a-z"]), json!(["a-m", "k-y", "z", "-", "-"])),
        (former, json!(["way", "kind"]), json!(["kind", "way"])),
    ] {
        assert_eq!(judge(key, before, after), [""; 0], "{key}");
    }
    let found = |value| judge(charset, json!(["a-z"]), value)[0].clone();
    assert_eq!([json!(["b-z"]), json!(["a-z", "0"])].map(found), ["id-narrowed", "id-widened"]);
    let shorter = judge("type.PrinterId.min_length", json!(0), json!(2));
    assert_eq!(shorter, ["unseen-changed"], "no value is shorter than the prefix");
}

#[test]
fn types_that_contain_themselves_or_lie_deep_are_compared_to_an_end() {
    let mut old = record("tests/services/print_shop/spec");
    for n in 0..20_000 {
        old.facts.insert(format!("type.T{n}.kind"), json!("object"));
        old.facts.insert(format!("type.T{n}.field.next.type"), json!(format!("T{}", n + 1)));
    }
    old.facts.insert("type.T20000.kind".to_owned(), json!("object"));
    old.facts.insert("type.T20000.field.next.type".to_owned(), json!("T0"));
    old.facts.insert("tool.get_printer.result".to_owned(), json!("T0"));
    let mut new = old.clone();
    new.facts.insert("tool.get_printer.result".to_owned(), json!("T1"));
    new.facts
        .insert("tool.get_tray.result".to_owned(), json!(format!("{}Tray{}", "[".repeat(30_000), "]".repeat(30_000))));
    new.facts.insert("type.Copies.max".to_owned(), json!(1));
    let found: Vec<_> = compare(&old, &new).iter().map(|change| change.fact.clone()).collect();
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn another_text_is_another_wording_or_another_meaning() {
    let judge = |old: &str, new: &str| judge("tool.get_printer.summary", json!(old), json!(new));
    let text = "Call get_tray once, wait 5 s, then write \"done\" unless it is full.";
    for (new, expected) in [
        ("Call get_tray once; wait 5 s, then write \"done\" unless it is full", "wording-changed"),
        ("Use get_tray once, wait 5 s, then write \"done\" unless it is full.", "wording-changed"),
        ("Call get_printer once, wait 5 s, then write \"done\" unless it is full.", "meaning-changed"),
        ("Call get_tray once, wait 9 s, then write \"done\" unless it is full.", "meaning-changed"),
        ("Call get_tray once, wait 5 s, then write \"gone\" unless it is full.", "meaning-changed"),
        ("Call get_tray once, wait 5 s, then write \"done\" if it is full.", "meaning-changed"),
        ("Call get_tray, wait 5 s, then write \"done\" unless it is full.", "meaning-changed"),
        ("Ask get_tray once, rest 5 s, then note \"done\" unless all was full.", "meaning-changed"),
    ] {
        assert_eq!(judge(text, new), [expected], "{new}");
    }
    let long = "word ".repeat(1_001);
    assert_eq!(judge(&long, &(long.clone() + ".")), ["meaning-changed"], "a text that is too long to compare");
}

#[test]
fn a_unit_in_the_words_of_a_number_is_a_fact() {
    let (number, flag) = ("type.Copies.doc", "tool.get_printer.argument.urgent.doc");
    for (key, old, new, expected) in [
        (number, "How far away it is, in metres.", "How far away it is, in feet.", "unit-changed"),
        ("tool.get_printer.argument.weight.doc", "Any weight in kg.", "Any weight in pounds.", "unit-changed"),
        ("tool.get_printer.argument.words.doc", "Its price in EUR.", "Its price in cents.", "unit-changed"),
        ("type.Panel.field.copies.doc", "How long (ms).", "How long (s).", "unit-changed"),
        (number, "The room's warmth in °C.", "The room's warmth in °F.", "unit-changed"),
        (number, "The speed in km/h.", "The speed in miles per hour.", "unit-changed"),
        (number, "The size at most, in 5MB.", "The size at most, in 5 MiB.", "unit-changed"),
        (number, "How far away it is, in metres.", "How far away it is, in meters.", "wording-changed"),
        (number, "The share in percent of all.", "The share in % of all.", "wording-changed"),
        (number, "How far away it is, in metres.", "How far away it is, by road.", "meaning-changed"),
        (
            number,
            "Bounded by `wait_seconds` and one minute.",
            "Bounded by `wait_days` and one minute.",
            "meaning-changed",
        ),
        (flag, "Is it needed within the next hour?", "Is it needed within the next day?", "meaning-changed"),
        ("tool.get_printer.summary", "Waits here for some minutes.", "Waits here for some hours.", "meaning-changed"),
    ] {
        assert_eq!(judge(key, json!(old), json!(new)), [expected], "{new}");
    }
}
