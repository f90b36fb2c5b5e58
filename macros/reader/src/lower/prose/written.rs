//! Every text of a contract with its place, and every name that a text can say.

use crate::lower::derived::FIELDS;
use crate::lower::require::{at, tools_of};
use crate::lower::words::DEFERRED;
use crate::model::{Contract, Kind, Type};
use crate::raw::{self, At, Files, Named};
use crate::report::Place;
use crate::rules::{REPORTS, STATES};
use crate::source::{ERRORS, SERVICE, TYPES};
use std::collections::HashSet;

const DERIVED: &str = "code message retryable retry_after_seconds capabilities wait_seconds idempotency_key checked expected observed \
    reported checked_at units refunded_at upstream_answer description inputSchema true false null";

pub(super) struct ContractText<'a> {
    pub(super) place: Place,
    pub(super) text: &'a str,
    /// In addition to those of every text.
    pub(super) placeholders: Option<Vec<&'a str>>,
}

pub(super) fn own_texts(tool: &raw::Tool) -> impl Iterator<Item = &At<String>> {
    let raw::Tool { summary, use_when, not_when, returns, notes, args, .. } = tool;
    let docs = args.iter().flat_map(Named::iter).map(|(_, field)| &field.doc);
    [summary, use_when, not_when, returns].into_iter().flatten().chain(notes.iter().flatten()).chain(docs)
}

/// Leaves out the framework's own texts, which are checked where they are filled in.
pub(super) fn collect_texts<'a>(contract: &'a Contract, files: &'a Files) -> Vec<ContractText<'a>> {
    let Files { service, errors, types, reserved: _, defaults: _, tools: _, is_whole: _ } = files;
    let mut all = Vec::new();
    let raw::ServiceFile {
        service: head,
        protocol: _,
        limits: _,
        readers: _,
        phrase,
        text,
        number: _,
        permission,
        toolset,
        resource,
        probe,
        state,
    } = service;
    all.extend(
        head.iter().flat_map(|head| [text_of(SERVICE, &head.title, None), text_of(SERVICE, &head.doc, Some(vec![]))]),
    );
    all.extend(phrase.iter().flat_map(phrases));
    all.extend(text.iter().map(|(_, text)| text_of(SERVICE, text, Some(vec![]))));
    all.extend(permission.iter().map(|(_, permission)| text_of(SERVICE, &permission.doc, None)));
    all.extend(toolset.iter().map(|(_, toolset)| text_of(SERVICE, &toolset.doc, None)));
    for (_, raw::Resource { doc, id: _, state: _, unreadable: _, capability, find }) in resource.iter() {
        all.push(text_of(SERVICE, doc, None));
        all.extend(find.iter().map(|text| text_of(SERVICE, text, Some(vec![]))));
        all.extend(capability.iter().flat_map(Named::iter).map(|(_, doc)| text_of(SERVICE, doc, None)));
    }
    for (_, raw::Probe { doc, baseline: _, unread, timeout, success }) in probe.iter() {
        all.push(text_of(SERVICE, doc, None));
        all.extend([unread, timeout, success].into_iter().flatten().map(|text| text_of(SERVICE, text, Some(vec![]))));
    }
    for (_, raw::State { brief, meaning, next_step, reported }) in state.iter() {
        let reported = reported.iter().flat_map(Named::iter).map(|(_, text)| text);
        let texts = [brief, meaning, next_step].into_iter().flatten().chain(reported);
        all.extend(texts.map(|text| text_of(SERVICE, text, Some(vec![]))));
    }
    for (code, error) in errors.error.iter() {
        let raw::Error { meaning, brief, remedy, fields, .. } = error;
        let carried = contract.errors.iter().find(|known| known.code == **code).map(|error| sayable_fields(error));
        let carried = carried.unwrap_or_default();
        all.extend([meaning, brief].into_iter().flatten().map(|text| text_of(ERRORS, text, Some(vec![]))));
        all.extend(remedy.iter().map(|text| text_of(ERRORS, text, Some(carried.clone()))));
        all.extend(fields.iter().flat_map(Named::iter).map(|(_, field)| text_of(ERRORS, &field.doc, None)));
    }
    for (_, ty) in types.r#type.iter() {
        let fields = ty.fields.iter().flat_map(Named::iter).map(|(_, field)| &field.doc);
        let values = ty.values.iter().filter_map(|values| values.members()).flat_map(Named::iter).map(|(_, doc)| doc);
        all.extend([&ty.doc].into_iter().chain(fields).chain(values).map(|text| text_of(TYPES, text, None)));
    }
    for (n, tool) in tools_of(files) {
        let raw::Tool { title, summary, use_when, not_when, returns, notes, args, .. } = &**tool;
        let told = [summary, use_when, not_when, returns].into_iter().flatten().chain(notes.iter().flatten());
        all.extend(told.map(|text| text_of(n, text, Some(vec![]))));
        let docs = args.iter().flat_map(Named::iter).map(|(_, field)| &field.doc);
        let examples = tool.example.iter().flatten().map(|example| &example.title);
        all.extend(title.iter().chain(docs).chain(examples).map(|text| text_of(n, text, None)));
    }
    all
}

fn phrases(phrase: &raw::Phrase) -> impl Iterator<Item = ContractText<'_>> {
    let raw::Phrase {
        needs,
        needs_capability,
        read,
        act,
        act_once,
        task,
        failures,
        capability,
        writes,
        refused,
        forbidden,
        busy,
        untrusted,
        secret,
        followed,
        under_way,
        same_write,
        other_write,
        lost_task,
        curable,
    } = phrase;
    let described = [
        (needs, &DEFERRED[1..2]),
        (needs_capability, &DEFERRED[1..3]),
        (read, &[]),
        (act, &[]),
        (act_once, &[]),
        (task, &[]),
        (failures, &DEFERRED[3..5]),
    ];
    let described = described.into_iter().filter_map(|(text, own)| Some((text.as_ref()?, own)));
    let described = described.map(|(text, own)| text_of(SERVICE, text, Some(own.into())));
    let told = [
        capability,
        writes,
        refused,
        forbidden,
        busy,
        untrusted,
        secret,
        followed,
        under_way,
        same_write,
        other_write,
        lost_task,
        curable,
    ];
    described.chain(told.into_iter().flatten().map(|text| text_of(SERVICE, text, Some(vec![]))))
}

fn text_of<'a>(file: usize, text: &'a At<String>, placeholders: Option<Vec<&'a str>>) -> ContractText<'a> {
    ContractText { place: at(file, text.span()), text, placeholders }
}

pub(super) fn vocabulary(files: &Files) -> HashSet<&str> {
    let Files { service, errors, types, reserved: _, defaults, tools, is_whole: _ } = files;
    let mut known: HashSet<&str> =
        [DERIVED, FIELDS].into_iter().flat_map(str::split_whitespace).chain(STATES).chain(REPORTS).collect();
    known.extend(
        service
            .permission
            .names()
            .chain(service.resource.names())
            .chain(service.probe.names())
            .chain(service.toolset.names()),
    );
    known.extend(service.resource.iter().flat_map(|(_, resource)| resource.capability.iter().flat_map(Named::names)));
    for (code, error) in errors.error.iter().chain(defaults.error.iter()) {
        known.insert(code.as_str());
        known.extend(error.fields.iter().flat_map(Named::names));
    }
    for (_, ty) in types.r#type.iter() {
        known.extend(
            ty.fields
                .iter()
                .flat_map(Named::names)
                .chain(ty.values.iter().filter_map(|values| values.members()).flat_map(Named::names)),
        );
    }
    for tool in tools.iter().flat_map(|(_, file)| &file.tool) {
        known.insert(tool.name.as_str());
        known.extend(tool.args.iter().flat_map(Named::names));
    }
    known
}

/// Leaves out text from outside: it must not enter a remedy, not even through a field.
fn sayable_fields(error: &crate::model::ErrorCode) -> Vec<&str> {
    let ours = error.fields.iter().filter(|field| match &field.ty {
        Type::String => field.ours,
        Type::Integer | Type::Boolean | Type::Timestamp => true,
        Type::Named(named) => matches!(named.kind, Kind::Integer { .. } | Kind::Enum(_)),
        Type::Url | Type::Picture | Type::List(_) => false,
    });
    let delay = error.retryable.then_some("retry_after_seconds");
    ours.map(|field| field.name.as_str()).chain(delay).collect()
}
