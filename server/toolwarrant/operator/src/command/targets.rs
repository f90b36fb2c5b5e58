//! Commands about targets. They are the same for each resource of the contract.

use super::answer::{CommandAnswer, find_application, refusal};
use super::applications;
use super::grants::{must_exist, read_terms};
use crate::answers::{ApplicationAnswer, StateCounts, TargetRow};
use crate::context::{Item, OperatorContext};
use crate::error::OperatorError;
use crate::flags;
use crate::unreadable::UnreadableSince;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use toolwarrant_core::access::Granted;
use toolwarrant_core::act::Origin;
use toolwarrant_core::catalogue::ResourceDef;
use toolwarrant_core::store::ApplicationRow;

/// Commands about the targets of one resource of the contract.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetCommand {
    /// List {targets}, and which applications see each
    List(TargetQuery),
    /// Count {targets} by their states, by what they offer at present, and by the beginnings of
    /// their ids, where an upstream has one
    States {
        /// Only {targets} that this application sees
        #[arg(long, value_name = "APP")]
        app: Option<String>,
        /// Only {targets} whose ids begin so
        #[arg(long, value_name = "PREFIX", default_value = "")]
        prefix: String,
    },
    /// Let an application see {targets}
    Assign {
        /// The application's name or id
        app: String,
        /// The {targets}
        #[arg(value_name = "{TARGET}", required_unless_present_any = ["all", "prefixes"])]
        ids: Vec<String>,
        /// Every {target}, including future ones
        #[arg(long = flags::ALL, conflicts_with = "ids")]
        all: bool,
        /// Every {target} whose id begins so, including future ones; may be repeated
        #[arg(long = "prefix", value_name = "PREFIX", conflicts_with = "all")]
        #[serde(default)]
        prefixes: Vec<String>,
    },
    /// Hide {targets} from an application, also single ones of those that it sees by --all or
    /// --prefix
    Unassign {
        /// The application's name or id
        app: String,
        /// The {targets}
        #[arg(value_name = "{TARGET}", required_unless_present_any = ["all", "prefixes"])]
        ids: Vec<String>,
        /// Every {target}
        #[arg(long = flags::ALL, conflicts_with = "ids")]
        all: bool,
        /// Every {target} whose id begins so; may be repeated
        #[arg(long = "prefix", value_name = "PREFIX", conflicts_with = "all")]
        #[serde(default)]
        prefixes: Vec<String>,
    },
    /// Let an application see exactly these {targets}, in one step
    Set {
        /// The application's name or id
        app: String,
        /// `*` for all, `abc*` for all whose ids begin so, an id, or `!` and an id for an
        /// exception; without one, it sees none
        #[arg(value_name = "TERM")]
        terms: Vec<String>,
    },
}

/// Selects targets.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetQuery {
    /// Only {targets} that this application sees
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Only {targets} whose ids begin so
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Only {targets} whose list has this text in a field, such as a name
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub text: Option<String>,
    /// Only {targets} in this state
    #[arg(long, value_name = "STATE")]
    pub state: Option<String>,
    /// Only {targets} that offer this at present
    #[arg(long, value_name = "CAPABILITY")]
    pub offers: Option<String>,
    /// Only {targets} after this one
    #[arg(long, value_name = "{TARGET}")]
    pub after: Option<String>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u16,
}

pub(super) async fn execute(
    context: &OperatorContext,
    origin: &Origin,
    resource: &str,
    command: TargetCommand,
) -> CommandAnswer {
    let Some(def) = context.program.catalogue.resource(resource) else {
        return Err(refusal(format!("this service has no {resource}")));
    };
    match command {
        TargetCommand::List(query) => Ok(list(context, def, query).await?.into()),
        TargetCommand::States { app, prefix } => Ok(count_states(context, def, app, prefix).await?.into()),
        TargetCommand::Assign { app, ids, all, prefixes } => {
            must_exist(context, def, &ids).await?;
            let prefixes = check_prefixes(def, prefixes, all)?;
            let assign = |held: &mut Granted| {
                prefixes.iter().for_each(|prefix| held.add_prefix(prefix));
                ids.iter().for_each(|id| held.add(id));
            };
            let mut shown = change(context, origin, &app, resource, assign).await?;
            if let (None, false, Some(made)) = (&context.inventory, ids.is_empty(), &mut shown.made) {
                let why = || format!("this service cannot list its {resource}s, so nothing checked that these exist");
                made.note.get_or_insert_with(why);
            }
            Ok(shown.into())
        }
        TargetCommand::Set { app, terms } => {
            let wanted = read_terms(def, &terms).map_err(refusal)?;
            let ids: Vec<_> = wanted.ids().iter().chain(wanted.exceptions()).map(|id| id.to_string()).collect();
            must_exist(context, def, &ids).await?;
            Ok(change(context, origin, &app, resource, |held| *held = wanted).await?.into())
        }
        TargetCommand::Unassign { app, ids, all, prefixes } => {
            let prefixes = check_prefixes(def, prefixes, all)?;
            let row = context.registry.find(&app).await?;
            let mut held = row.grants.of(resource).cloned().unwrap_or_default();
            if let Some(absent) = ids.iter().find(|id| !held.covers(id)) {
                return Err(refusal(format!("`{absent}` is not assigned to `{app}`")));
            }
            ids.iter().for_each(|id| held.remove(id));
            for prefix in &prefixes {
                if !held.meets(prefix) && !prefix.is_empty() {
                    return Err(refusal(format!("no {resource} that begins with `{prefix}` is assigned to `{app}`")));
                }
                if !held.remove_prefix(prefix) {
                    let terms = held.terms().join(", ");
                    return Err(refusal(format!(
                        "`{app}` sees {terms}, which is more than `{prefix}`, and only single {resource}s can be excepted from it; \
                         `{resource} set` grants exactly what you name"
                    )));
                }
            }
            // Another command may change the grant after the checks, so it is not replaced.
            let unassign = |held: &mut Granted| {
                ids.iter().for_each(|id| held.remove(id));
                prefixes.iter().for_each(|prefix| _ = held.remove_prefix(prefix));
            };
            Ok(change(context, origin, &row.id, resource, unassign).await?.into())
        }
    }
}

fn check_prefixes(def: &ResourceDef, prefixes: Vec<String>, all: bool) -> Result<Vec<String>, OperatorError> {
    match prefixes.iter().find(|prefix| prefix.is_empty() || !def.ids.can_begin(prefix)) {
        Some(prefix) if prefix.is_empty() => Err(refusal(format!("a prefix is empty; --all means every {}", def.name))),
        Some(prefix) => Err(refusal(format!("no {} id can begin with {prefix:?}", def.name))),
        None if all => Ok(vec![String::new()]),
        None => Ok(prefixes),
    }
}

async fn change(
    context: &OperatorContext,
    origin: &Origin,
    app: &str,
    resource: &str,
    edit: impl FnOnce(&mut Granted) + Send,
) -> Result<Box<ApplicationAnswer>, OperatorError> {
    let all = context.program.catalogue.resource_names();
    let edit = |row: &mut ApplicationRow| edit(row.grants.spell_out(all).entry(resource.into()).or_default());
    applications::change_and_show(context, origin, app, edit).await
}

pub(super) async fn count_states(
    context: &OperatorContext,
    def: &'static ResourceDef,
    app: Option<String>,
    prefix: String,
) -> Result<StateCounts, OperatorError> {
    let prefixes = context.server.iter().flat_map(|server| server.prefixes()).map(|begin| (begin, 0)).collect();
    let [states, offers] = [def.states, def.capabilities].map(|names| names.iter().map(|name| (*name, 0)).collect());
    let of_app = find_application(context, app.as_deref()).await?;
    let none = StateCounts { count: 0, states, offers, prefixes };
    let counts = visit_states(context, def, none, move |counts, id, state, flags| {
        if !of_app.iter().all(|row| row.grants.covers(def.name, id)) {
            return;
        }
        let of_prefixes = counts.prefixes.iter_mut().filter(|(begin, _)| id.starts_with(begin.as_str()));
        of_prefixes.for_each(|(_, count)| *count += 1);
        if id.starts_with(&prefix) {
            counts.count += 1;
            *counts.states.entry(state).or_default() += 1;
            list_offered(def, flags).for_each(|name| *counts.offers.entry(name).or_default() += 1);
        }
    });
    counts.await
}

/// Returns `made` after `add` has seen all targets, on a thread that may block.
async fn visit_states<T: Send + 'static>(
    context: &OperatorContext,
    def: &'static ResourceDef,
    mut made: T,
    mut add: impl FnMut(&mut T, &str, &'static str, &[bool]) + Send + 'static,
) -> Result<T, OperatorError> {
    let Some(inventory) = context.inventory.clone() else { return Err(no_list(def.name)) };
    let visited = spawn_blocking(move || {
        let reader = inventory.states();
        let reader = reader.ok_or_else(|| format!("this service does not know the states of its {}s", def.name))?;
        reader.visit(def.name, &mut |id, state, flags| add(&mut made, id, state, flags))?;
        Ok::<_, String>(made)
    });
    visited.await.map_err(|error| refusal(error.to_string()))?.map_err(refusal)
}

fn list_offered<'a>(def: &'static ResourceDef, flags: &'a [bool]) -> impl Iterator<Item = &'static str> + use<'a> {
    def.capabilities.iter().zip(flags).filter(|(_, flag)| **flag).map(|(name, _)| *name)
}

/// Returns the ids of the targets that are meant, or `None` if these are all.
async fn select(
    context: &OperatorContext,
    def: &'static ResourceDef,
    state: Option<String>,
    offers: Option<String>,
) -> Result<Option<HashSet<String>>, OperatorError> {
    let named = [("state", &state, def.states), ("capability", &offers, def.capabilities)];
    for (what, name, known) in named {
        if let Some(name) = name.as_deref().filter(|name| !known.contains(name)) {
            let (resource, known) = (def.name, if known.is_empty() { "none" } else { &known.join(", ") });
            return Err(refusal(format!("a {resource} has no {what} `{name}`; there are: {known}")));
        }
    }
    if state.is_none() && offers.is_none() {
        return Ok(None);
    }
    let select = move |ids: &mut HashSet<String>, id: &str, of: &str, flags: &[bool]| {
        let is_meant = state.as_deref().is_none_or(|state| state == of)
            && offers.as_deref().is_none_or(|name| list_offered(def, flags).any(|offered| offered == name));
        if is_meant {
            ids.insert(id.to_owned());
        }
    };
    visit_states(context, def, HashSet::new(), select).await.map(Some)
}

/// Returns since when this process has seen that each target cannot be read.
async fn find_unreadable(context: &OperatorContext, def: &'static ResourceDef) -> Arc<UnreadableSince> {
    let Some(unreadable) = def.unreadable else { return Arc::default() };
    let collect = move |ids: &mut HashSet<String>, id: &str, state: &str, _: &[bool]| {
        if state == unreadable {
            ids.insert(id.to_owned());
        }
    };
    let found = visit_states(context, def, HashSet::new(), collect).await;
    found.map(|ids| context.unreadable.note(def.name, ids, context.clock.latest())).unwrap_or_default()
}

/// Notes which targets cannot be read. Call it once a minute.
pub async fn note_unreadable(context: &OperatorContext) {
    for def in context.program.catalogue.resources {
        find_unreadable(context, def).await;
    }
}

fn no_list(resource: &str) -> OperatorError {
    refusal(format!("this service cannot list its {resource}s"))
}

async fn list(
    context: &OperatorContext,
    def: &'static ResourceDef,
    query: TargetQuery,
) -> Result<Vec<TargetRow>, OperatorError> {
    let TargetQuery { app, prefix, text, state, offers, after, limit } = query;
    let (resource, inventory) = (def.name, context.inventory.as_ref());
    let inventory = inventory.ok_or_else(|| no_list(resource))?;
    let of_app = find_application(context, app.as_deref()).await?;
    let prefix = prefix.unwrap_or_default();
    if !prefix.is_empty() {
        check_prefixes(def, vec![prefix.clone()], false)?;
    }
    let selected = select(context, def, state, offers).await?;
    let unreadable = find_unreadable(context, def).await;
    let applications = context.registry.applications().await;
    let mut rows = Vec::new();
    // The prefix without its last character is before all ids that begin with the prefix.
    let shorter = prefix.char_indices().next_back().map(|(end, _)| &prefix[..end]);
    let mut last = after.or(shorter.filter(|shorter| !shorter.is_empty()).map(str::to_owned));
    let text = text.unwrap_or_default().to_lowercase();
    let has_text = |shown: &Map<String, Value>| {
        text.is_empty() || shown.values().filter_map(Value::as_str).any(|field| field.to_lowercase().contains(&text))
    };
    let is_filtered = of_app.is_some() || selected.is_some() || !prefix.is_empty() || !text.is_empty();
    let chunk = if is_filtered { LIST_CHUNK } else { limit };
    loop {
        let items = inventory.page(resource, last.as_deref(), chunk).await.map_err(refusal)?;
        let ended = items.len() < usize::from(chunk);
        last = items.last().map(|item| item.id.clone());
        for Item { id, shown } in items {
            if rows.len() == usize::from(limit) || !prefix.is_empty() && *id > *prefix && !id.starts_with(&prefix) {
                return Ok(rows);
            }
            let sees = |row: &&ApplicationRow| row.grants.covers(resource, &id);
            let is_selected = selected.as_ref().is_none_or(|selected| selected.contains(&id)) && has_text(&shown);
            if !is_selected || !id.starts_with(&prefix) || !of_app.iter().all(|row| sees(&row)) {
                continue;
            }
            let applications = applications.iter().filter(sees).map(|row| row.name.clone()).collect();
            rows.push(TargetRow { resource, unreadable_since: unreadable.get(&id).copied(), id, shown, applications });
        }
        if ended || last.is_none() {
            return Ok(rows);
        }
    }
}

pub(super) async fn resources_with(context: &OperatorContext, id: &str) -> Vec<&'static str> {
    let Some(inventory) = &context.inventory else { return Vec::new() };
    let (ids, mut found) = ([id.to_owned()], Vec::new());
    for resource in context.program.catalogue.resource_names() {
        if matches!(inventory.missing(resource, &ids).await, Ok(None)) {
            found.push(resource);
        }
    }
    found
}

const LIST_CHUNK: u16 = 1_000;
