//! Commands about targets. They are the same for each resource of the contract.

use super::answer::{Answer, pending_note, refusal};
use super::applications;
use crate::cli::resources;
use crate::command::TargetCommand;
use crate::context::{Item, OperatorContext, OperatorError};
use crate::flags::ALL;
use serde_json::{Value, json};
use toolwarrant_core::access::Granted;
use toolwarrant_core::registry::Durability;
use toolwarrant_core::store::ApplicationRow;

pub(super) async fn execute(context: &OperatorContext, resource: &str, command: TargetCommand) -> Answer {
    let declared = resources(context.catalogue).into_iter().find(|declared| *declared == resource);
    let resource = declared.ok_or_else(|| refusal(format!("this service has no {resource}")))?;
    match command {
        TargetCommand::List { after, limit } => list(context, resource, after.as_deref(), limit).await,
        TargetCommand::Assign { app, ids, all } => {
            must_exist(context, resource, &ids).await?;
            let id = context.registry.find(&app).await?.id;
            let assign = |granted: &mut Granted| match granted {
                granted if all => *granted = Granted::All,
                Granted::Some(known) => known.extend(ids.into_iter().map(Box::from)),
                Granted::All => {}
            };
            let unchecked = context.inventory.is_none() && !all;
            let note = pending_note(change(context, &id, resource, assign).await?);
            let why = || format!("this service cannot list its {resource}s, so nothing checked that these exist");
            applications::show(context, &app, note.or_else(|| unchecked.then(why))).await
        }
        TargetCommand::Unassign { app, ids, all } => {
            let row = context.registry.find(&app).await?;
            match row.grants.of(resource) {
                _ if all => {}
                Some(Granted::All) => {
                    let why = format!(
                        "`{app}` sees all {resource}s; unassign --{ALL} first, then assign those that it may see"
                    );
                    return Err(refusal(why));
                }
                granted => {
                    let known = |id: &&String| granted.is_some_and(|granted| granted.covers(id));
                    if let Some(absent) = ids.iter().find(|id| !known(id)) {
                        return Err(refusal(format!("`{absent}` is not assigned to `{app}`")));
                    }
                }
            }
            let unassign = |granted: &mut Granted| match granted {
                Granted::Some(known) if !all => known.retain(|id| !ids.iter().any(|gone| **gone == **id)),
                granted => *granted = Granted::some([]),
            };
            let note = pending_note(change(context, &row.id, resource, unassign).await?);
            applications::show(context, &app, note).await
        }
    }
}

/// Changes which targets of one resource an application sees. Its targets of other resources stay
/// the same.
async fn change(
    context: &OperatorContext,
    id: &str,
    resource: &str,
    edit: impl FnOnce(&mut Granted),
) -> Result<Durability, OperatorError> {
    let all = resources(context.catalogue);
    let edit = |row: &mut ApplicationRow| {
        edit(row.grants.spell_out(all).entry(resource.into()).or_insert_with(|| Granted::some([])));
    };
    Ok(context.registry.change(id, edit).await?)
}

async fn list(context: &OperatorContext, resource: &'static str, after: Option<&str>, limit: u16) -> Answer {
    let inventory = context.inventory.as_ref();
    let inventory = inventory.ok_or_else(|| refusal(format!("this service cannot list its {resource}s")))?;
    let items = inventory.page(resource, after, limit).await.map_err(refusal)?;
    let applications = context.registry.applications().await;
    let line = |Item { id, mut shown }: Item| {
        let sees = |row: &&ApplicationRow| row.grants.covers(resource, &id);
        let seen_by: Vec<_> = applications.iter().filter(sees).map(|row| row.name.as_str()).collect();
        shown.insert("applications".to_owned(), json!(seen_by));
        Value::Object(shown)
    };
    Ok(items.into_iter().map(line).collect())
}

/// Refuses ids that are not valid or, if the service can list its resources, do not exist.
async fn must_exist(context: &OperatorContext, resource: &'static str, ids: &[String]) -> Result<(), OperatorError> {
    let can_be = |id: &&String| context.catalogue.resource(resource).is_some_and(|def| (def.admits)(id));
    if let Some(id) = ids.iter().find(|id| !can_be(id)) {
        return Err(refusal(format!("{id:?} is not a valid {resource} id")));
    }
    let Some(inventory) = &context.inventory else { return Ok(()) };
    match inventory.missing(resource, ids).await.map_err(refusal)? {
        Some(absent) => {
            let program = context.names.program;
            Err(refusal(format!(
                "there is no {resource} `{absent}`; `{program} {resource} list` shows the existing ones"
            )))
        }
        None => Ok(()),
    }
}
