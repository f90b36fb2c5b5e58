//! The rules that judge changes, from `rules.toml`.

use crate::severity::{Bump, Severity};
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The text of the rules.
const TEXT: &str = include_str!("rules.toml");

/// A rule: the facts that it watches, and its judgement of a change of one.
#[derive(Debug)]
pub struct ChangeRule {
    /// Its name, which never changes.
    pub id: String,
    /// The verdict for each audience, in the order of [`Audience::ALL`](crate::Audience::ALL).
    pub verdicts: [Severity; 5],
    /// The number of the version that it raises, from version 1.0 on.
    pub bump: Bump,
    /// The facts that it watches.
    pub watches: Vec<Watch>,
    /// The reason for the verdicts.
    pub why: String,
    /// The remedy, or the way to make the change without harm.
    pub help: String,
    /// The rule of the opposite change, or the reason why there is none.
    pub mirror: String,
}

impl ChangeRule {
    /// Returns a key by which a rule that hurts more comes after one that hurts less.
    pub(crate) fn weight(&self) -> (Option<Severity>, Bump, usize) {
        let sum = self.verdicts.iter().map(|verdict| *verdict as usize).sum();
        (self.verdicts.into_iter().max(), self.bump, sum)
    }
}

/// Facts, and the kind of change of them that a rule judges. It is written as `KIND KEY`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Watch {
    /// The kind of change.
    pub when: When,
    /// The key, in which `*` is one part.
    pub key: String,
}

impl TryFrom<String> for Watch {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (when, key) = text.split_once(' ').ok_or_else(|| format!("`{text}` is not `KIND KEY`"))?;
        let when = When::deserialize(StrDeserializer::<ValueError>::new(when)).map_err(|error| error.to_string())?;
        Ok(Self { when, key: key.to_owned() })
    }
}

/// The kind of change that a rule judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// The fact came. A flag became true.
    Added,
    /// The fact went. A flag became false.
    Removed,
    /// Its value is another.
    Changed,
    /// Its number is larger.
    Raised,
    /// Its number is smaller.
    Lowered,
    /// Its text says something else, came or went.
    Meaning,
    /// Its text says the same in other words.
    Wording,
    /// A function decides, because the rule depends on other facts.
    Judged,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    hurts: String,
    bump: Bump,
    watches: Vec<Watch>,
    why: String,
    help: String,
    mirror: String,
}

static RULES: LazyLock<Vec<ChangeRule>> = LazyLock::new(|| {
    // A test reads the same text, so that it cannot be empty.
    let written: BTreeMap<String, WrittenRule> = toml::from_str(TEXT).unwrap_or_default();
    let rule = |(id, WrittenRule { hurts, bump, watches, why, help, mirror })| {
        let verdict = |letter| match letter {
            "B" => Severity::Breaking,
            "R" => Severity::Risky,
            _ => Severity::Compatible,
        };
        let mut verdicts = hurts.split(' ').map(verdict);
        let verdicts = std::array::from_fn(|_| verdicts.next().unwrap_or(Severity::Compatible));
        ChangeRule { id, verdicts, bump, watches, why, help, mirror }
    };
    written.into_iter().map(rule).collect()
});

/// Returns all rules, sorted by id.
#[must_use]
pub fn rules() -> &'static [ChangeRule] {
    &RULES
}

/// Finds a rule by its id.
#[must_use]
pub fn rule(id: &str) -> Option<&'static ChangeRule> {
    rules().iter().find(|rule| rule.id == id)
}
