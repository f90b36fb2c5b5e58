//! What tools act on, and which applications see it: the same commands for each resource.

use super::{Answer, applications, refused};
use crate::cli::resources;
use crate::command::TargetCommand;
use crate::context::{Item, OperatorContext, OperatorError};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolwarrant_core::store::ApplicationRow;

pub(super) async fn execute(context: &OperatorContext, resource: &str, command: TargetCommand) -> Answer {
    let known = resources(context.catalogue).into_iter().find(|known| *known == resource);
    let resource = known.ok_or_else(|| refused(format!("this service has no {resource}")))?;
    match command {
        TargetCommand::List { after, limit } => list(context, resource, after.as_deref(), limit).await,
        TargetCommand::Assign { app, ids, all } => {
            must_exist(context, resource, &ids).await?;
            let id = context.registry.find(&app).await?.id;
            let assign = |row: &mut ApplicationRow| match &mut row.grants {
                grants if all => *grants = None,
                Some(grants) => grants.extend(ids),
                None => {}
            };
            context.registry.change(&id, assign).await?;
            applications::show(context, &app).await
        }
        TargetCommand::Unassign { app, ids, all } => {
            let row = context.registry.find(&app).await?;
            let Some(grants) = row.grants.filter(|_| !all) else {
                if !all {
                    let why = format!(
                        "`{app}` sees all {resource}s; unassign --all first, then assign those that it may see"
                    );
                    return Err(refused(why));
                }
                context.registry.change(&row.id, |row| row.grants = Some(BTreeSet::new())).await?;
                return applications::show(context, &app).await;
            };
            if let Some(absent) = ids.iter().find(|id| !grants.contains(*id)) {
                return Err(refused(format!("`{absent}` is not assigned to `{app}`")));
            }
            let unassign = |row: &mut ApplicationRow| {
                row.grants.iter_mut().for_each(|grants| grants.retain(|id| !ids.contains(id)));
            };
            context.registry.change(&row.id, unassign).await?;
            applications::show(context, &app).await
        }
    }
}

async fn list(context: &OperatorContext, resource: &'static str, after: Option<&str>, limit: u16) -> Answer {
    let inventory = context.inventory.as_ref();
    let inventory = inventory.ok_or_else(|| refused(format!("this service cannot list its {resource}s")))?;
    let items = inventory.page(resource, after, limit).await.map_err(refused)?;
    let applications = context.registry.applications().await;
    let line = |Item { id, mut shown }: Item| {
        let sees = |row: &&ApplicationRow| row.grants.as_ref().is_none_or(|ids| ids.contains(&id));
        let seen_by: Vec<_> = applications.iter().filter(sees).map(|row| row.name.as_str()).collect();
        shown.insert("applications".to_owned(), json!(seen_by));
        Value::Object(shown)
    };
    Ok(items.into_iter().map(line).collect())
}

/// Refuses ids of what there is not, as far as the service can tell.
async fn must_exist(context: &OperatorContext, resource: &'static str, ids: &[String]) -> Result<(), OperatorError> {
    let Some(inventory) = &context.inventory else { return Ok(()) };
    match inventory.missing(resource, ids).await.map_err(refused)? {
        Some(absent) => {
            let program = context.names.program;
            Err(refused(format!("there is no {resource} `{absent}`; `{program} {resource} list` shows what there is")))
        }
        None => Ok(()),
    }
}
