//! Commands about applications.

use super::answer::{Answer, add_note, pending_note, refusal};
use super::keys::KeyAnswer;
use crate::cli::resources;
use crate::command::AppCommand;
use crate::context::OperatorContext;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::registry::NewApplication;
use toolwarrant_core::store::ApplicationRow;

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
            let note = pending_note(registry.change(&id, |row| row.name = name).await?);
            show(context, &id, note).await
        }
        AppCommand::List => {
            let keys = registry.keys().await;
            let line = |row: ApplicationRow| {
                let live = keys.iter().filter(|key| key.application == row.id && !key.secrets.is_empty()).count();
                let mut line = describe_application(context, &row, |ids| json!(ids.len()));
                line["live_keys"] = json!(live);
                line["requests_per_minute"] = json!(row.requests_per_minute);
                line
            };
            Ok(registry.applications().await.into_iter().map(line).collect())
        }
        AppCommand::Show { app } => show(context, &app, None).await,
        AppCommand::Grant { app, permissions } => {
            let id = registry.find(&app).await?.id;
            let grant = |row: &mut ApplicationRow| {
                row.permissions.extend(permissions);
                row.permissions.sort_unstable();
                row.permissions.dedup();
            };
            let note = pending_note(registry.change(&id, grant).await?);
            show(context, &app, note).await
        }
        AppCommand::Revoke { app, permissions } => {
            let row = registry.find(&app).await?;
            if let Some(absent) = permissions.iter().find(|permission| !row.permissions.contains(permission)) {
                return Err(refusal(format!(
                    "`{app}` was not granted `{absent}`; it has {}",
                    row.permissions.join(", ")
                )));
            }
            let kept =
                registry.change(&row.id, |row| row.permissions.retain(|held| !permissions.contains(held))).await?;
            show(context, &app, pending_note(kept)).await
        }
    }
}

/// Shows an application, found by its name or id, and a note about it.
pub(super) async fn show(context: &OperatorContext, name: &str, note: Option<String>) -> Answer {
    let row = context.registry.find(name).await?;
    let keys = context.registry.keys().await;
    let keys = keys.iter().filter(|key| key.application == row.id);
    let (off, now) = (context.store.keys_to_confirm().await?, context.clock.latest());
    let keys: Vec<_> = keys.map(|key| KeyAnswer::of(key, &row.name, &off, now)).collect();
    let mut answer = describe_application(context, &row, |ids| json!(ids));
    answer["requests_per_minute"] = json!(row.requests_per_minute);
    answer["created_at"] = json!(row.created_at);
    answer["keys"] = json!(keys);
    Ok(add_note(answer, note))
}

/// Returns an application with its targets, by the plural of each resource; `all` stands for every
/// target.
fn describe_application(
    context: &OperatorContext,
    row: &ApplicationRow,
    show: impl Fn(&BTreeSet<Box<str>>) -> Value,
) -> Value {
    let mut shown = json!({"name": row.name, "id": row.id, "permissions": row.permissions});
    for resource in resources(context.catalogue) {
        shown[format!("{resource}s")] = match row.grants.of(resource) {
            Some(Granted::All) => json!("all"),
            Some(Granted::Some(ids)) => show(ids),
            None => show(&BTreeSet::new()),
        };
    }
    shown
}
