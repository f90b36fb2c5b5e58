//! Turns [`raw`](crate::raw) into [`model`](crate::model): resolves names, fills in defaults and derives what no contract writes.
//!
//! Each function reports every problem with its part, and returns `None` if it cannot make the part. Nothing stops at the first
//! mistake. `types` lowers types and fields, `tools` lowers tools, `errors` and `words` fill in the framework's defaults, `generated` knows
//! the names that the generated code uses, and `prose` judges the texts.

mod errors;
mod generated;
mod prose;
mod tools;
mod types;
mod words;

use crate::model::{Contract, Kind, Member, PermissionSpec, ProbeSpec, ReadersSpec, ResourceSpec, ServiceSpec};
use crate::names;
use crate::raw::{self, At, Files, Named};
use crate::report::{Place, Report, Source};
use crate::rules::{FALLBACK, REVISIONS, Rule};
use crate::source::{ERRORS, FIRST_TOOLS, SERVICE, TYPES};
pub(crate) use generated::rust_names;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use types::Types;
pub use words::TASKS_KEPT_DAYS;
use words::Words;

/// Most permissions: a set of them is one machine word.
const MAX_PERMISSIONS: usize = 64;

/// Largest `wait_seconds` of a call. An answer is never held longer.
const MAX_WAIT_SECONDS: u32 = 50;

/// Lowers the contract as far as possible. It is complete exactly if `report` has no problem.
pub(crate) fn lower(files: &Files, sources: &[Source], report: &mut Report) -> Option<Contract> {
    let raw::ServiceFile {
        service,
        protocol: _,
        limits: _,
        readers: _,
        phrase: _,
        text,
        number,
        permission,
        resource,
        probe,
        state: _,
    } = &files.service;
    let named: [(usize, Vec<&At<String>>); 6] = [
        (SERVICE, text.iter().map(|(name, _)| name).collect()),
        (SERVICE, number.iter().map(|(name, _)| name).collect()),
        (SERVICE, permission.iter().map(|(name, _)| name).collect()),
        (SERVICE, resource.iter().map(|(name, _)| name).collect()),
        (SERVICE, probe.iter().map(|(name, _)| name).collect()),
        (ERRORS, files.errors.error.iter().map(|(name, _)| name).collect()),
    ];
    for (file, names) in named {
        require_distinct(file, names, report);
    }
    generated::check(files, report);
    let words = Words::of(files);
    let types = Types::lower(&files.types.r#type, resource, report);
    let permissions = permissions(permission, report);
    let probes = probes(probe, &words, report);
    let errors = errors::lower(files, &types, &words, report);
    let resources = resources(resource, &types, &words, report);
    let states = words::states(files, &words, report);
    let scope = tools::Scope { permissions, probes, errors, resources, types, words, files };
    let domains = tools::lower(files, sources, &scope, report);
    let tools::Scope { permissions, probes, errors, resources, types, words, files: _ } = scope;
    let mut types = types.into_list();
    types.extend(tools::derived_types(domains.iter().flat_map(|domain| &domain.tools)));
    let contract = Contract {
        source: String::new(),
        service: service_of(service.as_ref()?, files, &words, report)?,
        readers: readers(files, report)?,
        phrases: words::phrases(files, &words, report),
        texts: texts(text, &words, report),
        numbers: numbers(number, report),
        permissions,
        resources,
        probes,
        errors,
        states,
        types,
        domains,
        files: Vec::new(),
    };
    whole(&contract, files, &words, report);
    Some(contract)
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
    let served = served(files, report);
    let mut limit = |most: Option<u32>, find: FindLimit| {
        let own = files.service.limits.as_ref().and_then(|limits| find(limits).as_ref());
        if let Some(number) = own.filter(|number| ***number == 0 || most.is_some_and(|most| ***number > most)) {
            let range = most.map_or("at least 1".to_owned(), |most| format!("from 1 to {most}"));
            report.add(Rule::Bounds, at(SERVICE, number.span()), format!("must be {range}"), None);
        }
        limit(files, find)
    };
    let wait = Some(MAX_WAIT_SECONDS);
    Some(ServiceSpec {
        name: name.to_string(),
        title: title.to_string(),
        version: version.to_string(),
        doc: words.fill(doc),
        served: served?,
        requests_per_minute: limit(None, |limits| &limits.requests_per_minute)?,
        poll_interval_seconds: limit(None, |limits| &limits.poll_interval_seconds)?,
        hold_seconds: limit(wait, |limits| &limits.hold_seconds)?,
        wait_seconds: limit(wait, |limits| &limits.wait_seconds)?,
    })
}

/// Returns the revisions that are served, the newest first.
fn served(files: &Files, report: &mut Report) -> Option<Vec<&'static str>> {
    let protocols = [&files.service.protocol, &files.defaults.protocol].map(Option::as_ref);
    let named = protocols.into_iter().flatten().find_map(|raw::Protocol { served }| served.as_ref())?;
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

/// One of the limits.
type FindLimit = fn(&raw::Limits) -> &Option<At<u32>>;

/// Returns the contract's limit or, if it has none, the framework's.
fn limit(files: &Files, find: FindLimit) -> Option<u32> {
    let limits = [&files.service.limits, &files.defaults.limits].map(Option::as_ref);
    limits.into_iter().flatten().find_map(|limits| find(limits).as_ref()).map(|number| **number)
}

fn permissions(raw: &Named<raw::Permission>, report: &mut Report) -> Vec<Arc<PermissionSpec>> {
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
        Arc::new(PermissionSpec { name: name.to_string(), doc: permission.doc.to_string(), grants })
    };
    raw.iter().enumerate().map(lower).collect()
}

/// Returns all positions that can be reached from `start` in one or more steps.
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
    let lower = |(name, raw::Probe { doc, baseline, unread, timeout }): (&At<String>, &raw::Probe)| {
        require_name(SERVICE, name, report);
        require_text(SERVICE, doc, report);
        let [unread, timeout] = [unread, timeout].map(|text| words.say(SERVICE, text.as_ref(), None, report));
        Arc::new(ProbeSpec {
            name: name.to_string(),
            doc: doc.to_string(),
            baseline: baseline.unwrap_or(false),
            unread,
            timeout,
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
    let lower = |(name, raw::Resource { doc, id, capability, find }): (&'a At<String>, &'a raw::Resource)| {
        require_name(SERVICE, name, report);
        require_text(SERVICE, doc, report);
        let written = id;
        let id = types.named(SERVICE, written, report)?;
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
        Some(Arc::new(ResourceSpec {
            name: name.to_string(),
            doc: doc.to_string(),
            id,
            capabilities: members(SERVICE, capability.as_ref(), report),
            find: words.say(SERVICE, find.as_ref(), None, report),
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

/// Checks rules that concern the contract as a whole.
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
    let mut limit = |find: fn(&raw::Readers) -> &Option<At<u32>>| {
        if let Some(number) = readers[0].and_then(|own| find(own).as_ref()).filter(|number| ***number == 0) {
            report.add(Rule::Bounds, at(SERVICE, number.span()), "must be at least 1", None);
        }
        readers.into_iter().flatten().find_map(|readers| find(readers).as_deref().copied())
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
        (name.to_string(), words.say(SERVICE, Some(text), None, report))
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

/// Reports names that differ on the wire but would be the same Rust variant.
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
