//! Commands about applications.

use super::acts;
use super::answer::{CommandAnswer, change_labels, describe_act, parse_label, refusal};
use super::call;
use super::grants::read_grants;
use super::keys::{KeyFacts, describe_new_key, judge_end};
use crate::answers::{
    ActMade, ApplicationAnswer, ApplicationFacts, ApplicationName, ListedApplication, NewApplicationAnswer,
    NewKeyAnswer, SeenTargets,
};
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::flags;
use crate::when::KeyEnd;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use toolwarrant_core::access::Granted;
use toolwarrant_core::act::Origin;
use toolwarrant_core::registry::{Changed, NewApplication, NewKey, RegistryError};
use toolwarrant_core::store::ApplicationRow;

/// Commands about applications. All keys of an application share its permissions, {targets} and
/// budget.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AppCommand {
    /// Create an application; it sees no {target} unless some are assigned
    ///
    /// It can have its first key at once. All of this is done in one step, or nothing is.
    Create {
        /// Its name
        name: String,
        /// A permission: {permissions}; may be repeated
        #[arg(long = flags::PERMISSION, value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
        /// Its request budget in any 60 seconds; by default, the contract's
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        requests_per_minute: Option<u32>,
        /// The {targets} that it sees: `*` for all, `abc*` for all whose ids begin so, or an id;
        /// with the name of the resource and a colon before it if there are several; may be
        /// repeated
        #[arg(long = "assign", value_name = "TERM")]
        #[serde(default)]
        assigned: Vec<String>,
        /// Make its first key, and show the secret once
        #[arg(long)]
        #[serde(default)]
        key: bool,
        /// The end of this key: 90 (days), 12h, 2026-12-31, 2026-12-31T18:00Z or never, the default
        #[arg(long, value_name = "WHEN", requires = "key")]
        #[serde(default)]
        expires: Option<KeyEnd>,
    },
    /// Rename an application; its id and keys stay the same
    Rename {
        /// Its name or id
        app: String,
        /// Its new name
        name: String,
    },
    /// List all applications
    List {
        /// Only those with this label: NAME=TEXT; may be repeated
        #[arg(long = "label", value_name = "NAME=TEXT", value_parser = parse_label)]
        labels: Vec<(String, String)>,
        /// Only deleted ones
        #[arg(long)]
        deleted: bool,
    },
    /// Show one application with its {targets} and keys
    Show {
        /// Its name or id
        app: String,
    },
    /// Grant permissions to an application; they apply to its keys at once
    Grant {
        /// Its name or id
        app: String,
        /// The permissions
        #[arg(value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
    },
    /// Revoke permissions of an application at once; its tasks in flight continue
    Revoke {
        /// Its name or id
        app: String,
        /// The permissions
        #[arg(value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
    },
    /// Refuse all calls of an application until `app resume`; its tasks in flight continue
    Suspend {
        /// Its name or id
        app: String,
    },
    /// Allow the calls of a suspended application again
    Resume {
        /// Its name or id
        app: String,
    },
    /// Delete an application and end its keys, for good
    ///
    /// Its name becomes free. Its id stays in the ledger, the tasks, the audit trail and the acts.
    /// Its tasks in flight continue to their end, and are refunded as any other.
    Delete {
        /// Its name or id
        app: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Call a tool as an application, with the right of one of its keys: one that reads, or that
    /// issues something
    ///
    /// The call counts for the budget of the application. The audit trail has a line of the call
    /// and one of the operator, with the same id. It needs a running server.
    Call {
        /// Its name or id
        app: String,
        /// The tool
        tool: String,
        /// The arguments: a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
    /// Change the request budget of an application; the requests of the last minute still count
    Rate {
        /// Its name or id
        app: String,
        /// Its request budget in any 60 seconds
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        requests_per_minute: u32,
    },
    /// Set labels of an application, such as owner=Ada; an empty text removes a label
    Label {
        /// Its name or id
        app: String,
        /// The labels; `owner`, `contact` and `customer` are common
        #[arg(value_name = "NAME=TEXT", required = true, value_parser = parse_label)]
        labels: Vec<(String, String)>,
    },
}

pub(super) async fn execute(context: &OperatorContext, origin: &Origin, command: AppCommand) -> CommandAnswer {
    let (registry, now) = (&context.registry, context.clock.latest());
    match command {
        AppCommand::Create { name, permissions, requests_per_minute, assigned, key, expires } => {
            let requests_per_minute =
                requests_per_minute.unwrap_or(context.program.catalogue.service.requests_per_minute);
            let grants = read_grants(context, &assigned).await?;
            let new = NewApplication { name, permissions, grants, requests_per_minute };
            if key {
                let expires_at = judge_end(expires, now).map_err(|error| error.at("expires"))?;
                let made = registry.create_with_key(new, expires_at, origin).await.map_err(at_name)?;
                let (Changed { object, act_id, .. }, NewKey { key_id, secret, .. }) = made;
                let application = describe_application(context, &registry.find(&object).await?, SeenTargets::Terms);
                let made = ActMade { act_id, note: Some(describe_new_key(expires_at)) };
                let key = NewKeyAnswer { key_id, secret: secret.expose().clone(), made };
                return Ok(Box::new(NewApplicationAnswer { application, key }).into());
            }
            Ok(show_changed(context, registry.create(new, origin).await.map_err(at_name)?).await?.into())
        }
        AppCommand::Rename { app, name } => {
            change(context, origin, &app, |row| row.name = name).await.map_err(|error| error.at("name"))
        }
        AppCommand::List { labels, deleted } => {
            let mut live_keys: HashMap<String, usize> = HashMap::new();
            for key in registry.keys(|key| !key.secrets.is_empty()).await {
                *live_keys.entry(key.application).or_default() += 1;
            }
            let line = |row: ApplicationRow| ListedApplication {
                live_keys: live_keys.get(&row.id).copied().unwrap_or_default(),
                application: describe_application(context, &row, count_terms),
                requests_per_minute: row.requests_per_minute,
            };
            let has = |row: &ApplicationRow| labels.iter().all(|(name, text)| row.labels.get(name) == Some(text));
            let rows = registry.applications().await.into_iter();
            Ok(rows.filter(|row| row.deleted_at.is_some() == deleted && has(row)).map(line).collect::<Vec<_>>().into())
        }
        AppCommand::Show { app } => {
            let mut shown = show(context, &app).await?;
            shown.latest_acts = Some(acts::latest_on(context, &shown.application.id).await?);
            Ok(shown.into())
        }
        AppCommand::Grant { app, permissions } => {
            let grant = |row: &mut ApplicationRow| {
                row.permissions.extend(permissions);
                row.permissions.sort_unstable();
                row.permissions.dedup();
            };
            change(context, origin, &app, grant).await
        }
        AppCommand::Revoke { app, permissions } => {
            let row = registry.find(&app).await?;
            if let Some(absent) = permissions.iter().find(|permission| !row.permissions.contains(permission)) {
                let held =
                    if row.permissions.is_empty() { "no permissions".to_owned() } else { row.permissions.join(", ") };
                return Err(refusal(format!("`{app}` was not granted `{absent}`; it has {held}")));
            }
            change(context, origin, &row.id, |row| row.permissions.retain(|held| !permissions.contains(held))).await
        }
        AppCommand::Suspend { app } => {
            change(context, origin, &app, |row| row.suspended_at = row.suspended_at.or(Some(now))).await
        }
        AppCommand::Resume { app } => change(context, origin, &app, |row| row.suspended_at = None).await,
        AppCommand::Delete { app, .. } => change(context, origin, &app, |row| row.delete(now)).await,
        AppCommand::Call { app, tool, arguments } => {
            Ok(call::call(context, origin, &app, (&tool, &arguments)).await?.into())
        }
        AppCommand::Rate { app, requests_per_minute } => {
            change(context, origin, &app, |row| row.requests_per_minute = requests_per_minute).await
        }
        AppCommand::Label { app, labels } => {
            let mut row = registry.find(&app).await?;
            change_labels(&mut row.labels, &labels)?;
            // The labels may differ by the time of the change, so it does not replace them.
            change(context, origin, &row.id, |row| drop(change_labels(&mut row.labels, &labels))).await
        }
    }
}

/// A form offers permissions that exist, so a refusal is about the name.
fn at_name(error: RegistryError) -> OperatorError {
    OperatorError::from(error).at("name")
}

pub(super) async fn change(
    context: &OperatorContext,
    origin: &Origin,
    app: &str,
    edit: impl FnOnce(&mut ApplicationRow) + Send,
) -> CommandAnswer {
    Ok(change_and_show(context, origin, app, edit).await?.into())
}

pub(super) async fn change_and_show(
    context: &OperatorContext,
    origin: &Origin,
    app: &str,
    edit: impl FnOnce(&mut ApplicationRow) + Send,
) -> Result<Box<ApplicationAnswer>, OperatorError> {
    let id = context.registry.find(app).await?.id;
    show_changed(context, context.registry.change(&id, origin, edit).await?).await
}

async fn show_changed(context: &OperatorContext, changed: Changed) -> Result<Box<ApplicationAnswer>, OperatorError> {
    let mut shown = show(context, &changed.object).await?;
    shown.made = Some(describe_act(changed));
    shown.requests_in_last_minute = None;
    Ok(shown)
}

pub(super) async fn show(context: &OperatorContext, name: &str) -> Result<Box<ApplicationAnswer>, OperatorError> {
    let row = context.registry.find(name).await?;
    let keys = context.registry.keys(|key| key.application == row.id).await;
    let facts = KeyFacts::read(context, Some(&keys)).await?;
    Ok(Box::new(ApplicationAnswer {
        application: describe_application(context, &row, SeenTargets::Terms),
        requests_per_minute: row.requests_per_minute,
        requests_in_last_minute: context.registry.usage(&row.id).await,
        created_at: row.created_at,
        keys: keys.iter().map(|key| facts.describe(key, row.name.as_str().into())).collect(),
        latest_acts: None,
        made: None,
    }))
}

fn count_terms(terms: Vec<String>) -> SeenTargets {
    let (rules, ids): (Vec<_>, Vec<_>) =
        terms.into_iter().partition(|term| term.ends_with('*') || term.starts_with('!'));
    let (except, mut shown): (Vec<_>, Vec<_>) = rules.into_iter().partition(|term| term.starts_with('!'));
    if shown.is_empty() {
        return SeenTargets::Count(ids.len());
    }
    shown.extend((!ids.is_empty()).then(|| format!("{} more", ids.len())));
    shown.extend((!except.is_empty()).then(|| format!("except {}", except.len())));
    SeenTargets::Text(shown.join(", "))
}

fn describe_application(
    context: &OperatorContext,
    row: &ApplicationRow,
    show: impl Fn(Vec<String>) -> SeenTargets,
) -> ApplicationFacts {
    let seen = |resource: &str| match row.grants.of(resource) {
        Some(all) if all.is_all() => SeenTargets::Text("all".to_owned()),
        granted => show(granted.map(Granted::terms).unwrap_or_default()),
    };
    let resources = context.program.catalogue.resource_names().into_iter();
    ApplicationFacts {
        name: ApplicationName { name: row.name.clone(), deleted_at: row.deleted_at },
        id: row.id.clone(),
        permissions: row.permissions.clone(),
        suspended_at: row.suspended_at,
        labels: row.labels.clone(),
        sees: resources.map(|resource| (format!("{resource}s"), seen(resource))).collect(),
    }
}
