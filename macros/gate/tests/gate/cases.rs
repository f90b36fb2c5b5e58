//! Each rule has a case on the contract of the print shop, and a rule for the opposite change.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use toolwarrant_gate::{Change, compare, rule, rules};
use toolwarrant_reader::{Record, load};

/// An edit: a file, a text in it, and its replacement.
type Edit = (String, String, String);

/// A case: the two contracts that a rule's example compares.
#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Case {
    both: Vec<Edit>,
    edits: Vec<Edit>,
    facts: BTreeMap<String, Value>,
    reversed: bool,
}

impl Case {
    /// Returns the old record and the new one.
    fn records(&self) -> (Record, Record) {
        let former = record(self.both.iter());
        let mut latter = record(self.both.iter().chain(&self.edits));
        latter.facts.extend(self.facts.clone());
        latter.facts.retain(|_, value| *value != Value::Bool(false));
        if self.reversed { (latter, former) } else { (former, latter) }
    }
}

fn cases() -> BTreeMap<String, Case> {
    toml::from_str(include_str!("cases.toml")).expect("cases")
}

/// Returns the record of the print shop after some edits.
fn record<'a>(edits: impl Iterator<Item = &'a Edit>) -> Record {
    let copy = TempDir::new().expect("a folder");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services/print_shop/spec");
    fs::create_dir(copy.path().join("tools")).expect("a folder");
    for folder in ["", "tools"] {
        for entry in fs::read_dir(from.join(folder)).expect("a contract").filter_map(Result::ok) {
            if entry.path().extension().is_some_and(|ending| ending == "toml") {
                fs::copy(entry.path(), copy.path().join(folder).join(entry.file_name())).expect("a file");
            }
        }
    }
    for (file, old, new) in edits {
        let path = copy.path().join(file);
        let text = fs::read_to_string(&path).expect("a file of the copy");
        assert!(text.contains(old), "{file} has no {old:?}");
        fs::write(&path, text.replace(old, new)).expect("a file of the copy");
    }
    Record::of(&load(copy.path()).unwrap_or_else(|report| panic!("{report}")))
}

fn flat(changes: &[Change]) -> Vec<&Change> {
    changes.iter().flat_map(|change| [vec![change], flat(&change.consequences)].concat()).collect()
}

#[test]
fn every_rule_has_a_case_and_judges_it() {
    let cases = cases();
    let missing: Vec<_> = rules().iter().map(|rule| &rule.id).filter(|id| !cases.contains_key(*id)).collect();
    println!("without a case: {missing:?}");
    let mut wrong = Vec::new();
    for (id, case) in &cases {
        let Ok((old, new)) = std::panic::catch_unwind(|| case.records()) else {
            wrong.push(format!("{id}: does not load"));
            continue;
        };
        let changes = compare(&old, &new);
        let found: Vec<_> = flat(&changes).iter().map(|change| change.rule.id.clone()).collect();
        if !changes.iter().any(|change| change.rule.id == *id) {
            wrong.push(format!("{id}: {:?}", changes.iter().map(|c| (&c.rule.id, &c.message)).collect::<Vec<_>>()));
        }
        let back = compare(&new, &old);
        let back: Vec<_> = flat(&back).iter().map(|change| change.rule.id.clone()).collect();
        let mirror = &rule(id).expect(id).mirror;
        let known = |back: &String| mirror.contains(back.as_str()) || (mirror.contains("own mirror") && back == id);
        if mirror.contains("mirror") || mirror.contains('-') {
            if !back.iter().any(known) {
                wrong.push(format!("{id}: mirror {mirror} but back {back:?}, there {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
