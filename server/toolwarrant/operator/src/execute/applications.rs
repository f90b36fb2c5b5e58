//! Commands about applications.

use super::keys::KeyAnswer;
use super::{Answer, answer, owed, refused};
use crate::cli::resources;
use crate::command::AppCommand;
use crate::context::OperatorContext;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::registry::NewApplication;
use toolwarrant_core::store::ApplicationRow;

/// An application in a list.
#[derive(Serialize)]
struct ApplicationLine {
    name: String,
    id: String,
    permissions: Vec<String>,
    /// The number of targets that it sees, or `all`, by the plural of each resource.
    #[serde(flatten)]
    sees: Map<String, Value>,
    live_keys: usize,
    requests_per_minute: u32,
}

/// An application in detail.
#[derive(Serialize)]
struct ApplicationAnswer {
    name: String,
    id: String,
    permissions: Vec<String>,
    /// The ids of the targets that it sees, or `all`, by the plural of each resource.
    #[serde(flatten)]
    sees: Map<String, Value>,
    requests_per_minute: u32,
    created_at: Timestamp,
    keys: Vec<KeyAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub(super) async fn execute(context: &OperatorContext, command: AppCommand) -> Answer {
    let registry = &context.registry;
    match command {
        AppCommand::Create { name, permissions, requests_per_minute } => {
            let requests_per_minute = requests_per_minute.unwrap_or(context.catalogue.service.requests_per_minute);
            let grants = Grants::nothing();
            let new = NewApplication { name: name.clone(), permissions, grants, requests_per_minute };
            registry.create(new).await?;
            show(context, &name, None).await
        }
        AppCommand::Rename { app, name } => {
            let id = registry.find(&app).await?.id;
            let note = owed(registry.change(&id, |row| row.name = name).await?);
            show(context, &id, note).await
        }
        AppCommand::List => {
            let keys = registry.keys().await;
            let line = |row: ApplicationRow| {
                let live = keys.iter().filter(|key| key.application == row.id && !key.secrets.is_empty()).count();
                let sees = sees(context, &row, |ids| json!(ids.len()));
                let ApplicationRow { id, name, permissions, requests_per_minute, grants: _, created_at: _ } = row;
                ApplicationLine { name, id, permissions, sees, live_keys: live, requests_per_minute }
            };
            answer(registry.applications().await.into_iter().map(line).collect::<Vec<_>>())
        }
        AppCommand::Show { app } => show(context, &app, None).await,
        AppCommand::Grant { app, permissions } => {
            let id = registry.find(&app).await?.id;
            let grant = |row: &mut ApplicationRow| {
                row.permissions.extend(permissions);
                row.permissions.sort_unstable();
                row.permissions.dedup();
            };
            let note = owed(registry.change(&id, grant).await?);
            show(context, &app, note).await
        }
        AppCommand::Revoke { app, permissions } => {
            let row = registry.find(&app).await?;
            if let Some(absent) = permissions.iter().find(|permission| !row.permissions.contains(permission)) {
                return Err(refused(format!(
                    "`{app}` was not granted `{absent}`; it has {}",
                    row.permissions.join(", ")
                )));
            }
            let kept =
                registry.change(&row.id, |row| row.permissions.retain(|held| !permissions.contains(held))).await?;
            show(context, &app, owed(kept)).await
        }
    }
}

/// Shows an application, which is found by its name or id, and a note about it.
pub(super) async fn show(context: &OperatorContext, name: &str, note: Option<String>) -> Answer {
    let row = context.registry.find(name).await?;
    let keys = context.registry.keys().await;
    let keys = keys.iter().filter(|key| key.application == row.id);
    let (off, now) = (context.store.unconfirmed_keys().await?, context.clock.latest());
    let keys = keys.map(|key| KeyAnswer::of(key, &row.name, &off, now)).collect();
    let sees = sees(context, &row, |ids| json!(ids));
    let ApplicationRow { id, name, permissions, requests_per_minute, grants: _, created_at } = row;
    answer(ApplicationAnswer { name, id, permissions, sees, requests_per_minute, created_at, keys, note })
}

/// The targets that an application sees, by the plural of each resource.
fn sees(
    context: &OperatorContext,
    row: &ApplicationRow,
    show: impl Fn(&BTreeSet<Box<str>>) -> Value,
) -> Map<String, Value> {
    let of = |resource| match row.grants.of(resource) {
        Some(Granted::All) => json!("all"),
        Some(Granted::Some(ids)) => show(ids),
        None => show(&BTreeSet::new()),
    };
    resources(context.catalogue).into_iter().map(|resource| (format!("{resource}s"), of(resource))).collect()
}
