//! The state file: applications with their permissions, grants, rates and labels, as TOML.
//!
//! [`plan`] turns a file into the commands that lead to it. It deletes nothing and makes no keys.
//! [`export`] writes the file.

use super::answer::change_labels;
use super::applications::AppCommand;
use super::operator::OperatorCommand;
use super::targets::{TargetCommand, read_terms};
use crate::config::{Config, ConfigError, Findings, Spanned};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::path::Path;
use toolwarrant_core::access::Granted;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::registry::may_name_application;
use toolwarrant_core::store::{ApplicationRow, Labels};

const APPLICATION: &str = "application";

/// A key that is absent changes nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedApplication {
    id: Option<Spanned<String>>,
    permissions: Option<Vec<Spanned<String>>>,
    requests_per_minute: Option<Spanned<u32>>,
    labels: Option<BTreeMap<String, Spanned<String>>>,
    sees: Option<BTreeMap<String, Vec<Spanned<String>>>>,
}

pub(super) fn plan(
    catalogue: &Catalogue,
    path: &Path,
    text: &str,
    rows: &[ApplicationRow],
) -> Result<Vec<OperatorCommand>, ConfigError> {
    let config = Config::parse(path, text)?;
    let mut found = config.findings();
    for (key, _) in &config.root() {
        if key.get_ref() != APPLICATION && !found.is_full() {
            found.unknown(key.span(), key.get_ref(), [APPLICATION]);
        }
    }
    if found.is_full() {
        return found.finish().map(|()| Vec::new());
    }
    let wanted = config.entries::<WantedApplication>(APPLICATION, &mut found);
    let mut taken = BTreeSet::new();
    let mut tables = Vec::new();
    for (name, wanted) in &wanted {
        let row = find(name, wanted, rows, &mut found);
        if row.is_some_and(|row| !taken.insert(&row.id)) {
            found.add(name.span(), "two tables are about the same application", None);
        }
        tables.push((name, row, steps(catalogue, name, wanted, row, &mut found)));
    }
    let commands = in_order(tables, rows, &mut found);
    found.finish().map(|()| commands)
}

type Table<'a> = (&'a Spanned<String>, Option<&'a ApplicationRow>, Vec<OperatorCommand>);

/// Orders the commands so that each name is free when an application takes it.
fn in_order(tables: Vec<Table<'_>>, rows: &[ApplicationRow], found: &mut Findings<'_>) -> Vec<OperatorCommand> {
    let mut tables = VecDeque::from(tables);
    let live = rows.iter().filter(|row| row.deleted_at.is_none());
    let mut names: BTreeMap<String, &str> = live.map(|row| (row.name.clone(), &*row.id)).collect();
    let mut commands = Vec::new();
    loop {
        let holds = |name: &str, row: Option<&ApplicationRow>| {
            names.get(name).is_none_or(|id| row.is_some_and(|row| row.id == *id))
        };
        let next = tables.iter().position(|(name, row, _)| holds(name.get_ref(), *row));
        let Some((name, row, steps)) = next.and_then(|next| tables.remove(next)) else { break };
        if let Some(row) = row {
            names.remove(&row.name);
        }
        names.insert(name.get_ref().clone(), row.map_or("", |row| &row.id));
        commands.extend(steps);
    }
    for (name, ..) in tables {
        let other = names.get(name.get_ref()).copied().unwrap_or_default();
        let help = "rename that one first; to swap two names, rename one of them to a third".to_owned();
        found.add(name.span(), format!("the application {other} has this name"), Some(help));
    }
    commands
}

fn find<'r>(
    name: &Spanned<String>,
    wanted: &WantedApplication,
    rows: &'r [ApplicationRow],
    found: &mut Findings<'_>,
) -> Option<&'r ApplicationRow> {
    if !may_name_application(name.get_ref()) {
        let help = "a name has 1 to 64 printable characters, and does not begin like an id".to_owned();
        found.add(name.span(), "an application cannot have this name", Some(help));
    }
    let mut live = rows.iter().filter(|row| row.deleted_at.is_none());
    match &wanted.id {
        Some(id) => {
            let row = live.find(|row| row.id == *id.get_ref());
            if row.is_none() {
                let help = "leave `id` out to create an application".to_owned();
                found.add(id.span(), format!("there is no application `{}`", id.get_ref()), Some(help));
            }
            row
        }
        None => live.find(|row| row.name == *name.get_ref()),
    }
}

fn steps(
    catalogue: &Catalogue,
    name: &Spanned<String>,
    wanted: &WantedApplication,
    row: Option<&ApplicationRow>,
    found: &mut Findings<'_>,
) -> Vec<OperatorCommand> {
    let WantedApplication { id, permissions, requests_per_minute, labels, sees } = wanted;
    let (app, mut steps) = (name.get_ref().clone(), Vec::new());
    for permission in permissions.iter().flatten() {
        let known = catalogue.permissions.iter().map(|known| known.name);
        if !known.clone().any(|known| known == permission.get_ref()) {
            let help = format!("the permissions are {}", known.collect::<Vec<_>>().join(", "));
            found.add(permission.span(), format!("unknown permission `{}`", permission.get_ref()), Some(help));
        }
    }
    let permissions: Option<Vec<_>> =
        permissions.as_ref().map(|all| all.iter().map(|permission| permission.get_ref().clone()).collect());
    if let Some(rate) = requests_per_minute.as_ref().filter(|rate| *rate.get_ref() == 0) {
        found.add(rate.span(), "expected at least 1 request in 60 seconds", None);
    }
    let rate = requests_per_minute.as_ref().map(|rate| *rate.get_ref());
    match row {
        None if id.is_none() => {
            let permissions = permissions.clone().unwrap_or_default();
            if permissions.is_empty() {
                let help = Some("add `permissions = [...]`".to_owned());
                found.add(name.span(), "a new application needs a permission", help);
            }
            steps.push(AppCommand::Create { name: app.clone(), permissions, requests_per_minute: rate });
        }
        None => {}
        Some(row) => {
            if row.name != app {
                steps.push(AppCommand::Rename { app: row.name.clone(), name: app.clone() });
            }
            if let Some(wanted) = permissions {
                let without = |all: &[String], others: &[String]| -> Vec<String> {
                    all.iter().filter(|one| !others.contains(one)).cloned().collect()
                };
                let (more, less) = (without(&wanted, &row.permissions), without(&row.permissions, &wanted));
                let app = || app.clone();
                steps.extend((!more.is_empty()).then(|| AppCommand::Grant { app: app(), permissions: more }));
                steps.extend((!less.is_empty()).then(|| AppCommand::Revoke { app: app(), permissions: less }));
            }
            if let Some(requests_per_minute) = rate.filter(|rate| *rate != row.requests_per_minute) {
                steps.push(AppCommand::Rate { app: app.clone(), requests_per_minute });
            }
        }
    }
    steps.extend(label_step(&app, labels.as_ref(), row, found));
    let mut steps: Vec<_> = steps.into_iter().map(OperatorCommand::App).collect();
    for (resource, terms) in sees.iter().flatten() {
        steps.extend(grant_step(catalogue, &app, resource, terms, row, (name, found)));
    }
    steps
}

fn label_step(
    app: &str,
    labels: Option<&BTreeMap<String, Spanned<String>>>,
    row: Option<&ApplicationRow>,
    found: &mut Findings<'_>,
) -> Option<AppCommand> {
    let (none, labels) = (Labels::new(), labels?);
    let known = row.map_or(&none, |row| &row.labels);
    let gone = known.keys().filter(|name| !labels.contains_key(*name)).map(|name| (name.clone(), String::new()));
    let differs = |(name, text): &(&String, &Spanned<String>)| known.get(*name) != Some(text.get_ref());
    let (mut changes, mut sound): (Vec<_>, _) = (gone.collect(), true);
    for (name, text) in labels.iter().filter(differs) {
        let change = (name.clone(), text.get_ref().clone());
        if let Err(error) = change_labels(&mut Labels::new(), std::slice::from_ref(&change)) {
            found.add(text.span(), error.message, None);
            sound = false;
        }
        changes.push(change);
    }
    if sound
        && let Err(error) = change_labels(&mut known.clone(), &changes)
        && let Some(text) = labels.values().next()
    {
        found.add(text.span(), error.message, None);
    }
    (!changes.is_empty()).then(|| AppCommand::Label { app: app.to_owned(), labels: changes })
}

fn grant_step(
    catalogue: &Catalogue,
    app: &str,
    resource: &str,
    terms: &[Spanned<String>],
    row: Option<&ApplicationRow>,
    (name, found): (&Spanned<String>, &mut Findings<'_>),
) -> Option<OperatorCommand> {
    let Some(def) = catalogue.resource(resource) else {
        let at = terms.first().map_or(name.span(), Spanned::span);
        let all = catalogue.resource_names().join(", ");
        found.add(at, format!("unknown resource `{resource}`"), Some(format!("the resources are {all}")));
        return None;
    };
    let texts: Vec<_> = terms.iter().map(|term| term.get_ref().as_str()).collect();
    let help = || format!("`*` for all {resource}s, a prefix as in `abc*`, an id, or `!` and an id for an exception");
    let wanted = read_terms(def, &texts, |n, why| found.add(terms[n].span(), why, Some(help())));
    let held = row.and_then(|row| row.grants.of(resource)).cloned().unwrap_or_default();
    let command = TargetCommand::Set { app: app.to_owned(), terms: wanted.terms() };
    (wanted != held).then(|| OperatorCommand::Target { resource: resource.to_owned(), command })
}

pub(super) fn export(catalogue: &Catalogue, rows: &[ApplicationRow]) -> String {
    let mut file = String::new();
    let quoted = |text: &str| Value::from(text).to_string();
    let list = |items: &[String]| format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "));
    for row in rows.iter().filter(|row| row.deleted_at.is_none()) {
        let ApplicationRow { id, name, permissions, requests_per_minute, grants, labels, .. } = row;
        let table = format!("{APPLICATION}.{}", quoted(name));
        let _ = writeln!(file, "[{table}]\nid = {}\npermissions = {}", quoted(id), list(permissions));
        let _ = writeln!(file, "requests_per_minute = {requests_per_minute}\n\n[{table}.labels]");
        for (name, text) in labels {
            let _ = writeln!(file, "{} = {}", quoted(name), quoted(text));
        }
        let _ = writeln!(file, "\n[{table}.sees]");
        for resource in catalogue.resource_names() {
            let terms = grants.of(resource).map(Granted::terms).unwrap_or_default();
            let _ = writeln!(file, "{resource} = {}", list(&terms));
        }
        file.push('\n');
    }
    file
}
