//! Commands about keys.

use super::{Answer, answer, names, owed};
use crate::command::KeyCommand;
use crate::context::OperatorContext;
use serde::Serialize;
use std::time::Duration;
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::registry::NewKey;
use toolwarrant_core::store::KeyRow;

/// A key, without its secrets.
#[derive(Serialize)]
pub(super) struct KeyAnswer {
    key_id: String,
    application: String,
    /// `live`, `expired` or `revoked`.
    state: &'static str,
    live_secrets: usize,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
}

/// A key that was created or rotated, with its new secret.
#[derive(Serialize)]
struct NewKeyAnswer<'a> {
    key_id: &'a str,
    secret: &'a str,
    note: &'a str,
}

/// A key that was revoked.
#[derive(Serialize)]
struct RevokedAnswer {
    key_id: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl KeyAnswer {
    /// Describes a key. `application` is the name of its application.
    pub(super) fn of(key: &KeyRow, application: &str, now: Timestamp) -> Self {
        let KeyRow { id, application: _, secrets, created_at, expires_at } = key;
        let state = match expires_at {
            _ if secrets.is_empty() => "revoked",
            Some(end) if *end <= now => "expired",
            _ => "live",
        };
        let (key_id, application, live_secrets) = (id.clone(), application.to_owned(), secrets.len());
        Self { key_id, application, state, live_secrets, created_at: *created_at, expires_at: *expires_at }
    }
}

pub(super) async fn execute(context: &OperatorContext, command: KeyCommand) -> Answer {
    let registry = &context.registry;
    let new = |NewKey { key_id, secret }: &NewKey, note| answer(NewKeyAnswer { key_id, secret: secret.expose(), note });
    match command {
        KeyCommand::Create { app, expires } => {
            let expires_at = expires.map(|days| context.clock.now().plus(Duration::from_hours(24 * u64::from(days))));
            let id = registry.find(&app).await?.id;
            new(&registry.issue_key(&id, expires_at).await?, "the secret is shown this once")
        }
        KeyCommand::List { app } => {
            let names = names(context).await;
            let only = match &app {
                Some(app) => Some(registry.find(app).await?.id),
                None => None,
            };
            let keys = registry.keys().await;
            let keys = keys.iter().filter(|key| only.as_ref().is_none_or(|id| key.application == *id));
            let name = |key: &KeyRow| names.get(&key.application).map_or("", String::as_str);
            answer(keys.map(|key| KeyAnswer::of(key, name(key), context.clock.latest())).collect::<Vec<_>>())
        }
        KeyCommand::Rotate { key } => new(
            &registry.rotate_key(&key).await?,
            "the secret is shown this once; the one before it lives until the next rotation, any older one has ended",
        ),
        KeyCommand::Revoke { key } => {
            let note = owed(registry.revoke_key(&key).await?);
            answer(RevokedAnswer { key_id: key, state: "revoked", note })
        }
    }
}
