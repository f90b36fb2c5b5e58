//! The rules that judge changes, from `rules.toml`.

use crate::severity::{Bump, Severity};
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("rules.toml");

#[derive(Debug)]
pub struct ChangeRule {
    pub id: String,
    /// By [`Audience::ALL`](crate::Audience::ALL).
    pub verdicts: [Severity; 5],
    /// Applies from version 1.0 on.
    pub bump: Bump,
    pub watches: Vec<Watch>,
    pub why: String,
    pub help: String,
    /// The rule of the opposite change, or the reason why there is none.
    pub mirror: String,
}

impl ChangeRule {
    pub(crate) fn weight(&self) -> (Option<Severity>, Bump, usize) {
        let sum = self.verdicts.iter().map(|verdict| *verdict as usize).sum();
        (self.verdicts.into_iter().max(), self.bump, sum)
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Watch {
    pub when: When,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Also a flag that became true.
    Added,
    /// Also a flag that became false.
    Removed,
    Changed,
    Raised,
    Lowered,
    Meaning,
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

#[must_use]
pub fn rules() -> &'static [ChangeRule] {
    &RULES
}

#[must_use]
pub fn rule(id: &str) -> Option<&'static ChangeRule> {
    rules().iter().find(|rule| rule.id == id)
}
