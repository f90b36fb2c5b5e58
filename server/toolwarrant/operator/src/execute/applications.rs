//! Commands about applications.

use super::acts;
use super::answer::{Answer, add_act, change_labels, describe_name, refusal};
use super::keys::KeyFacts;
use crate::cli::resources;
use crate::command::AppCommand;
use crate::context::OperatorContext;
use serde_json::{Value, json};
use std::collections::HashMap;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::act::Origin;
use toolwarrant_core::registry::{Changed, NewApplication};
use toolwarrant_core::store::ApplicationRow;

pub(super) async fn execute(context: &OperatorContext, origin: &Origin, command: AppCommand) -> Answer {
    let (registry, now) = (&context.registry, context.clock.latest());
    let id = match command.app() {
        Some(app) => registry.find(app).await?.id,
        None => String::new(),
    };
    let change = async |edit: &mut (dyn FnMut(&mut ApplicationRow) + Send)| {
        show_changed(context, registry.change(&id, origin, edit).await?).await
    };
    match command {
        AppCommand::Create { name, permissions, requests_per_minute } => {
            let requests_per_minute = requests_per_minute.unwrap_or(context.catalogue.service.requests_per_minute);
            let grants = Grants::nothing();
            let new = NewApplication { name, permissions, grants, requests_per_minute };
            show_changed(context, registry.create(new, origin).await?).await
        }
        AppCommand::Rename { app: _, name } => change(&mut |row| row.name.clone_from(&name)).await,
        AppCommand::List { labels, deleted } => {
            let mut live_keys: HashMap<String, usize> = HashMap::new();
            for key in registry.keys(|key| !key.secrets.is_empty()).await {
                *live_keys.entry(key.application).or_default() += 1;
            }
            let line = |row: ApplicationRow| {
                let live = live_keys.get(&row.id).copied().unwrap_or_default();
                let mut line = describe_application(context, &row, count_terms);
                line["live_keys"] = json!(live);
                line["requests_per_minute"] = json!(row.requests_per_minute);
                line
            };
            let has = |row: &ApplicationRow| labels.iter().all(|(name, text)| row.labels.get(name) == Some(text));
            let rows = registry.applications().await.into_iter();
            Ok(rows.filter(|row| row.deleted_at.is_some() == deleted && has(row)).map(line).collect())
        }
        AppCommand::Show { app } => {
            let mut shown = show(context, &app).await?;
            shown["latest_acts"] = acts::latest_on(context, shown["id"].as_str().unwrap_or_default()).await?;
            Ok(shown)
        }
        AppCommand::Grant { app: _, permissions } => {
            let grant = &mut |row: &mut ApplicationRow| {
                row.permissions.extend_from_slice(&permissions);
                row.permissions.sort_unstable();
                row.permissions.dedup();
            };
            change(grant).await
        }
        AppCommand::Revoke { app, permissions } => {
            let row = registry.find(&app).await?;
            if let Some(absent) = permissions.iter().find(|permission| !row.permissions.contains(permission)) {
                let held =
                    if row.permissions.is_empty() { "no permissions".to_owned() } else { row.permissions.join(", ") };
                return Err(refusal(format!("`{app}` was not granted `{absent}`; it has {held}")));
            }
            change(&mut |row| row.permissions.retain(|held| !permissions.contains(held))).await
        }
        AppCommand::Suspend { .. } => change(&mut |row| row.suspended_at = row.suspended_at.or(Some(now))).await,
        AppCommand::Resume { .. } => change(&mut |row| row.suspended_at = None).await,
        AppCommand::Delete { .. } => change(&mut |row| row.delete(now)).await,
        AppCommand::Rate { app: _, requests_per_minute } => {
            change(&mut |row| row.requests_per_minute = requests_per_minute).await
        }
        AppCommand::Label { app, labels } => {
            change_labels(&mut registry.find(&app).await?.labels, &labels)?;
            // The labels may differ by the time of the change, so it does not replace them.
            change(&mut |row| drop(change_labels(&mut row.labels, &labels))).await
        }
    }
}

/// Shows a changed application with the id of the act.
pub(super) async fn show_changed(context: &OperatorContext, changed: Changed) -> Answer {
    Ok(add_act(show(context, &changed.object).await?, changed))
}

/// Shows an application, found by its name or id.
pub(super) async fn show(context: &OperatorContext, name: &str) -> Answer {
    let row = context.registry.find(name).await?;
    let keys = context.registry.keys(|key| key.application == row.id).await;
    let facts = KeyFacts::read(context, Some(&keys)).await?;
    let keys: Vec<_> = keys.iter().map(|key| facts.describe(key, &row.name)).collect();
    let mut answer = describe_application(context, &row, |terms| json!(terms));
    answer["requests_per_minute"] = json!(row.requests_per_minute);
    answer["created_at"] = json!(row.created_at);
    answer["keys"] = json!(keys);
    Ok(answer)
}

/// Returns the number of ids in a grant, or its prefixes with the numbers of other ids and of
/// exceptions.
fn count_terms(terms: Vec<String>) -> Value {
    let (rules, ids): (Vec<_>, Vec<_>) =
        terms.into_iter().partition(|term| term.ends_with('*') || term.starts_with('!'));
    let (except, mut shown): (Vec<_>, Vec<_>) = rules.into_iter().partition(|term| term.starts_with('!'));
    if shown.is_empty() {
        return json!(ids.len());
    }
    shown.extend((!ids.is_empty()).then(|| format!("{} more", ids.len())));
    shown.extend((!except.is_empty()).then(|| format!("except {}", except.len())));
    json!(shown.join(", "))
}

/// Returns an application with its targets, by the plural of each resource; `all` stands for every
/// target.
fn describe_application(context: &OperatorContext, row: &ApplicationRow, show: impl Fn(Vec<String>) -> Value) -> Value {
    let name = describe_name(row.name.clone(), row.deleted_at);
    let mut shown = json!({"name": name, "id": row.id, "permissions": row.permissions});
    shown["suspended_at"] = json!(row.suspended_at);
    shown["labels"] = json!(row.labels);
    for resource in resources(context.catalogue) {
        shown[format!("{resource}s")] = match row.grants.of(resource) {
            Some(all) if all.is_all() => json!("all"),
            granted => show(granted.map(Granted::terms).unwrap_or_default()),
        };
    }
    shown
}
