//! [`raw`](crate::raw) to [`model`](crate::model): resolves every name, fills in every default, derives what is never typed.
//!
//! Each function notes all that is wrong with its part and answers `None` where a part cannot be had; nothing stops at the
//! first mistake. `types` lowers types and fields, `tools` lowers tools; `generated` knows which names the generated code takes.

mod generated;
mod tools;
mod types;

use crate::model::{Contract, ErrorCode, Kind, Member, Permission, Phrases, Probe, Resource, Service, State};
use crate::raw::{self, At, Files, Named};
use crate::report::{Place, Report};
use crate::rules::{ROLES, Rule, STATES};
use crate::source::Source;
use crate::{describe, names};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
pub(crate) use types::TASK_STATUS;
use types::Types;

const SERVICE: usize = 0;
const ERRORS: usize = 1;
const TYPES: usize = 2;
const FIRST_TOOLS: usize = 4;

/// A set of them is one machine word.
const MAX_PERMISSIONS: usize = 64;

/// Clients refuse longer instructions.
const MAX_INSTRUCTIONS: usize = 2048;

/// The contract, as far as it can be had; complete exactly if nothing is noted in `report`.
pub(crate) fn lower(files: &Files, sources: &[Source], report: &mut Report) -> Option<Contract> {
    let raw::ServiceFile { service, protocol, limits, phrase, permission, resource, probe, state } = &files.service;
    let named: [(usize, Vec<&At<String>>); 4] = [
        (SERVICE, permission.iter().map(|(name, _)| name).collect()),
        (SERVICE, resource.iter().map(|(name, _)| name).collect()),
        (SERVICE, probe.iter().map(|(name, _)| name).collect()),
        (ERRORS, files.errors.error.iter().map(|(name, _)| name).collect()),
    ];
    for (file, names) in named {
        require_distinct(file, names, report);
    }
    generated::check(files, report);
    let types = Types::lower(&files.types.r#type, resource, state, report);
    let permissions = permissions(permission, report);
    let probes = probes(probe, report);
    let errors = errors(files, &types, report);
    let resources = resources(resource, &types, report);
    let states = states(state, report);
    let scope = tools::Scope { permissions, probes, errors, resources, types, files };
    let domains = tools::lower(files, sources, &scope, report);
    let tools::Scope { permissions, probes, errors, resources, types, files: _ } = scope;
    let mut types = types.into_list();
    if domains.iter().any(|domain| domain.tools.iter().any(|tool| tool.task().is_some())) {
        types.extend(tools::idempotency_key().ty.named().cloned());
    }
    let contract = Contract {
        service: service_of(service.as_ref()?, protocol.as_ref()?, limits.as_ref()?, report),
        phrases: phrases(phrase.as_ref(), report),
        permissions,
        resources,
        probes,
        errors,
        states,
        types,
        domains,
        files: Vec::new(),
    };
    whole(&contract, files, report);
    Some(contract)
}

fn service_of(
    raw::Service { name, title, version, doc }: &raw::Service,
    raw::Protocol { served, accepted }: &raw::Protocol,
    raw::Limits { requests_per_minute, poll_interval_seconds }: &raw::Limits,
    report: &mut Report,
) -> Service {
    for text in [name, title, version, doc] {
        require_text(SERVICE, text, report);
    }
    if served.is_empty() || served.iter().any(|revision| !accepted.contains(revision)) {
        let help = Some("every revision of `served` stands in `accepted` too".to_owned());
        report.add(
            Rule::Bounds,
            at(SERVICE, served.span()),
            "`served` names no revision, or one that is not accepted",
            help,
        );
    }
    for number in [requests_per_minute, poll_interval_seconds] {
        if **number == 0 {
            report.add(Rule::Bounds, at(SERVICE, number.span()), "must be at least 1", None);
        }
    }
    Service {
        name: name.to_string(),
        title: title.to_string(),
        version: version.to_string(),
        doc: doc.to_string(),
        served: served.to_vec(),
        accepted: accepted.to_vec(),
        requests_per_minute: **requests_per_minute,
        poll_interval_seconds: **poll_interval_seconds,
    }
}

fn phrases(raw: Option<&At<raw::Phrase>>, report: &mut Report) -> Phrases {
    let Some(raw::Phrase { capability, forbidden, retryable, task }) = raw.map(|raw| &**raw) else {
        return Phrases::default();
    };
    let mut text = |phrase: &Option<At<String>>| {
        let Some(phrase) = phrase else { return String::new() };
        require_text(SERVICE, phrase, report);
        phrase.to_string()
    };
    Phrases { capability: text(capability), forbidden: text(forbidden), retryable: text(retryable), task: text(task) }
}

fn permissions(raw: &Named<raw::Permission>, report: &mut Report) -> Vec<Arc<Permission>> {
    let positions: HashMap<&str, usize> = raw.iter().enumerate().map(|(n, (name, _))| (name.as_str(), n)).collect();
    let implied: Vec<Vec<usize>> = raw
        .iter()
        .map(|(_, permission)| {
            let names = permission.implies.iter().flatten();
            let known = |name: &At<String>| {
                let found = positions.get(name.as_str()).copied();
                if found.is_none() && !raw.unread.may_be(name) {
                    let place = at(SERVICE, name.span());
                    report.unknown(Rule::UnknownPermission, place, "permission", name, raw.names());
                }
                found
            };
            names.filter_map(known).collect()
        })
        .collect();
    if let Some((name, _)) = raw.iter().nth(MAX_PERMISSIONS) {
        let message = format!("more than {MAX_PERMISSIONS} permissions");
        report.add(Rule::TooLong, at(SERVICE, name.span()), message, None);
    }
    let reached: Vec<Vec<usize>> = (0..implied.len()).map(|n| reach(&implied, n)).collect();
    let lower = |(n, (name, permission)): (usize, (&At<String>, &raw::Permission))| {
        require_name(SERVICE, name, report);
        require_text(SERVICE, &permission.doc, report);
        let mut grants = reached[n].clone();
        let circle: Vec<usize> = grants.iter().copied().filter(|other| reached[*other].contains(&n)).collect();
        if circle.iter().min() == Some(&n) {
            let names: Vec<_> = circle.iter().map(|n| format!("`{}`", *raw.entries[*n].0)).collect();
            let message = format!("a permission implies itself: {}", names.join(", "));
            report.add(Rule::ImpliesCycle, at(SERVICE, name.span()), message, None);
        }
        grants.push(n);
        grants.sort_unstable();
        grants.dedup();
        Arc::new(Permission { name: name.to_string(), doc: permission.doc.to_string(), grants })
    };
    raw.iter().enumerate().map(lower).collect()
}

/// All that can be reached from `start` by one step or more.
fn reach(steps: &[Vec<usize>], start: usize) -> Vec<usize> {
    let mut reached = Vec::new();
    let mut open = steps[start].clone();
    while let Some(next) = open.pop() {
        if !reached.contains(&next) {
            reached.push(next);
            open.extend(&steps[next]);
        }
    }
    reached.sort_unstable();
    reached
}

fn probes(raw: &Named<raw::Probe>, report: &mut Report) -> Vec<Arc<Probe>> {
    let lower = |(name, raw::Probe { doc, baseline }): (&At<String>, &raw::Probe)| {
        require_name(SERVICE, name, report);
        require_text(SERVICE, doc, report);
        Arc::new(Probe { name: name.to_string(), doc: doc.to_string(), baseline: baseline.unwrap_or(false) })
    };
    raw.iter().map(lower).collect()
}

fn resources(raw: &Named<raw::Resource>, types: &Types, report: &mut Report) -> Vec<Arc<Resource>> {
    let lower = |(name, raw::Resource { doc, id, capability }): (&At<String>, &raw::Resource)| {
        require_name(SERVICE, name, report);
        require_text(SERVICE, doc, report);
        let written = id;
        let id = types.named(SERVICE, written, report)?;
        if !matches!(id.kind, Kind::String(_)) {
            let help = Some("an identifier is a type of `kind = \"string\"`".to_owned());
            report.add(Rule::Field, at(SERVICE, written.span()), format!("`{}` is no string", id.name), help);
            return None;
        }
        Some(Arc::new(Resource {
            name: name.to_string(),
            doc: doc.to_string(),
            id,
            capabilities: members(SERVICE, capability.as_ref(), report),
        }))
    };
    raw.iter().filter_map(lower).collect()
}

fn members(file: usize, raw: Option<&Named<At<String>>>, report: &mut Report) -> Vec<Member> {
    let Some(raw) = raw else { return Vec::new() };
    require_distinct(file, raw.iter().map(|(name, _)| name), report);
    let lower = |(name, doc): (&At<String>, &At<String>)| {
        require_name(file, name, report);
        require_text(file, doc, report);
        Member { name: name.to_string(), doc: doc.to_string() }
    };
    raw.iter().map(lower).collect()
}

fn errors(files: &Files, types: &Types, report: &mut Report) -> Vec<Arc<ErrorCode>> {
    let (raw, reserved) = (&files.errors.error, &files.reserved.errors);
    let mut played: HashMap<&str, &str> = HashMap::new();
    let mut lowered = Vec::new();
    let mut mistaken = false;
    for (code, raw::Error { role, retryable, http, jsonrpc, meaning, remedy, fields }) in raw.iter() {
        require_name(ERRORS, code, report);
        require_text(ERRORS, meaning, report);
        require_text(ERRORS, remedy, report);
        if reserved.iter().flatten().any(|name| **name == **code) {
            let message = format!("`{code}` was retired and is reserved", code = **code);
            let help = Some(tools::RETIRED.to_owned());
            report.add(Rule::ReservedName, at(ERRORS, code.span()), message, help);
        }
        if !(400..=599).contains(&**http) {
            report.add(Rule::Bounds, at(ERRORS, http.span()), "an error's status lies between 400 and 599", None);
        }
        if let Some(role) = role {
            if !ROLES.contains(&role.as_str()) {
                mistaken = true;
                report.unknown(Rule::UnknownRole, at(ERRORS, role.span()), "role", role, ROLES);
            } else if let Some(other) = played.insert(role, code) {
                mistaken = true;
                let message = format!("`{other}` plays the role `{role}` already", role = **role);
                report.add(Rule::Role, at(ERRORS, role.span()), message, None);
            }
        }
        lowered.push(Arc::new(ErrorCode {
            code: code.to_string(),
            role: role.as_ref().map(|role| role.to_string()),
            retryable: *retryable,
            http: **http,
            jsonrpc: jsonrpc.unwrap_or(-32000),
            meaning: meaning.to_string(),
            remedy: remedy.to_string(),
            fields: types.fields(ERRORS, fields.as_ref(), types::Place::Result, report),
        }));
    }
    let whole = report.is_read(ERRORS) && !mistaken;
    for role in ROLES.into_iter().filter(|role| whole && !played.contains_key(role)) {
        let help = Some(format!("declare an error with `role = \"{role}\"`"));
        report.add(Rule::Role, at(ERRORS, 0..0), format!("no error plays the role `{role}`"), help);
    }
    lowered
}

fn states(raw: &Named<raw::State>, report: &mut Report) -> Vec<State> {
    for (name, raw::State { meaning, next_step }) in raw.iter() {
        if !STATES.contains(&name.as_str()) {
            report.unknown(Rule::Shape, at(SERVICE, name.span()), "task state", name, STATES);
        }
        require_text(SERVICE, meaning, report);
        require_text(SERVICE, next_step, report);
    }
    let find = |state: &&str| raw.iter().find(|(name, _)| name.as_str() == *state);
    let lower = |(name, state): (&At<String>, &raw::State)| State {
        name: name.to_string(),
        meaning: state.meaning.to_string(),
        next_step: state.next_step.to_string(),
    };
    STATES.iter().filter_map(find).map(lower).collect()
}

/// What can only be said of the contract as a whole.
fn whole(contract: &Contract, files: &Files, report: &mut Report) {
    if files.tools.is_empty() {
        let help = Some("write one in a file of the folder `tools`".to_owned());
        report.add(Rule::Shape, at(SERVICE, 0..0), "the contract has no tool", help);
    }
    if !report.is_read(SERVICE) {
        return;
    }
    let task = contract.tools().any(|tool| tool.task().is_some());
    let requires = contract.tools().any(|tool| tool.target.as_ref().is_some_and(|target| target.requires.is_some()));
    let table = files.service.phrase.as_ref();
    let worded = |find: fn(&raw::Phrase) -> &Option<At<String>>| table.is_some_and(|table| find(table).is_some());
    let needed = [
        ("retryable", true, worded(|phrase| &phrase.retryable)),
        ("capability", requires, worded(|phrase| &phrase.capability)),
        ("forbidden", requires, worded(|phrase| &phrase.forbidden)),
        ("task", task, worded(|phrase| &phrase.task)),
    ];
    for (name, ..) in needed.into_iter().filter(|(_, needed, worded)| *needed && !worded) {
        let help = Some(format!("word it as `{name} = \"...\"` under `[phrase]`"));
        let place = at(SERVICE, table.map_or(0..0, At::span));
        report.add(Rule::MissingPhrase, place, format!("the tools need the phrase `{name}`"), help);
    }
    for state in STATES.iter().filter(|state| task && !contract.states.iter().any(|known| known.name == **state)) {
        let help = Some(format!("say what it means and what to do next under `[state.{state}]`"));
        report.add(Rule::MissingPhrase, at(SERVICE, 0..0), format!("the tools need the task state `{state}`"), help);
    }
    let length = describe::instructions(contract).chars().count();
    if length > MAX_INSTRUCTIONS {
        let place = at(SERVICE, files.service.service.as_ref().map_or(0..0, |service| service.doc.span()));
        let message = format!("the instructions are {length} characters long; clients take {MAX_INSTRUCTIONS}");
        report.add(Rule::TooLong, place, message, None);
    }
}

/// Notes names that are different on the wire and the same as a Rust variant.
fn require_distinct<'a>(file: usize, names: impl IntoIterator<Item = &'a At<String>>, report: &mut Report) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for name in names {
        let variant = names::pascal(name);
        match seen.get(&variant) {
            Some(first) if *first == name.as_str() => {
                report.add(Rule::DuplicateName, at(file, name.span()), format!("`{first}` stands here twice"), None);
            }
            Some(first) => {
                let message = format!("`{}` and `{first}` are both `{variant}` in Rust", **name);
                report.add(Rule::DuplicateName, at(file, name.span()), message, None);
            }
            None => drop(seen.insert(variant, name)),
        }
    }
}

fn at(file: usize, span: Range<usize>) -> Place {
    Place { file, span }
}

fn require_text(file: usize, text: &At<String>, report: &mut Report) {
    if text.trim().is_empty() {
        report.add(Rule::MissingText, at(file, text.span()), "this text is empty", None);
    }
}

fn require_name(file: usize, name: &At<String>, report: &mut Report) {
    if !names::is_snake(name) || names::is_keyword(name) {
        let help = Some("names are lower_snake_case and no keywords of Rust".to_owned());
        report.add(Rule::Name, at(file, name.span()), format!("`{name}` is no usable name", name = **name), help);
    }
}
