//! `accepted.toml`: the breaks that are accepted until the next release, each with its reason.

use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::ops::Range;
use toml::Spanned;
use toolwarrant_common::suggestion;
use toolwarrant_gate::{ContractChange, rule, rules};

const HEAD: &str = "\
# The breaks of the contract that are accepted until the next release, each with its new value and the reason.
# `contract accept` writes them, and `contract release` removes this file.
";

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    rule: Spanned<String>,
    fact: String,
    /// Absent if the fact went.
    value: Option<Value>,
    pub(crate) reason: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedFile {
    #[serde(default)]
    accepted: Vec<Accepted>,
}

#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: String,
}

pub(crate) fn parse(text: &str) -> Result<Vec<Accepted>, Mistake> {
    let AcceptedFile { accepted } = toml::from_str(text).map_err(|error| Mistake {
        span: error.span().unwrap_or_default(),
        message: error.message().to_owned(),
        help: "each `[[accepted]]` has `rule`, `fact`, `value` unless the fact went, and `reason`".to_owned(),
    })?;
    let unknown = accepted.iter().find(|known| rule(known.rule.get_ref()).is_none());
    let empty = accepted.iter().find(|known| known.reason.trim().is_empty());
    match (unknown, empty) {
        (Some(Accepted { rule, .. }), _) => Err(Mistake {
            span: rule.span(),
            message: format!("unknown rule `{}`", rule.get_ref()),
            help: suggestion(rule.get_ref(), rules().iter().map(|rule| rule.id.as_str())),
        }),
        (None, Some(Accepted { rule, fact, .. })) => Err(Mistake {
            span: rule.span(),
            message: format!("`{fact}` is accepted without a reason"),
            help: "write the reason: the changelog shows it at the next release".to_owned(),
        }),
        (None, None) => Ok(accepted),
    }
}

impl Accepted {
    pub(crate) fn of(change: &ContractChange, reason: &str) -> Self {
        let ContractChange { rule, fact, new, .. } = change;
        let rule = Spanned::new(0..0, rule.id.clone());
        Self { rule, fact: fact.clone(), value: new.clone(), reason: reason.to_owned() }
    }

    pub(crate) fn concerns(&self, change: &ContractChange) -> bool {
        (self.rule.get_ref(), &self.fact) == (&change.rule.id, &change.fact)
    }

    pub(crate) fn covers(&self, change: &ContractChange) -> bool {
        self.concerns(change) && self.value == change.new
    }

    pub(crate) fn mistake<'c>(&self, breaks: impl IntoIterator<Item = &'c ContractChange>) -> Mistake {
        let Self { rule, fact, value, .. } = self;
        let span = rule.span();
        let say = |value: &Option<Value>| value.as_ref().map_or("gone".to_owned(), Value::to_string);
        match breaks.into_iter().find(|change| self.concerns(change)) {
            Some(change) => Mistake {
                span,
                message: format!("`{fact}` is accepted as {}, and is {}", say(value), say(&change.new)),
                help: format!(
                    "accept the value in force: `contract accept {} {fact} --reason \"...\"`",
                    rule.get_ref()
                ),
            },
            None => Mistake {
                span,
                message: format!("the contract has no break of `{fact}` by the rule `{}`", rule.get_ref()),
                help: "remove these lines".to_owned(),
            },
        }
    }
}

pub(crate) fn text(accepted: &[Accepted]) -> String {
    let mut out = HEAD.to_owned();
    for Accepted { rule, fact, value, reason } in accepted {
        // JSON writes strings, integers, booleans and lists of them as TOML reads them.
        let [rule, fact, reason] = [rule.get_ref(), fact, reason].map(|text| Value::from(text.as_str()));
        let value = value.as_ref().map(|value| format!("value = {value}\n")).unwrap_or_default();
        let _ = write!(out, "\n[[accepted]]\nrule = {rule}\nfact = {fact}\n{value}reason = {reason}\n");
    }
    out
}
