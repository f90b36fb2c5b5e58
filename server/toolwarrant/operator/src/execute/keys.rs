//! Commands about keys.

use super::answer::{Answer, add_note, answer, names, pending_note, refusal};
use crate::command::KeyCommand;
use crate::context::OperatorContext;
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::registry::NewKey;
use toolwarrant_core::store::KeyRow;

/// A key, without its secrets.
#[derive(Serialize)]
pub(crate) struct KeyAnswer {
    key_id: String,
    application: String,
    /// `live`, `expired`, `revoked` or, since a restore, `unconfirmed`.
    state: &'static str,
    live_secrets: usize,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
}

impl KeyAnswer {
    /// Describes a key from a backup. If it has secrets, it is off.
    pub(crate) fn from_backup(key: &KeyRow, application: &str, now: Timestamp) -> Self {
        let described = Self::of(key, application, &[], now);
        Self { state: if key.secrets.is_empty() { described.state } else { UNCONFIRMED }, live_secrets: 0, ..described }
    }

    /// Describes a key. `application` is the name of its application; `unconfirmed` are the keys
    /// that have been off since a restore.
    pub(super) fn of(key: &KeyRow, application: &str, unconfirmed: &[String], now: Timestamp) -> Self {
        let KeyRow { id, application: _, secrets, created_at, expires_at } = key;
        let state = match expires_at {
            _ if unconfirmed.contains(id) => UNCONFIRMED,
            _ if secrets.is_empty() => "revoked",
            Some(end) if *end <= now => "expired",
            _ => "live",
        };
        let (key_id, application, live_secrets) = (id.clone(), application.to_owned(), secrets.len());
        Self { key_id, application, state, live_secrets, created_at: *created_at, expires_at: *expires_at }
    }
}

/// The state of a key that has been off since a restore.
const UNCONFIRMED: &str = "unconfirmed";

pub(super) async fn execute(context: &OperatorContext, command: KeyCommand) -> Answer {
    let registry = &context.registry;
    let new = |NewKey { key_id, secret }: &NewKey, note: &str| {
        Ok(json!({"key_id": key_id, "secret": secret.expose(), "note": note}))
    };
    match command {
        KeyCommand::Create { app, expires } => {
            let expires_at = expires.map(|days| context.clock.now().plus(Duration::from_hours(24 * u64::from(days))));
            let id = registry.find(&app).await?.id;
            new(&registry.issue_key(&id, expires_at).await?, "the secret is shown only once")
        }
        KeyCommand::List { app } => {
            let only = match &app {
                Some(app) => Some(registry.find(app).await?.id),
                None => None,
            };
            let off = context.store.keys_to_confirm().await?;
            list(context, &off, |key| only.as_ref().is_none_or(|id| key.application == *id)).await
        }
        KeyCommand::Rotate { key } => {
            if context.store.keys_to_confirm().await?.contains(&key) {
                return Err(refusal(format!(
                    "the key `{key}` has been off since a restore; `key confirm {key}` turns it on"
                )));
            }
            let note = "the secret is shown only once; the previous one stays valid until the next rotation, an older one has ended";
            new(&registry.rotate_key(&key).await?, note)
        }
        KeyCommand::Confirm { keys, all } => {
            let keys = if all { context.store.keys_to_confirm().await? } else { keys };
            context.store.confirm_keys(keys.clone()).await?;
            registry.reload_keys().await?;
            list(context, &[], |key| keys.contains(&key.id)).await
        }
        KeyCommand::Revoke { key } => {
            let note = pending_note(registry.revoke_key(&key).await?);
            Ok(add_note(json!({"key_id": key, "state": "revoked"}), note))
        }
    }
}

/// Lists the keys for which `shows` returns true. `off` are the keys that have been off since a
/// restore.
async fn list(context: &OperatorContext, off: &[String], shows: impl Fn(&KeyRow) -> bool) -> Answer {
    let (names, now) = (names(context).await, context.clock.latest());
    let name = |key: &KeyRow| names.get(&key.application).map_or("", String::as_str);
    let keys = context.registry.keys().await;
    let keys = keys.iter().filter(|key| shows(key));
    answer(keys.map(|key| KeyAnswer::of(key, name(key), off, now)).collect::<Vec<_>>())
}
