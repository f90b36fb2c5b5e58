//! A change between two records of a contract.

use crate::rules::ChangeRule;
use crate::severity::{Audience, Severity};
use serde_json::{Map, Value, json};

/// One change between two records, with what follows from it.
#[derive(Clone, Debug)]
pub struct ContractChange {
    /// The rule that judges it.
    pub rule: &'static ChangeRule,
    /// The key of the fact, or of the part of the contract that came or went, such as `tool.NAME`.
    pub fact: String,
    /// Its value before; `None` if it did not exist. A part has no value: it is `true`.
    pub old: Option<Value>,
    /// Its value now.
    pub new: Option<Value>,
    /// The change in words: one sentence without a full stop.
    pub message: String,
    /// The tools that permissions lose and gain by it.
    pub lists: Vec<ListChange>,
    /// The arguments, results and errors that use the fact's type, as keys of facts.
    pub users: Vec<String>,
    /// True if the framework has caused it, and no file of the contract.
    pub is_framework: bool,
    /// The changes that follow from this one.
    pub consequences: Vec<ContractChange>,
}

/// The change of the tools that a key may call if it holds one permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListChange {
    /// The permission.
    pub permission: String,
    /// The tools that it has lost.
    pub lost: Vec<String>,
    /// The tools that it has gained.
    pub gained: Vec<String>,
}

impl ContractChange {
    /// Returns the verdict for the audience that is hurt most.
    #[must_use]
    pub fn worst(&self) -> Severity {
        self.rule.verdicts.into_iter().max().unwrap_or(Severity::Compatible)
    }

    /// Returns the verdict for an audience.
    #[must_use]
    pub fn verdict(&self, audience: Audience) -> Severity {
        self.rule.verdicts[audience as usize]
    }
}

/// Returns a change as JSON, with what follows from it.
#[must_use]
pub fn change_json(change: &ContractChange) -> Value {
    let ContractChange { rule, fact, old, new, message, lists, users, is_framework, consequences } = change;
    let verdicts = Audience::ALL.map(|audience| (audience.name().to_owned(), change.verdict(audience).name().into()));
    let lists = lists.iter().map(
        |ListChange { permission, lost, gained }| json!({"permission": permission, "lost": lost, "gained": gained}),
    );
    json!({
        "rule": rule.id,
        "fact": fact,
        "old": old,
        "new": new,
        "message": message,
        "verdict": change.worst().name(),
        "verdicts": Map::from_iter(verdicts),
        "bump": rule.bump.name(),
        "lists": lists.collect::<Vec<_>>(),
        "users": users,
        "framework": is_framework,
        "consequences": consequences.iter().map(change_json).collect::<Vec<_>>(),
    })
}
