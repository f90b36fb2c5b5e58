//! Each rule has a case on the contract of the print shop, and a rule for the opposite change.

use super::Shop;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use toolwarrant_gate::{Audience, ContractChange, Severity, compare, digest, rule, rules};
use toolwarrant_reader::ContractRecord;

type Edit = (String, String, String);

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Case {
    both: Vec<Edit>,
    edits: Vec<Edit>,
    former: BTreeMap<String, Value>,
    reversed: bool,
    /// Only in verdicts.toml.
    finds: BTreeMap<String, String>,
}

impl Case {
    fn shop(&self) -> Shop {
        let is_usual = self.both.is_empty() && !self.reversed;
        let shop = if is_usual { Shop::release_first() } else { Shop::new() };
        let edit = |edit: &Edit| apply(&shop, edit);
        self.both.iter().for_each(edit);
        let before: Vec<_> = self.edits.iter().map(|(file, ..)| (file, shop.read(&format!("spec/{file}")))).collect();
        if self.reversed {
            self.edits.iter().for_each(edit);
        }
        if !is_usual {
            let answer = shop.release("1.0.0");
            assert_eq!(answer.code, 0, "{}", answer.text);
        }
        match self.reversed {
            true => before.iter().for_each(|(file, text)| shop.write(&format!("spec/{file}"), text)),
            false => self.edits.iter().for_each(edit),
        }
        if !self.former.is_empty() {
            let mut record = ContractRecord::parse(&shop.read("spec/released.toml")).expect("a record");
            record.facts.extend(self.former.clone());
            record.facts.retain(|_, value| *value != Value::Bool(false));
            record.head.insert("framework".to_owned(), "0.0.9".into());
            let digest = digest(&record);
            record.head.insert("digest".to_owned(), digest.into());
            shop.write("spec/released.toml", &record.text());
        }
        shop
    }
}

fn apply(shop: &Shop, (file, old, new): &Edit) {
    let (file, text) = (format!("spec/{file}"), shop.read(&format!("spec/{file}")));
    assert!(text.contains(old), "{file} has no {old}");
    shop.write(&file, &text.replace(old, new));
}

fn record(shop: &Shop) -> ContractRecord {
    ContractRecord::of(&shop.contract())
}

fn cases() -> BTreeMap<String, Case> {
    toml::from_str(include_str!("cases.toml")).expect("cases")
}

pub(super) fn flat(changes: &[ContractChange]) -> Vec<&ContractChange> {
    changes.iter().flat_map(|change| [vec![change], flat(&change.consequences)].concat()).collect()
}

/// `contract explain` shows these reports.
#[test]
fn every_rule_has_a_case_whose_report_it_heads_and_a_rule_for_the_opposite() {
    let cases = cases();
    let missing: Vec<_> = rules().iter().map(|rule| &rule.id).filter(|id| !cases.contains_key(*id)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    let mut reports = String::new();
    for (id, case) in &cases {
        let shop = case.shop();
        let report = shop.check().text;
        let head = format!("[{id}]: ");
        let own = report.split("\n\n").find(|part| part.lines().next().is_some_and(|line| line.contains(&head)));
        let own = own.unwrap_or_else(|| panic!("{id} heads no part of\n{report}"));
        let _ = writeln!(reports, "## {id}\n\n{own}\n");
        let old = ContractRecord::parse(&shop.read("spec/released.toml")).expect("a record");
        let back = compare(&record(&shop), &old);
        let back: Vec<_> = flat(&back).iter().map(|change| change.rule.id.clone()).collect();
        let mirror = &rule(id).expect(id).mirror;
        let is_mirror = |back: &String| mirror.contains(&**back) || (mirror.contains("own mirror") && back == id);
        assert!(
            !mirror.contains('-') || back.iter().any(is_mirror),
            "{id}: the mirror is {mirror}, and the opposite {back:?}"
        );
    }
    insta::with_settings!({ snapshot_path => "../../src/examples", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("changes", reports);
    });
}

#[test]
fn a_verdict_names_exactly_those_whom_the_change_hurts() {
    let pairs: BTreeMap<String, Case> = toml::from_str(include_str!("verdicts.toml")).expect("pairs");
    let mut wrong = String::new();
    for (name, Case { both, edits, finds, .. }) in &pairs {
        let shop = Shop::new();
        both.iter().for_each(|edit| apply(&shop, edit));
        let old = record(&shop);
        edits.iter().for_each(|edit| apply(&shop, edit));
        let changes = compare(&old, &record(&shop));
        for (fact, expected) in finds {
            let found: Vec<_> = flat(&changes).into_iter().filter(|change| change.fact == *fact).map(spell).collect();
            if found.join("; ") != *expected {
                let _ = writeln!(wrong, "{name}: {fact} is {expected}, and the gate says {found:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn spell(change: &ContractChange) -> String {
    let letter = |audience| match change.verdict(audience) {
        Severity::Breaking => "B",
        Severity::Risky => "R",
        Severity::Compatible => "-",
    };
    format!("{} {}", change.rule.id, Audience::ALL.map(letter).join(" "))
}
