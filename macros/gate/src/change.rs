//! A change between two records of a contract.

use crate::rules::ChangeRule;
use crate::severity::{Audience, Severity};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug)]
pub struct ContractChange {
    pub rule: &'static ChangeRule,
    /// By [`Audience::ALL`]. They are those of the rule, except that nobody is hurt at `/v1` if no
    /// route is concerned.
    pub verdicts: [Severity; 5],
    /// Also a part that came or went, such as `tool.NAME`.
    pub fact: String,
    /// A part has no value: it is `true`.
    pub old: Option<Value>,
    pub new: Option<Value>,
    pub message: String,
    pub lists: Vec<ListChange>,
    /// Keys of the places that use the fact's type.
    pub users: Vec<String>,
    pub is_framework: bool,
    pub consequences: Vec<ContractChange>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListChange {
    pub permission: String,
    pub lost: Vec<String>,
    pub gained: Vec<String>,
}

impl ContractChange {
    #[must_use]
    pub fn worst(&self) -> Severity {
        self.verdicts.into_iter().max().unwrap_or(Severity::Compatible)
    }

    #[must_use]
    pub fn verdict(&self, audience: Audience) -> Severity {
        self.verdicts[audience as usize]
    }
}

#[must_use]
pub fn change_json(change: &ContractChange) -> Value {
    let ContractChange { rule, verdicts: _, fact, old, new, message, lists, users, is_framework, consequences } =
        change;
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
