//! Judges the texts of a contract: that they are plain, say only names that exist, and are short enough for those who read them.

use super::at;
use super::words::{DEFERRED, Words};
use crate::describe::{description, lines};
use crate::documents::listed_item;
use crate::model::{Contract, ToolSpec};
use crate::raw::{self, At, Files, Named};
use crate::report::{Place, Report};
use crate::rules::{REPORTS, Rule, STATES};
use crate::sentences::{instructions, instructions_text, joined, names, words};
use crate::source::{ERRORS, FIRST_TOOLS, SERVICE, TYPES};
use std::collections::HashSet;
use std::ops::Range;

/// The names that every contract has: members of failures, of tasks and of their arguments.
const DERIVED: &str = "code message retryable retry_after_seconds capabilities task_id wait_seconds idempotency_key tool status terminal \
    idempotent_hit request_matches poll_after_seconds next_step created_at deadline_at finished_at evidence refund checked expected \
    observed reported checked_at units refunded_at upstream_answer description inputSchema true false null";

/// A text as it is written.
struct Written<'a> {
    place: Place,
    text: &'a str,
    /// The placeholders that it can have besides those of every text. `None`: it has none at all.
    placeholders: Option<Vec<&'a str>>,
}

pub(super) fn check(contract: &Contract, files: &Files, words: &Words, report: &mut Report) {
    let written = written(files);
    for text in &written {
        plain(text, report);
        placeholders(text, words, report);
    }
    briefs(contract, files, words, report);
    // A name that another mistake hides, or has changed, would be a second mistake of every text that says it.
    if report.count() > 0 {
        return;
    }
    let vocabulary = vocabulary(files);
    written.iter().for_each(|text| unknown_words(text, &vocabulary, report));
    next_steps(contract, files, report);
    for (n, (_, file)) in files.tools.iter().enumerate() {
        for raw in &file.tool {
            let lowered = contract.tools().find(|tool| tool.name == **raw.name);
            tool(contract, lowered, FIRST_TOOLS + n, raw, report);
        }
    }
    if report.count() == 0 {
        whole(contract, files, report);
    }
}

/// Checks what is said of one tool.
fn tool(contract: &Contract, lowered: Option<&ToolSpec>, file: usize, raw: &raw::Tool, report: &mut Report) {
    let tools: Vec<&str> = contract.tools().map(|tool| tool.name.as_str()).collect();
    if let Some(not_when) = &raw.not_when
        && !tools.iter().any(|name| *name != raw.name.as_str() && names(not_when, name))
    {
        let help = Some("say which tool to use instead, or leave `not_when` out".to_owned());
        report.add(Rule::NoAlternative, at(file, not_when.span()), "this names no other tool", help);
    }
    let limit = contract.readers.argument as usize;
    for (name, field) in raw.args.iter().flat_map(Named::iter) {
        let length = field.doc.chars().count();
        if length > limit {
            let message = format!("the doc of `{}` has {length} characters; clients take {limit}", **name);
            report.add(Rule::ArgumentTooLong, at(file, field.doc.span()), message, None);
        }
    }
    let Some(tool) = lowered else { return };
    let text = description(contract, tool);
    let place = raw.summary.as_ref().unwrap_or(&raw.name).span();
    let (length, limit) = (text.chars().count(), contract.readers.description as usize);
    if length > limit {
        let shares = lines(contract, tool).into_iter().flatten();
        let shares: Vec<_> = shares.map(|part| format!("{} {}", part.key, part.text.chars().count())).collect();
        let message = format!("the description of `{}` has {length} characters; clients take {limit}", tool.name);
        report.add(Rule::DescriptionTooLong, at(file, place.clone()), message, Some(shares.join(", ")));
    }
    let docs = tool.args.iter().map(|field| field.doc.as_str());
    let told = docs.fold(text, |told, doc| told + "\n" + doc);
    let hidden = contract.tools().filter(|other| names(&told, &other.name));
    let granted = |permission: &str| {
        tool.permission
            .grants
            .iter()
            .any(|at| contract.permissions.get(*at).is_some_and(|known| known.name == permission))
    };
    for other in hidden.filter(|other| !granted(&other.permission.name)) {
        let place = own_texts(raw).find(|text| names(text, &other.name)).map_or(place.clone(), At::span);
        let (own, others) = (&tool.permission.name, &other.permission.name);
        let message = format!("a key with `{own}` alone may call `{}`, and not `{}`", tool.name, other.name);
        let help = format!("leave `{}` out, or let `{own}` imply `{others}`", other.name);
        report.add(Rule::HiddenTool, at(file, place), message, Some(help));
    }
}

/// Checks the lengths of what is read at once.
fn whole(contract: &Contract, files: &Files, report: &mut Report) {
    let service = files.service.service.as_ref();
    let [list, doc] = [service.map(|service| service.tools.span()), service.map(|service| service.doc.span())];
    let mut bound = |rule, what: &str, length: usize, limit: u32, place: Option<Range<usize>>, help: Option<String>| {
        if length > limit as usize {
            let message = format!("{what} has {length} characters; clients take {limit}");
            report.add(rule, at(SERVICE, place.unwrap_or_default()), message, help);
        }
    };
    let sizes: Vec<_> =
        contract.tools().map(|tool| (&tool.name, listed_item(contract, tool).chars().count())).collect();
    let length = sizes.iter().map(|(_, size)| size + 1).sum::<usize>() + "{\"tools\":[]}".len() - 1;
    let shares = sizes.iter().map(|(name, size)| format!("{name} {size}")).collect::<Vec<_>>().join(", ");
    let raise = format!("{shares}; where your clients take more, raise `list` under `[readers]`");
    bound(Rule::ListTooLong, "the list of tools", length, contract.readers.list, list, Some(raise));
    let length = instructions_text(contract).chars().count();
    bound(
        Rule::InstructionsTooLong,
        "the text of all instructions",
        length,
        contract.readers.instructions,
        doc.clone(),
        None,
    );
    let lead = instructions(contract).first().map_or(0, |paragraph| joined(paragraph).chars().count());
    let help = "it is made of `doc` and, under `[phrase]`, `capability`, `writes` and `refused`".to_owned();
    bound(
        Rule::InstructionsLead,
        "the first paragraph of the instructions",
        lead,
        contract.readers.lead,
        doc,
        Some(help),
    );
}

fn briefs(contract: &Contract, files: &Files, words: &Words, report: &mut Report) {
    let limit = contract.readers.brief as usize;
    let errors = files.errors.error.iter().map(|(_, error)| (ERRORS, &error.brief));
    let states = files.service.state.iter().map(|(_, state)| (SERVICE, &state.brief));
    for (file, brief) in errors.chain(states).filter_map(|(file, brief)| Some((file, brief.as_ref()?))) {
        let length = words.fill(brief).chars().count();
        if length > limit {
            let message = format!("a brief has at most {limit} characters, and this has {length}");
            report.add(Rule::BriefTooLong, at(file, brief.span()), message, None);
        }
    }
}

/// What follows a state that is no end, or no clear one, is a call.
fn next_steps(contract: &Contract, files: &Files, report: &mut Report) {
    const UNCLEAR: [&str; 3] = ["dispatched", "success_unverified", "timeout"];
    for state in contract.states.iter().filter(|state| UNCLEAR.contains(&state.name.as_str())) {
        let own = files.service.state.iter().find(|(name, _)| name.as_str() == state.name);
        let Some(next) = own.and_then(|(_, own)| own.next_step.as_ref()) else { continue };
        if !contract.tools().any(|tool| names(&state.next_step, &tool.name)) {
            let message = format!("what follows `{}` names no tool to call", state.name);
            report.add(Rule::NextStepNamesATool, at(SERVICE, next.span()), message, None);
        }
    }
}

fn plain(Written { place, text, .. }: &Written<'_>, report: &mut Report) {
    let odd = text.chars().find(|c| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    });
    let tag = text.find('<').filter(|at| {
        let rest = text[at + 1..].trim_start_matches('/');
        rest.starts_with(|c: char| c.is_ascii_alphabetic()) && rest.contains('>')
    });
    let message = match (odd, tag) {
        (Some('\n'), _) => "a text is one line; end it with `\\` where it goes on in the next".to_owned(),
        (Some(odd), _) => format!("a text has no character U+{:04X}", u32::from(odd)),
        (None, Some(_)) => "a text has no markup".to_owned(),
        (None, None) => return,
    };
    report.add(Rule::PlainText, place.clone(), message, None);
}

fn placeholders(Written { place, text, placeholders }: &Written<'_>, words: &Words, report: &mut Report) {
    let own = placeholders.iter().flatten().copied();
    let known: Vec<&str> = words.known().filter(|_| placeholders.is_some()).chain(own).collect();
    for name in slots(text).filter(|name| !known.contains(name)) {
        report.unknown(Rule::UnknownPlaceholder, place.clone(), "placeholder", name, known.iter().copied());
    }
}

/// Returns the placeholders of a text: names in braces.
fn slots(text: &str) -> impl Iterator<Item = &str> {
    let inner = text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    inner.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()) && is_word(name))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn unknown_words(Written { place, text, .. }: &Written<'_>, vocabulary: &HashSet<&str>, report: &mut Report) {
    let known = |word: &str| vocabulary.contains(word) || word.bytes().all(|b| b.is_ascii_digit());
    let quoted = text.split('`').skip(1).step_by(2);
    let quoted = quoted.filter(|quoted| !quoted.split('.').all(|word| is_word(word) && known(word)));
    let slots: Vec<&str> = slots(text).collect();
    let loose =
        words(text).map(|(_, word)| word).filter(|word| word.contains('_') && !known(word) && !slots.contains(word));
    let mut unknown: Vec<&str> = quoted.chain(loose).collect();
    unknown.sort_unstable();
    unknown.dedup();
    for word in unknown {
        let mut near: Vec<&str> = vocabulary.iter().copied().collect();
        near.sort_unstable();
        let help = crate::names::nearest(word, near).map_or_else(
            || "write it without backticks, or declare it".to_owned(),
            |meant| format!("did you mean `{meant}`?"),
        );
        report.add(Rule::UnknownWord, place.clone(), format!("`{word}` is no name of this contract"), Some(help));
    }
}

/// Returns every name that a text can say.
fn vocabulary(files: &Files) -> HashSet<&str> {
    let Files { service, errors, types, reserved: _, defaults, tools } = files;
    let mut known: HashSet<&str> = DERIVED.split_whitespace().chain(STATES).chain(REPORTS).collect();
    known.extend(service.permission.names().chain(service.resource.names()).chain(service.probe.names()));
    known.extend(service.resource.iter().flat_map(|(_, resource)| resource.capability.iter().flat_map(Named::names)));
    for (code, error) in errors.error.iter().chain(defaults.error.iter()) {
        known.insert(code.as_str());
        known.extend(error.fields.iter().flat_map(Named::names));
    }
    for (_, ty) in types.r#type.iter() {
        known.extend(ty.fields.iter().flat_map(Named::names).chain(ty.values.iter().flat_map(Named::names)));
    }
    for tool in tools.iter().flat_map(|(_, file)| &file.tool) {
        known.insert(tool.name.as_str());
        known.extend(tool.args.iter().flat_map(Named::names));
    }
    known
}

/// Returns the texts of a tool that its description is made of.
fn own_texts(tool: &raw::Tool) -> impl Iterator<Item = &At<String>> {
    let raw::Tool { summary, use_when, not_when, returns, notes, args, .. } = tool;
    let docs = args.iter().flat_map(Named::iter).map(|(_, field)| &field.doc);
    [summary, use_when, not_when, returns].into_iter().flatten().chain(notes.iter().flatten()).chain(docs)
}

/// Returns every text of the contract. The framework's own are judged where they are filled in.
fn written(files: &Files) -> Vec<Written<'_>> {
    let Files { service, errors, types, reserved: _, defaults: _, tools } = files;
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
        resource,
        probe,
        state,
    } = service;
    all.extend(head.iter().flat_map(|head| [said(SERVICE, &head.title, None), said(SERVICE, &head.doc, Some(vec![]))]));
    if let Some(phrase) = phrase {
        let raw::Phrase {
            needs,
            needs_capability,
            read,
            task,
            failures,
            capability,
            writes,
            refused,
            forbidden,
            busy,
            untrusted,
            secret,
            same_write,
            other_write,
            lost_task,
            curable,
        } = phrase;
        let described = [needs, needs_capability, read, task, failures].into_iter().flatten();
        all.extend(described.map(|text| said(SERVICE, text, Some(DEFERRED.into()))));
        let told = [
            capability,
            writes,
            refused,
            forbidden,
            busy,
            untrusted,
            secret,
            same_write,
            other_write,
            lost_task,
            curable,
        ];
        all.extend(told.into_iter().flatten().map(|text| said(SERVICE, text, Some(vec![]))));
    }
    all.extend(text.iter().map(|(_, text)| said(SERVICE, text, Some(vec![]))));
    all.extend(permission.iter().map(|(_, permission)| said(SERVICE, &permission.doc, None)));
    for (_, raw::Resource { doc, id: _, capability, find }) in resource.iter() {
        all.push(said(SERVICE, doc, None));
        all.extend(find.iter().map(|text| said(SERVICE, text, Some(vec![]))));
        all.extend(capability.iter().flat_map(Named::iter).map(|(_, doc)| said(SERVICE, doc, None)));
    }
    for (_, raw::Probe { doc, baseline: _, unread, timeout }) in probe.iter() {
        all.push(said(SERVICE, doc, None));
        all.extend([unread, timeout].into_iter().flatten().map(|text| said(SERVICE, text, Some(vec![]))));
    }
    for (_, raw::State { brief, meaning, next_step, reported }) in state.iter() {
        let reported = reported.iter().flat_map(Named::iter).map(|(_, text)| text);
        let texts = [brief, meaning, next_step].into_iter().flatten().chain(reported);
        all.extend(texts.map(|text| said(SERVICE, text, Some(vec![]))));
    }
    for (_, error) in errors.error.iter() {
        let raw::Error { meaning, brief, remedy, fields, .. } = error;
        // What others wrote never enters a remedy, not even by a field.
        let ours = fields
            .iter()
            .flat_map(Named::iter)
            .filter(|(_, field)| ![&field.untrusted, &field.secret].into_iter().flatten().any(|flag| **flag));
        let carried = ours.map(|(name, _)| name.as_str()).chain(["retry_after_seconds", "task_id", "request_id"]);
        let carried: Vec<&str> = carried.collect();
        all.extend([meaning, brief].into_iter().flatten().map(|text| said(ERRORS, text, Some(vec![]))));
        all.extend(remedy.iter().map(|text| said(ERRORS, text, Some(carried.clone()))));
        all.extend(fields.iter().flat_map(Named::iter).map(|(_, field)| said(ERRORS, &field.doc, None)));
    }
    for (_, ty) in types.r#type.iter() {
        let fields = ty.fields.iter().flat_map(Named::iter).map(|(_, field)| &field.doc);
        let values = ty.values.iter().flat_map(Named::iter).map(|(_, doc)| doc);
        all.extend([&ty.doc].into_iter().chain(fields).chain(values).map(|text| said(TYPES, text, None)));
    }
    for (n, tool) in (FIRST_TOOLS..).zip(tools).flat_map(|(n, (_, file))| file.tool.iter().map(move |tool| (n, tool))) {
        let raw::Tool { title, summary, use_when, not_when, returns, notes, args, .. } = &**tool;
        let told = [summary, use_when, not_when, returns].into_iter().flatten().chain(notes.iter().flatten());
        all.extend(told.map(|text| said(n, text, Some(vec![]))));
        let docs = args.iter().flat_map(Named::iter).map(|(_, field)| &field.doc);
        all.extend(title.iter().chain(docs).map(|text| said(n, text, None)));
    }
    all
}

fn said<'a>(file: usize, text: &'a At<String>, placeholders: Option<Vec<&'a str>>) -> Written<'a> {
    Written { place: at(file, text.span()), text, placeholders }
}
