//! Acts: each records an operator, a command and the differences that it made.
//!
//! A change of the registry is stored with its act in one transaction. The differences come from
//! [`RowFacts`], in which no secret can stand. Start at [`Act`].

use crate::access::Grants;
use crate::rows::{ApplicationRow, KeyRow, Labels};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hex;
use toolwarrant_base::random::Random;
use toolwarrant_base::text::clean;

/// The authority of an operator. Each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May read everything but secrets.
    View,
    /// May also change everything that is not the owner's.
    Operate,
    Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    OwnerSocket,
    OperateSocket,
    ViewSocket,
    /// A page of the console, which a command opened.
    Console,
    /// A process that uses the data folder while no server runs.
    Offline,
    /// The first start, which creates demo applications.
    Start,
}

/// Statements of a client about its user. The server does not check them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login_uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", rename = "as")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// In characters.
pub const CLAIM_MAX: usize = 500;

impl Claims {
    /// Shortens the texts to [`CLAIM_MAX`], and removes control characters.
    #[must_use]
    pub fn limit(self) -> Self {
        let short = |text: String| clean(&text).chars().take(CLAIM_MAX).collect();
        let Self { sudo_user, login_uid, name, reason } = self;
        Self { sudo_user: sudo_user.map(short), login_uid, name: name.map(short), reason: reason.map(short) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    pub role: Role,
    pub name: String,
    pub uid: u32,
    pub channel: Channel,
    pub claims: Claims,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub operator: Operator,
    /// Such as `key revoke`.
    pub command: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// [`ACT_PREFIX`] and 16 hexadecimal digits.
    pub id: String,
    pub at: Timestamp,
    pub operator: Operator,
    pub command: String,
    /// The changed application or key; `None` if the command changed neither.
    pub object: Option<String>,
    pub changes: Changes,
}

impl Act {
    pub fn new(
        origin: Origin,
        object: Option<&str>,
        changes: Changes,
        at: Timestamp,
        random: &Random,
    ) -> Result<Self, getrandom::Error> {
        let Origin { operator, command } = origin;
        let id = format!("{ACT_PREFIX}{}", hex::encode(&random.bytes::<8>()?));
        Ok(Self { id, at, operator, command, object: object.map(str::to_owned), changes })
    }
}

pub const ACT_PREFIX: &str = "act_";

/// Differences by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes(BTreeMap<String, FieldChange>);

/// The difference of a value, or of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldChange {
    Value { before: Value, after: Value },
    List { added: Vec<Value>, removed: Vec<Value> },
}

impl Changes {
    #[must_use]
    pub fn between(before: Option<RowFacts<'_>>, after: Option<RowFacts<'_>>) -> Self {
        let members = |facts: Option<RowFacts<'_>>| match facts.map(serde_json::to_value) {
            Some(Ok(Value::Object(members))) => members,
            _ => Map::new(),
        };
        let (before, after) = (members(before), members(after));
        let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let changed = names.into_iter().filter_map(|name| {
            let [one, other] = [&before, &after].map(|members| members.get(name).unwrap_or(&Value::Null));
            let is_nothing = |value: &Value| value.as_array().map_or(value.is_null(), Vec::is_empty);
            let differ = one != other && !(is_nothing(one) && is_nothing(other));
            differ.then(|| (name.clone(), difference(one, other)))
        });
        Self(changed.collect())
    }

    #[must_use]
    pub fn of(name: &'static str, before: impl Into<Value>, after: impl Into<Value>) -> Self {
        Self(BTreeMap::from([(name.to_owned(), difference(&before.into(), &after.into()))]))
    }

    #[must_use]
    pub fn differences(&self) -> &BTreeMap<String, FieldChange> {
        &self.0
    }
}

fn difference(before: &Value, after: &Value) -> FieldChange {
    let lists = [before, after].map(|value| match value {
        Value::Array(items) => Some(items.as_slice()),
        Value::Null => Some(&[][..]),
        _ => None,
    });
    match lists {
        [Some(before), Some(after)] => {
            let without = |all: &[Value], others: &[Value]| {
                let others: BTreeSet<_> = others.iter().filter_map(Value::as_str).collect();
                let rest = all.iter().filter(|item| item.as_str().is_none_or(|item| !others.contains(item)));
                rest.cloned().collect()
            };
            FieldChange::List { added: without(after, before), removed: without(before, after) }
        }
        _ => FieldChange::Value { before: before.clone(), after: after.clone() },
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum RowFacts<'a> {
    Application {
        name: &'a str,
        permissions: &'a [String],
        requests_per_minute: u32,
        #[serde(flatten)]
        grants: BTreeMap<String, Vec<String>>,
        labels: Vec<String>,
        suspended_at: Option<Timestamp>,
        deleted_at: Option<Timestamp>,
    },
    Key {
        application: &'a str,
        live_secrets: usize,
        older_secret_ends_at: Option<Timestamp>,
        expires_at: Option<Timestamp>,
        labels: Vec<String>,
        suspended_at: Option<Timestamp>,
    },
}

impl<'a> From<&'a ApplicationRow> for RowFacts<'a> {
    fn from(row: &'a ApplicationRow) -> Self {
        let ApplicationRow {
            id: _,
            name,
            permissions,
            requests_per_minute,
            grants,
            created_at: _,
            labels,
            suspended_at,
            deleted_at,
        } = row;
        Self::Application {
            name,
            permissions,
            requests_per_minute: *requests_per_minute,
            grants: list_grants(grants),
            labels: list_labels(labels),
            suspended_at: *suspended_at,
            deleted_at: *deleted_at,
        }
    }
}

impl<'a> From<&'a KeyRow> for RowFacts<'a> {
    fn from(row: &'a KeyRow) -> Self {
        let KeyRow { id: _, application, secrets, created_at: _, expires_at, labels, suspended_at } = row;
        Self::Key {
            application,
            live_secrets: secrets.len(),
            older_secret_ends_at: secrets.get(1).and_then(|older| older.ends_at),
            expires_at: *expires_at,
            labels: list_labels(labels),
            suspended_at: *suspended_at,
        }
    }
}

fn list_labels(labels: &Labels) -> Vec<String> {
    labels.iter().map(|(name, text)| format!("{name}={text}")).collect()
}

fn list_grants(grants: &Grants) -> BTreeMap<String, Vec<String>> {
    match grants.resources() {
        None => BTreeMap::from([("sees_everything".to_owned(), vec!["*".to_owned()])]),
        Some(resources) => {
            resources.iter().map(|(resource, granted)| (format!("sees_{resource}"), granted.terms())).collect()
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAct {
    /// From 1, in the order of storing.
    pub number: u64,
    pub act: Act,
}

#[derive(Clone, Debug, Default)]
pub struct ActFilter {
    pub id: Option<String>,
    pub operator: Option<String>,
    pub object: Option<String>,
    /// The first words of the command.
    pub command: Option<String>,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
    /// Only lower numbers.
    pub before: Option<u64>,
    pub limit: u32,
}
