//! Commands about keys.

use super::acts;
use super::answer::{
    CommandAnswer, change_labels, describe_act, find_application, name_application, names, parse_label, refusal,
};
use crate::answers::{ActMade, ApplicationName, KeyAnswer, KeyState, NewKeyAnswer, RevokedKeyAnswer, SecretAnswer};
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::flags;
use crate::when::{KeyEnd, span};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::{Changes, Origin};
use toolwarrant_core::registry::NewKey;
use toolwarrant_core::store::{KeyRow, SecretRow, SecretUse};

/// Commands about keys.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KeyCommand {
    /// Create a key, and show its secret once
    Create {
        /// The application's name or id
        app: String,
        /// Its end: 90 (days), 12h, 2026-12-31, 2026-12-31T18:00Z or never, the default
        #[arg(long, value_name = "WHEN")]
        expires: Option<KeyEnd>,
    },
    /// List keys, with the age, end and last use of each live secret
    List(KeyQuery),
    /// Show one key with the latest acts on it
    Show {
        /// The key's id
        key: String,
    },
    /// Give a key a new secret; the current one stays valid until the next rotation, an older one
    /// ends
    Rotate {
        /// The key's id
        key: String,
        /// End the current secret after this time span, such as 7d
        #[arg(long, value_name = "SPAN", value_parser = parse_span)]
        grace: Option<Duration>,
    },
    /// End the older secret of a rotated key at once
    EndOld {
        /// The key's id
        key: String,
    },
    /// Move the end of a key
    Expire {
        /// The key's id
        key: String,
        /// Its end: 90 (days), 12h, 2026-12-31, 2026-12-31T18:00Z or never
        #[arg(value_name = "WHEN")]
        at: KeyEnd,
    },
    /// Refuse a key until `key resume`; it keeps its secrets
    Suspend {
        /// The key's id
        key: String,
    },
    /// Allow a suspended key again
    Resume {
        /// The key's id
        key: String,
    },
    /// Set labels of a key, such as owner=Ada; an empty text removes a label
    Label {
        /// The key's id
        key: String,
        /// The labels; `owner`, `contact` and `customer` are common
        #[arg(value_name = "NAME=TEXT", required = true, value_parser = parse_label)]
        labels: Vec<(String, String)>,
    },
    /// Revoke a key at once, with all its secrets
    Revoke {
        /// The key's id
        key: String,
    },
    /// Turn on keys that have been off since the data was restored from a backup
    Confirm {
        /// The keys' ids
        #[arg(value_name = "KEY", required_unless_present = "all")]
        keys: Vec<String>,
        /// Every key that is off
        #[arg(long = flags::ALL, conflicts_with = "keys")]
        all: bool,
    },
}

/// Selects keys.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyQuery {
    /// Only keys of this application
    pub app: Option<String>,
    /// Only keys in this state
    #[arg(long, value_name = "STATE", value_enum)]
    pub state: Option<KeyState>,
    /// Only keys that were not used for this time span, such as 90d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub unused_for: Option<Duration>,
    /// Only keys that end, or whose older secret ends, within this time span
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub ends_within: Option<Duration>,
    /// Only keys whose latest secret is older than this time span
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub older_than: Option<Duration>,
}

pub(super) fn parse_span(text: &str) -> Result<Duration, &'static str> {
    span(text).ok_or("expected a time span such as 30m, 12h or 90d")
}

impl KeyAnswer {
    /// Describes a key as off if it has secrets.
    pub(crate) fn from_backup(key: &KeyRow, application: &str, now: Timestamp) -> Self {
        let described = KeyFacts { off: HashSet::new(), uses: HashMap::new(), now }.describe(key, application.into());
        let state = if key.secrets.is_empty() { described.state } else { KeyState::Unconfirmed };
        Self { state, live_secrets: 0, secrets: Vec::new(), ..described }
    }
}

pub(super) struct KeyFacts {
    off: HashSet<String>,
    uses: HashMap<String, Vec<SecretUse>>,
    now: Timestamp,
}

impl KeyFacts {
    pub(super) async fn read(context: &OperatorContext, keys: Option<&[KeyRow]>) -> Result<Self, OperatorError> {
        let off = context.store.keys_to_confirm().await?.into_iter().collect();
        let ids = keys.map(|keys| keys.iter().map(|key| key.id.clone()).collect());
        Ok(Self { off, uses: context.registry.uses(ids).await?, now: context.clock.latest() })
    }

    pub(super) fn describe(&self, key: &KeyRow, application: ApplicationName) -> KeyAnswer {
        let KeyRow { id, application: _, secrets, created_at, expires_at, labels, suspended_at } = key;
        let uses = self.uses.get(id).map_or(&[][..], Vec::as_slice);
        let state = match expires_at {
            _ if self.off.contains(id) => KeyState::Unconfirmed,
            _ if secrets.is_empty() => KeyState::Revoked,
            Some(end) if *end <= self.now => KeyState::Expired,
            _ if suspended_at.is_some() => KeyState::Suspended,
            _ => KeyState::Live,
        };
        let live = secrets.iter().filter(|secret| secret.ends_at.is_none_or(|end| end > self.now));
        let secret = |SecretRow { verifier, created_at, ends_at, .. }: &SecretRow| {
            let last = uses.iter().find(|one| one.verifier == *verifier);
            SecretAnswer {
                created_at: *created_at,
                ends_at: *ends_at,
                last_used_at: last.map(|last| last.at),
                last_used_from: last.and_then(|last| last.from),
            }
        };
        let secrets: Vec<_> = live.map(secret).collect();
        let last = uses.iter().max_by_key(|one| one.at);
        KeyAnswer {
            key_id: id.clone(),
            application,
            state,
            live_secrets: secrets.len(),
            created_at: *created_at,
            expires_at: *expires_at,
            last_used_at: last.map(|last| last.at),
            last_used_from: last.and_then(|last| last.from),
            labels: labels.clone(),
            secrets,
            latest_acts: None,
            made: None,
        }
    }

    fn selects(&self, query: &KeyQuery, key: &KeyAnswer) -> bool {
        let KeyQuery { app: _, state, unused_for, ends_within, older_than } = query;
        let latest = key.secrets.first();
        let made_at = latest.and_then(|secret| secret.created_at).unwrap_or(key.created_at);
        let ends = [key.expires_at, key.secrets.get(1).and_then(|older| older.ends_at)];
        let ends_by = |limit| ends.into_iter().flatten().any(|end| end > self.now && end <= limit);
        state.is_none_or(|state| state == key.state)
            && (unused_for.is_none() || latest.is_some())
            && unused_for.is_none_or(|span| key.last_used_at.unwrap_or(key.created_at) <= self.now.minus(span))
            && ends_within.is_none_or(|span| latest.is_some() && ends_by(self.now.plus(span)))
            && older_than.is_none_or(|span| latest.is_some() && made_at <= self.now.minus(span))
    }
}

pub(super) async fn execute(context: &OperatorContext, origin: &Origin, command: KeyCommand) -> CommandAnswer {
    let (registry, now) = (&context.registry, context.clock.latest());
    let new = |NewKey { key_id, secret, act_id }: NewKey, note: String| {
        let made = ActMade { act_id, note: Some(note) };
        Ok(NewKeyAnswer { key_id, secret: secret.expose().clone(), made }.into())
    };
    match command {
        KeyCommand::Create { app, expires } => {
            let expires_at = judge_end(expires, now).map_err(|error| error.at("expires"))?;
            let id = registry.find(&app).await?.id;
            let key = registry.issue_key(&id, expires_at, origin).await?;
            new(key, describe_new_key(expires_at))
        }
        KeyCommand::List(query) => {
            let only = find_application(context, query.app.as_deref()).await?;
            Ok(list(context, &query, |key| only.as_ref().is_none_or(|row| key.application == row.id)).await?.into())
        }
        KeyCommand::Show { key } => {
            let mut shown = show(context, &key).await?;
            shown.latest_acts = Some(acts::latest_on(context, &key).await?);
            Ok(Box::new(shown).into())
        }
        KeyCommand::Rotate { key, grace } => {
            must_be_confirmed(context, &key).await?;
            let until = grace.map(|grace| format!("until {}", now.plus(grace)));
            let until = until.as_deref().unwrap_or("until the next rotation");
            let note =
                format!("the secret is shown only once; the previous one stays valid {until}, an older one has ended");
            new(registry.rotate_key(&key, grace, origin).await?, note)
        }
        KeyCommand::EndOld { key } => {
            must_be_confirmed(context, &key).await?;
            let row = show(context, &key).await?;
            if row.live_secrets != 2 {
                return Err(refusal(format!("the key `{key}` has no older secret")));
            }
            change(context, origin, &key, |row| row.secrets.truncate(1)).await
        }
        KeyCommand::Expire { key, at } => {
            let end = judge_end(Some(at), now).map_err(|error| error.at("at"))?;
            change(context, origin, &key, |row| row.expires_at = end).await
        }
        KeyCommand::Suspend { key } => {
            change(context, origin, &key, |row| row.suspended_at = row.suspended_at.or(Some(now))).await
        }
        KeyCommand::Resume { key } => change(context, origin, &key, |row| row.suspended_at = None).await,
        KeyCommand::Label { key, labels } => {
            change_labels(&mut registry.key(&key).await?.labels, &labels)?;
            change(context, origin, &key, |row| drop(change_labels(&mut row.labels, &labels))).await
        }
        KeyCommand::Confirm { keys, all } => confirm(context, origin, keys, all).await,
        KeyCommand::Revoke { key } => {
            let made = describe_act(registry.revoke_key(&key, origin).await?);
            Ok(RevokedKeyAnswer { key_id: key, state: KeyState::Revoked, made }.into())
        }
    }
}

pub(super) fn describe_new_key(expires_at: Option<Timestamp>) -> String {
    let end = expires_at.map_or_else(|| "does not end by itself".to_owned(), |end| format!("ends at {end}"));
    format!("the secret is shown only once; the key {end}")
}

async fn change(
    context: &OperatorContext,
    origin: &Origin,
    key: &str,
    edit: impl FnMut(&mut KeyRow) + Send,
) -> CommandAnswer {
    must_be_confirmed(context, key).await?;
    if show(context, key).await?.state == KeyState::Revoked {
        return Err(refusal(format!("the key `{key}` is revoked; create another for its application")));
    }
    let made = Some(describe_act(context.registry.change_key(key, origin, edit).await?));
    Ok(Box::new(KeyAnswer { made, ..show(context, key).await? }).into())
}

async fn confirm(context: &OperatorContext, origin: &Origin, keys: Vec<String>, all: bool) -> CommandAnswer {
    let registry = &context.registry;
    let keys = if all { context.store.keys_to_confirm().await? } else { keys };
    for key in &keys {
        registry.key(key).await?;
    }
    registry.wait_for_lease().await?;
    let confirmed = || Changes::of("state", "unconfirmed", "live");
    let acts = keys.iter().map(|key| registry.act(origin, Some(key), confirmed()));
    let acts = acts.collect::<Result<Vec<_>, _>>()?;
    let act_ids: HashMap<_, _> = keys.iter().cloned().zip(acts.iter().map(|act| act.id.clone())).collect();
    context.store.confirm_keys(keys.clone(), acts).await?;
    registry.reload_keys().await?;
    let mut rows = list(context, &KeyQuery::default(), |key| keys.contains(&key.id)).await?;
    for row in &mut rows {
        let act_id = act_ids.get(&row.key_id).cloned();
        row.made = act_id.map(|act_id| ActMade { act_id, note: None });
    }
    Ok(rows.into())
}

pub(super) fn judge_end(end: Option<KeyEnd>, now: Timestamp) -> Result<Option<Timestamp>, OperatorError> {
    match end.and_then(|end| end.moment(now)) {
        Some(end) if end <= now => Err(refusal(format!("the end of a key must be in the future, and {end} is not"))),
        end => Ok(end),
    }
}

async fn must_be_confirmed(context: &OperatorContext, key: &str) -> Result<(), OperatorError> {
    match context.store.keys_to_confirm().await?.iter().any(|off| off == key) {
        true => Err(refusal(format!("the key `{key}` has been off since a restore; `key confirm {key}` turns it on"))),
        false => Ok(()),
    }
}

pub(super) async fn show(context: &OperatorContext, key: &str) -> Result<KeyAnswer, OperatorError> {
    let rows = [context.registry.key(key).await?];
    let facts = KeyFacts::read(context, Some(&rows)).await?;
    let owner = context.registry.find(&rows[0].application).await?;
    Ok(facts.describe(&rows[0], ApplicationName { name: owner.name, deleted_at: owner.deleted_at }))
}

pub(super) async fn list(
    context: &OperatorContext,
    query: &KeyQuery,
    shows: impl Fn(&KeyRow) -> bool,
) -> Result<Vec<KeyAnswer>, OperatorError> {
    let (names, facts) = (names(context).await, KeyFacts::read(context, None).await?);
    let keys = context.registry.keys(shows).await;
    let keys = keys.iter().map(|key| facts.describe(key, name_application(&names, &key.application)));
    Ok(keys.filter(|key| facts.selects(query, key)).collect())
}
