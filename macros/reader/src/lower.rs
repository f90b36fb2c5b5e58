//! Turns `raw` into `model`: resolves names, fills in defaults and
//! derives the parts that a contract does not write.
//!
//! Each function reports every problem with its part, and returns `None` if it cannot make the
//! part, so that one mistake does not hide the others. Start at [`lower`].

mod derived;
mod errors;
mod fields;
mod formerly;
mod generated;
mod prose;
mod require;
mod tools;
mod toolsets;
mod types;
mod words;

use crate::model::{
    Contract, Kind, Member, PermissionSpec, ProbeSpec, ReadersSpec, ReservedSpec, ResourceSpec, ServiceSpec,
};
use crate::raw::{self, At, Files, Named};
use crate::report::{Report, Source};
use crate::rules::{FALLBACK, REVISIONS, Rule};
use crate::source::{ERRORS, SERVICE};
pub(crate) use generated::rust_names;
use require::{at, require_distinct, require_name, require_positive, require_text};
use std::collections::HashMap;
use std::sync::Arc;
use toolsets::MAX_PERMISSIONS;
use toolwarrant_common::MAX_WAIT_SECONDS;
use types::{Types, members};
use words::{Words, first, limit};

/// Returns a complete contract exactly if `report` has no problem.
pub(crate) fn lower(files: &Files, sources: &[Source], report: &mut Report) -> Option<Contract> {
    let raw::ServiceFile { service, text, number, permission, resource, probe, .. } = &files.service;
    require_distinct(SERVICE, text.keys(), report);
    require_distinct(SERVICE, number.keys(), report);
    require_distinct(SERVICE, permission.keys(), report);
    require_distinct(SERVICE, files.service.toolset.keys(), report);
    require_distinct(SERVICE, resource.keys(), report);
    require_distinct(SERVICE, probe.keys(), report);
    require_distinct(ERRORS, files.errors.error.keys(), report);
    generated::check(files, report);
    let words = Words::of(files);
    let permissions = permissions(permission, report);
    let probes = probes(probe, &words, report);
    let framework = derived::framework_types(&permissions, &probes, &words);
    let types = Types::lower(files, framework, report);
    let errors = errors::lower(files, &types, &words, report);
    let resources = resources(resource, &types, &words, report);
    let states = words::states(files, &words, report);
    let readers = readers(files, report)?;
    let toolsets = toolsets::lower(files, &readers, report);
    let scope = tools::Scope { permissions, toolsets, probes, errors, resources, types, words, files };
    let mut domains = tools::lower(files, sources, &scope, report);
    let tools::Scope { permissions, toolsets, probes, errors, resources, types, words, files: _ } = scope;
    toolsets::number_rights(&mut domains, permissions.len(), files, report);
    formerly::check(files, report);
    let contract = Contract {
        service: service_of(service.as_ref()?, files, &words, report)?,
        readers,
        phrases: words::phrases(files, &words, report),
        texts: texts(text, &words, report),
        numbers: numbers(number, report),
        permissions,
        toolsets,
        resources,
        probes,
        errors,
        states,
        types: types.done,
        domains,
        released: None,
        reserved: names_to_reserve(files),
        written: words.written.borrow().clone(),
        files: Vec::new(),
    };
    whole(&contract, files, &words, report);
    Some(contract)
}

fn names_to_reserve(files: &Files) -> ReservedSpec {
    let raw::ReservedFile { tools, errors, values, allowed: _ } = &files.reserved;
    let [tools, errors, values] =
        [tools, errors, values].map(|names| names.iter().flatten().map(|name| name.to_string()).collect());
    ReservedSpec { tools, errors, values }
}

fn service_of(
    raw::Service { name, title, version, doc, tools: _ }: &raw::Service,
    files: &Files,
    words: &Words,
    report: &mut Report,
) -> Option<ServiceSpec> {
    for text in [name, title, version, doc] {
        require_text(SERVICE, text, report);
    }
    let served = lower_revisions(files, report);
    let mut limit = |most: Option<u32>, key| {
        let number = limit(files, key)?;
        if **number == 0 || most.is_some_and(|most| **number > most) {
            let range = most.map_or("at least 1".to_owned(), |most| format!("from 1 to {most}"));
            report.add(Rule::Bounds, at(SERVICE, number.span()), format!("must be {range}"), None);
        }
        Some(**number)
    };
    let wait = Some(MAX_WAIT_SECONDS);
    Some(ServiceSpec {
        name: name.to_string(),
        title: title.to_string(),
        version: version.to_string(),
        doc: words.fill(doc),
        served: served?,
        follows: words.tasks && first(protocols(files), |protocol| &protocol.tasks).is_some_and(|tasks| *tasks),
        requests_per_minute: limit(None, |limits| &limits.requests_per_minute)?,
        poll_interval_seconds: limit(None, |limits| &limits.poll_interval_seconds)?,
        hold_seconds: limit(wait, |limits| &limits.hold_seconds)?,
        wait_seconds: limit(wait, |limits| &limits.wait_seconds)?,
    })
}

fn protocols(files: &Files) -> [Option<&raw::Protocol>; 2] {
    [&files.service.protocol, &files.defaults.protocol].map(Option::as_ref)
}

fn lower_revisions(files: &Files, report: &mut Report) -> Option<Vec<&'static str>> {
    let named = first(protocols(files), |raw::Protocol { served, .. }| served)?;
    let unknown: Vec<_> = named.iter().filter(|name| !REVISIONS.contains(&name.as_str())).collect();
    for name in &unknown {
        let message = format!("unknown revision `{}`", name.as_str());
        let help = Some(format!("the framework speaks {}", REVISIONS.map(|known| format!("`{known}`")).join(", ")));
        report.add(Rule::UnknownRevision, at(SERVICE, name.span()), message, help);
    }
    let is_served = |known: &&str| named.iter().any(|name| name.as_str() == *known);
    if unknown.is_empty() && !is_served(&FALLBACK) {
        let help =
            Some(format!("add `{FALLBACK}`: clients that name no revision, or an unknown one, are served this one"));
        report.add(Rule::NoFallback, at(SERVICE, named.span()), format!("`{FALLBACK}` is not served"), help);
    }
    Some(REVISIONS.into_iter().filter(is_served).collect())
}

fn permissions(raw: &Named<raw::Permission>, report: &mut Report) -> Vec<Arc<PermissionSpec>> {
    let implied: Vec<Vec<usize>> = raw
        .iter()
        .map(|(_, permission)| {
            let names = permission.implies.iter().flatten();
            let known = |name: &At<String>| {
                let found = raw.names().position(|known| known == name.as_str());
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
        let implies = permission.implies.iter().flatten().map(|name| name.to_string()).collect();
        Arc::new(PermissionSpec { name: name.to_string(), doc: permission.doc.to_string(), index: n, implies, grants })
    };
    raw.iter().enumerate().map(lower).collect()
}

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

fn probes(raw: &Named<raw::Probe>, words: &Words, report: &mut Report) -> Vec<Arc<ProbeSpec>> {
    let lower = |(name, raw::Probe { doc, baseline, unread, timeout, success }): (&At<String>, &raw::Probe)| {
        require_name(SERVICE, name, report);
        require_text(SERVICE, doc, report);
        let [unread, timeout, success] =
            [unread, timeout, success].map(|text| words.say(SERVICE, text.as_ref(), report));
        Arc::new(ProbeSpec {
            name: name.to_string(),
            doc: doc.to_string(),
            baseline: baseline.unwrap_or(false),
            unread,
            timeout,
            success,
        })
    };
    raw.iter().map(lower).collect()
}

fn resources<'a>(
    raw: &'a Named<raw::Resource>,
    types: &Types,
    words: &Words,
    report: &mut Report,
) -> Vec<Arc<ResourceSpec>> {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let lower = |(name, raw::Resource { doc, id, state, unreadable, capability, find }): (
        &'a At<String>,
        &'a raw::Resource,
    )| {
        require_name(SERVICE, name, report);
        require_text(SERVICE, doc, report);
        let written = id;
        let id = types.find_named(SERVICE, written, report)?;
        if !matches!(id.kind, Kind::String(_)) {
            let help = Some("an identifier is a type of `kind = \"string\"`".to_owned());
            report.add(Rule::Field, at(SERVICE, written.span()), format!("`{}` is no string", id.name), help);
            return None;
        }
        if let Some(other) = owners.insert(written.as_str(), name.as_str()) {
            let help = Some(format!("give `{}` a type of its own for its ids", **name));
            let message = format!("`{}` is the id of `{other}`", id.name);
            report.add(Rule::DuplicateName, at(SERVICE, written.span()), message, help);
        }
        let states = state.as_ref().map(|state| states_of(state, types, report)).unwrap_or_default();
        let names = || states.iter().map(|state| &*state.name);
        if let Some(unknown) = unreadable.as_ref().filter(|state| !names().any(|known| known == state.as_str())) {
            report.unknown(Rule::Field, at(SERVICE, unknown.span()), "state", unknown, names());
        }
        Some(Arc::new(ResourceSpec {
            name: name.to_string(),
            doc: doc.to_string(),
            id,
            states,
            unreadable: unreadable.as_ref().map(|state| state.to_string()),
            capabilities: members(SERVICE, capability.as_ref(), report),
            find: words.say(SERVICE, find.as_ref(), report),
        }))
    };
    raw.iter().filter_map(lower).collect()
}

fn states_of(written: &At<String>, types: &Types, report: &mut Report) -> Vec<Member> {
    let Some(ty) = types.find_named(SERVICE, written, report) else { return Vec::new() };
    if let Kind::Enum(values) = &ty.kind {
        return values.clone();
    }
    let help = Some("a state is a type of `kind = \"enum\"`".to_owned());
    report.add(Rule::Field, at(SERVICE, written.span()), format!("`{}` is no enum", ty.name), help);
    Vec::new()
}

fn whole(contract: &Contract, files: &Files, words: &Words, report: &mut Report) {
    let listed = files.service.service.as_ref().map(|service| &service.tools);
    if let Some(listed) = listed.filter(|listed| listed.is_empty()) {
        let help = Some("write one in a file of the folder `tools`, and list the file here".to_owned());
        report.add(Rule::Shape, at(SERVICE, listed.span()), "the contract has no tool", help);
    }
    prose::check(contract, files, words, report);
}

fn readers(files: &Files, report: &mut Report) -> Option<ReadersSpec> {
    let readers = [&files.service.readers, &files.defaults.readers].map(Option::as_ref);
    let mut limit = |key| {
        let number: &At<u32> = first(readers, key)?;
        Some(require_positive(number, report))
    };
    Some(ReadersSpec {
        description: limit(|readers| &readers.description)?,
        argument: limit(|readers| &readers.argument)?,
        list: limit(|readers| &readers.list)?,
        list_with_outputs: limit(|readers| &readers.list_with_outputs)?,
        instructions: limit(|readers| &readers.instructions)?,
        lead: limit(|readers| &readers.lead)?,
        brief: limit(|readers| &readers.brief)?,
    })
}

fn texts(raw: &Named<At<String>>, words: &Words, report: &mut Report) -> Vec<(String, String)> {
    let lower = |(name, text): (&At<String>, &At<String>)| {
        require_name(SERVICE, name, report);
        (name.to_string(), words.say(SERVICE, Some(text), report))
    };
    raw.iter().map(lower).collect()
}

fn numbers(raw: &Named<At<u32>>, report: &mut Report) -> Vec<(String, u32)> {
    let lower = |(name, number): (&At<String>, &At<u32>)| {
        require_name(SERVICE, name, report);
        (name.to_string(), **number)
    };
    raw.iter().map(lower).collect()
}
