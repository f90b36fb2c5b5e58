//! Acts: who changed what, by which command, and what differs since.
//!
//! A change of the registry is stored together with its act, in one transaction. The differences
//! come from [`RowFacts`], in which no secret can stand: they have only the number of a key's
//! secrets.

use crate::access::Grants;
use crate::rows::{ApplicationRow, KeyRow, Labels};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hex;
use toolwarrant_base::random::Random;
use toolwarrant_base::text::clean;

/// The authority of an operator. Each role may do everything that the roles before it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May read everything but secrets.
    View,
    /// May also change everything that is not the owner's.
    Operate,
    /// May do everything.
    Owner,
}

/// The way on which a command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The socket in the data folder.
    OwnerSocket,
    /// The socket of the group that may change.
    OperateSocket,
    /// The socket of the group that may read.
    ViewSocket,
    /// A process that uses the data folder while no server runs.
    Offline,
    /// The first start of a server, which creates demo applications.
    Start,
}

/// Statements of a client about its user. The server does not check them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// The user who called `sudo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<String>,
    /// The user who logged in, by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login_uid: Option<u32>,
    /// The name that the user gave.
    #[serde(skip_serializing_if = "Option::is_none", rename = "as")]
    pub name: Option<String>,
    /// The reason that the user gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Longest text of a claim, in characters.
pub const CLAIM_MAX: usize = 500;

impl Claims {
    /// Shortens the texts to 500 characters each, and removes control characters.
    #[must_use]
    pub fn limit(self) -> Self {
        let short = |text: String| clean(&text).chars().take(CLAIM_MAX).collect();
        let Self { sudo_user, login_uid, name, reason } = self;
        Self { sudo_user: sudo_user.map(short), login_uid, name: name.map(short), reason: reason.map(short) }
    }
}

/// A person or program that operates a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// The authority.
    pub role: Role,
    /// The name of the user, as the machine of the server knows it.
    pub name: String,
    /// The number of the user.
    pub uid: u32,
    /// The way on which the command came.
    pub channel: Channel,
    /// The statements of the client.
    pub claims: Claims,
}

/// The origin of a change: the operator and the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The operator.
    pub operator: Operator,
    /// The words of the command, such as `key revoke`.
    pub command: String,
}

/// A stored record of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// Its id: [`ACT_PREFIX`] and 16 hexadecimal digits.
    pub id: String,
    /// The time of the change.
    pub at: Timestamp,
    /// The operator who made it.
    pub operator: Operator,
    /// The words of the command.
    pub command: String,
    /// The id of the changed application or key; `None` if the command changed neither.
    pub object: Option<String>,
    /// The differences.
    pub changes: Changes,
}

impl Act {
    /// Makes the act of a change at `at`.
    ///
    /// # Errors
    /// The system provides no random bytes.
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

/// The prefix of the ids of acts.
pub const ACT_PREFIX: &str = "act_";

/// Differences by name. A list has `added` and `removed`, any other value `before` and `after`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes(Map<String, Value>);

impl Changes {
    /// Returns the differences between two states of a row. `None` stands for a row that does not
    /// exist.
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

    /// Returns the difference of one value that is not part of a row.
    #[must_use]
    pub fn of(name: &'static str, before: impl Into<Value>, after: impl Into<Value>) -> Self {
        Self(Map::from_iter([(name.to_owned(), difference(&before.into(), &after.into()))]))
    }
}

fn difference(before: &Value, after: &Value) -> Value {
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
                rest.cloned().collect::<Value>()
            };
            json!({"added": without(after, before), "removed": without(before, after)})
        }
        _ => json!({"before": before, "after": after}),
    }
}

/// The facts of a row that an act may show.
#[derive(Serialize)]
#[serde(untagged)]
pub enum RowFacts<'a> {
    /// The facts of an application.
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
    /// The facts of a key.
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

/// Lists the grants of each resource, as `sees_` and the resource.
fn list_grants(grants: &Grants) -> BTreeMap<String, Vec<String>> {
    match grants.resources() {
        None => BTreeMap::from([("sees_everything".to_owned(), vec!["*".to_owned()])]),
        Some(resources) => {
            resources.iter().map(|(resource, granted)| (format!("sees_{resource}"), granted.terms())).collect()
        }
    }
}

/// An act as a store returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAct {
    /// Its number, from 1, in the order in which acts were stored.
    pub number: u64,
    /// The act.
    pub act: Act,
    /// True if its line is in the audit trail of this process.
    pub has_line: bool,
}

/// Selects acts.
#[derive(Clone, Debug, Default)]
pub struct ActFilter {
    /// Only the one with this id.
    pub id: Option<String>,
    /// Only those of the operator with this name.
    pub operator: Option<String>,
    /// Only those on the application or key with this id.
    pub object: Option<String>,
    /// Only those of commands that begin with these words, also as steps of `apply`.
    pub command: Option<String>,
    /// Only those at this time or later.
    pub since: Option<Timestamp>,
    /// Only those before this time.
    pub until: Option<Timestamp>,
    /// Only those with lower numbers.
    pub before: Option<u64>,
    /// Maximum number of acts to return.
    pub limit: u32,
}
