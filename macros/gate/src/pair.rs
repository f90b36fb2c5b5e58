//! Two records side by side, and the differences between their facts.

use serde_json::Value;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use toolwarrant_reader::ContractRecord;

pub(crate) type Facts = BTreeMap<String, Value>;

/// The parts of a contract that come and go as a whole. A longer part is looked for first.
const PARTS: [&str; 15] = [
    "tool.*",
    "permission.*",
    "toolset.*",
    "resource.*",
    "probe.*",
    "state.*",
    "error.*",
    "type.*",
    "framework.type.*",
    "tool.*.argument.*",
    "tool.*.task",
    "tool.*.task.case.*",
    "error.*.field.*",
    "type.*.field.*",
    "framework.type.*.field.*",
];

#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) old: Facts,
    pub(crate) new: Facts,
    vocabulary: OnceCell<HashSet<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) key: String,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

impl Pair {
    pub(crate) fn new(old: &ContractRecord, new: &ContractRecord) -> Self {
        let (old_facts, new_facts) = (old.facts.clone(), new.facts.clone());
        let mut pair = Self { old: old_facts, new: new_facts, vocabulary: OnceCell::new() };
        // Former forms are compared with the tools that must read them.
        for facts in [&mut pair.old, &mut pair.new] {
            facts.retain(|key, _| !key.starts_with("stored."));
            facts.iter_mut().for_each(|(key, value)| sort_set(key, value));
        }
        expand_cases(&mut pair.old, &new.facts);
        expand_cases(&mut pair.new, &old.facts);
        pair
    }

    /// Returns the names of both contracts that no text may lose.
    pub(crate) fn vocabulary(&self) -> &HashSet<String> {
        const NAMED: [&str; 8] = ["tool", "permission", "error", "value", "capability", "probe", "state", "type"];
        let names = |key: &String| {
            let path: Vec<&str> = key.split('.').collect();
            let named = path.windows(2).filter(|pair| NAMED.contains(&pair[0])).map(|pair| pair[1].to_owned());
            named.filter(|name| name.contains('_') || name.starts_with(|c: char| c.is_uppercase())).collect::<Vec<_>>()
        };
        self.vocabulary.get_or_init(|| self.old.keys().chain(self.new.keys()).flat_map(names).collect())
    }

    /// Makes one difference of the limits of both kinds, if a type has another kind.
    fn kind_above(&self, key: &str) -> Option<String> {
        let (table, below) = key.split_once("type.").filter(|(above, _)| matches!(*above, "" | "framework."))?;
        let (name, below) = below.split_once('.')?;
        let kind = format!("{table}type.{name}.kind");
        let [old, new] = [&self.old, &self.new].map(|facts| facts.get(&kind));
        (below != "doc" && old.is_some() && new.is_some() && old != new).then_some(kind)
    }

    pub(crate) fn differences(&self) -> Vec<Difference> {
        let keys: BTreeSet<&String> = self.old.keys().chain(self.new.keys()).collect();
        let mut found: BTreeMap<String, Difference> = BTreeMap::new();
        for key in keys.into_iter().filter(|key| self.old.get(*key) != self.new.get(*key)) {
            let key = &self.kind_above(key).unwrap_or_else(|| key.clone());
            let whole = parts(key).find(|part| has_part(&self.old, part) != has_part(&self.new, part));
            let difference = match whole {
                Some(part) => {
                    let present = |facts| has_part(facts, &part).then_some(Value::Bool(true));
                    Difference { old: present(&self.old), new: present(&self.new), key: part }
                }
                None => {
                    Difference { key: key.clone(), old: self.old.get(key).cloned(), new: self.new.get(key).cloned() }
                }
            };
            found.entry(difference.key.clone()).or_insert(difference);
        }
        found.into_values().collect()
    }
}

impl Difference {
    pub(crate) fn path(&self) -> Vec<&str> {
        self.key.split('.').collect()
    }
}

pub(crate) fn fits(pattern: &str, key: &str) -> bool {
    let (mut wanted, mut found) = (pattern.split('.'), key.split('.'));
    pattern == "*"
        || loop {
            match (wanted.next(), found.next()) {
                (None, None) => return true,
                (Some(wanted), Some(found)) if wanted == "*" || wanted == found => {}
                _ => return false,
            }
        }
}

pub(crate) fn text<'a>(facts: &'a Facts, key: &str) -> &'a str {
    facts.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn names<'a>(facts: &'a Facts, above: &str) -> Vec<&'a str> {
    let below = format!("{above}.");
    let keys = facts.range(below.clone()..).map(|(key, _)| key.as_str());
    let mut names: Vec<_> =
        keys.map_while(|key| key.strip_prefix(&*below)).filter_map(|rest| rest.split('.').next()).collect();
    names.dedup();
    names
}

pub(crate) fn has_part(facts: &Facts, part: &str) -> bool {
    let below = format!("{part}.");
    facts.range(below.clone()..).next().is_some_and(|(key, _)| key.starts_with(&below))
}

/// Returns the largest part first.
fn parts(key: &str) -> impl Iterator<Item = String> {
    let path: Vec<&str> = key.split('.').collect();
    PARTS.iter().filter_map(move |pattern| {
        let length = pattern.split('.').count();
        let part = path.get(..length)?.join(".");
        (length < path.len() && fits(pattern, &part)).then_some(part)
    })
}

/// Repeats the terms of a task for each case that only the other record distinguishes.
fn expand_cases(facts: &mut Facts, other: &Facts) {
    let tools: Vec<String> = names(facts, "tool").into_iter().map(str::to_owned).collect();
    for tool in tools {
        let task = format!("tool.{tool}.task");
        let cases = names(other, &format!("{task}.case"));
        if cases.is_empty() || facts.contains_key(&format!("{task}.select")) {
            continue;
        }
        for term in ["probe", "resend", "settle_seconds", "deadline_seconds"] {
            let Some(value) = facts.remove(&format!("{task}.{term}")) else { continue };
            facts.extend(cases.iter().map(|case| (format!("{task}.case.{case}.{term}"), value.clone())));
        }
    }
}

/// Merges the ranges of a set of characters, and sorts former names.
fn sort_set(key: &str, value: &mut Value) {
    let Value::Array(members) = value else { return };
    if key.ends_with(".formerly") {
        members.sort_by_key(Value::to_string);
    }
    if key.ends_with(".charset") {
        let ends = |range: &str| Some((range.chars().next()?, range.chars().next_back()?));
        let mut ranges: Vec<_> = members.iter().filter_map(|range| ends(range.as_str()?)).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, range| {
            let touches = u32::from(next.0) <= u32::from(range.1) + 1;
            range.1 = if touches { range.1.max(next.1) } else { range.1 };
            touches
        });
        let spell = |(from, to)| if from == to { format!("{from}") } else { format!("{from}-{to}") };
        *members = ranges.into_iter().map(|range| spell(range).into()).collect();
    }
}
