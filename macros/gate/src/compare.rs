//! Compares two records of a contract.

use crate::change::Change;
use crate::rules::rule;
use toolwarrant_reader::Record;

/// Returns the changes from `old` to `new`, each with what follows from it; the worst first.
#[must_use]
pub fn compare(old: &Record, new: &Record) -> Vec<Change> {
    let mut changes = Vec::new();
    for (fact, value) in &new.facts {
        let before = old.facts.get(fact);
        if before == Some(value) || !fact.ends_with(".permission") {
            continue;
        }
        let Some(rule) = rule("permission-raised") else { continue };
        changes.push(Change {
            rule,
            fact: fact.clone(),
            old: before.cloned(),
            new: Some(value.clone()),
            message: format!("`{fact}` is {value}"),
            lists: Vec::new(),
            users: Vec::new(),
            is_framework: false,
            consequences: Vec::new(),
        });
    }
    changes
}
