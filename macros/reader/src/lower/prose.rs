//! Checks the texts of a contract: they are plain, contain only names that exist, and are short
//! enough for their readers.

mod retired;
mod written;

use super::require::{at, tools_of};
use super::words::Words;
use crate::describe::{description, lines};
use crate::documents::list_item;
use crate::model::{Contract, Phrases, ReadersSpec, ToolSpec, ToolsetSpec};
use crate::raw::{self, At, Files, Named};
use crate::report::{Place, Report};
use crate::rules::{FALLBACK, Rule};
use crate::sentences::{instructions, instructions_text, join, names_tool, sentences, tools_in, words};
use crate::source::{ERRORS, SERVICE};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;
use toolwarrant_common::{ListForm, find_deceiving, nearest};
use written::{ContractText, collect_texts, own_texts, vocabulary};

pub(super) fn check(contract: &Contract, files: &Files, words: &Words, report: &mut Report) {
    let written = collect_texts(contract, files);
    for text in &written {
        plain(text, report);
        placeholders(text, words, report);
    }
    for name in files.service.number.keys().filter(|name| words.is_taken(name)) {
        let help = Some("name the number otherwise".to_owned());
        let message = format!("`{{{}}}` stands for something else", **name);
        report.add(Rule::DuplicateName, at(SERVICE, name.span()), message, help);
    }
    let failures = files.service.phrase.as_ref().and_then(|phrase| phrase.failures.as_ref());
    for (text, slot) in failures.into_iter().flat_map(|text| ["{final}", "{retryable}"].map(|slot| (text, slot))) {
        if !text.contains(slot) {
            report.add(Rule::MissingText, at(SERVICE, text.span()), format!("`{slot}`, the codes, is missing"), None);
        }
    }
    briefs(contract, files, words, report);
    retired::check_values(files, report);
    // Another mistake may hide or change a name, and each text with that name would be a further
    // mistake.
    if report.count() > 0 {
        return;
    }
    let vocabulary = vocabulary(files);
    written.iter().for_each(|text| unknown_words(text, &vocabulary, report));
    retired::check_texts(&written, &vocabulary, files, report);
    next_steps(contract, files, report);
    for ((file, raw), lowered) in tools_of(files).zip(contract.tools()) {
        tool(contract, lowered, file, raw, report);
    }
    if report.count() == 0 {
        whole(contract, files, report);
    }
}

fn tool(contract: &Contract, tool: &ToolSpec, file: usize, raw: &raw::Tool, report: &mut Report) {
    if let Some(not_when) = &raw.not_when
        && !report.is_reported(&at(file, not_when.span()))
        && tools_in(contract, &tool.not_when).all(|named| named.name == tool.name)
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
    let text = description(contract, tool);
    let place = raw.summary.as_ref().unwrap_or(&raw.name).span();
    let (length, limit) = (text.chars().count(), contract.readers.description as usize);
    if length > limit {
        let shares = lines(contract, tool).into_iter().flatten();
        let shares = shares.map(|part| (part.key.to_owned(), part.text.chars().count())).collect();
        let what = format!("the description of `{}`", tool.name);
        let message = measure(Rule::DescriptionTooLong, &what, length, limit);
        report.add(Rule::DescriptionTooLong, at(file, place.clone()), message, Some(shorten(length - limit, shares)));
    }
    let docs = tool.args.iter().map(|field| field.doc.as_str());
    let told = docs.fold(text + "\n" + &tool.title, |told, doc| told + "\n" + doc);
    let mut seen = HashSet::new();
    let hidden = tools_in(contract, &told).filter(|other| seen.insert(&other.name));
    for other in hidden.filter(|other| !tool.implies(other)) {
        let place = own_texts(raw).find(|text| names_tool(text, &other.name)).map_or(place.clone(), At::span);
        let own = &tool.permission.name;
        let part = lines(contract, tool).into_iter().flatten().find(|part| names_tool(&part.text, &other.name));
        let part = part.map_or_else(String::new, |part| format!(", which its `{}` names", part.key));
        let message = match &other.toolset {
            Some(set) if tool.permission.grants.contains(&other.permission.index) => {
                format!(
                    "a server without `--toolsets {}` offers `{}`, and not `{}`{part}",
                    set.name, tool.name, other.name
                )
            }
            _ => format!("a key with `{own}` alone may call `{}`, and not `{}`{part}", tool.name, other.name),
        };
        let help = format!(
            "leave `{}` out; the `doc` of `[service]` can name it, and each of its sentences goes only to keys that may call all tools in it",
            other.name
        );
        report.add(Rule::HiddenTool, at(file, place), message, Some(help));
    }
}

fn whole(contract: &Contract, files: &Files, report: &mut Report) {
    let service = files.service.service.as_ref();
    let [list, doc] = [service.map(|service| service.tools.span()), service.map(|service| service.doc.span())];
    let mut bound = |rule, what: &str, length: usize, limit: u32, place: Option<Range<usize>>, help: String| {
        let is_over = length > limit as usize;
        if is_over {
            let message = measure(rule, what, length, limit as usize);
            report.add(rule, at(SERVICE, place.unwrap_or_default()), message, Some(help));
        }
        is_over
    };
    let plain = (ListForm::Plain, Rule::ListTooLong, "the list of tools", "list");
    let what = "the list of tools with their output schemas";
    let with_outputs = (ListForm::WithOutputs, Rule::ListWithOutputsTooLong, what, "list_with_outputs");
    let shown = contract.service.served.iter().any(|revision| *revision != FALLBACK).then_some(with_outputs);
    for (form, rule, what, key) in [plain].into_iter().chain(shown) {
        let mut judge = |what: &str, toolset: Option<&ToolsetSpec>, place| {
            let limit = match form {
                ListForm::Plain => toolset.map_or(contract.readers.list, |set| set.list),
                ListForm::WithOutputs => {
                    toolset.map_or(contract.readers.list_with_outputs, |set| set.list_with_outputs)
                }
            };
            let size = |tool| list_item(contract, tool, form).chars().count();
            let sizes: Vec<_> = contract.tools_with(toolset).map(|tool| (tool.name.clone(), size(tool))).collect();
            let length = sizes.iter().map(|(_, size)| size + 1).sum::<usize>() + "{\"tools\":[]}".len() - 1;
            let shares = shorten(length.saturating_sub(limit as usize), sizes);
            let table = toolset.map_or("readers".to_owned(), |toolset| format!("toolset.{}", toolset.name));
            let raise = format!("{shares}; where your clients take more, raise `{key}` under `[{table}]`");
            bound(rule, what, length, limit, place, raise)
        };
        // A list that is too long by itself is shortened first.
        if !judge(what, None, list.clone()) {
            for (toolset, name) in contract.toolsets.iter().zip(files.service.toolset.keys()) {
                let what = format!("{what} of a server with `--toolsets {}`", toolset.name);
                judge(&what, Some(toolset), Some(name.span()));
            }
        }
    }
    let lead = instructions(contract).first().map_or_else(String::new, |paragraph| join(paragraph));
    let mut told = |rule, what, text: String, limit: u32| {
        let length = text.chars().count();
        let help = shorten(length.saturating_sub(limit as usize), parts_of_instructions(contract, &text));
        bound(rule, what, length, limit, doc.clone(), help);
    };
    let ReadersSpec { instructions: all, lead: first, .. } = contract.readers;
    let followed = if contract.service.follows { &contract.phrases.followed } else { "" };
    told(Rule::InstructionsTooLong, "the text of all instructions", instructions_text(contract) + followed, all);
    told(Rule::InstructionsLead, "the first paragraph of the instructions", lead, first);
}

fn parts_of_instructions(contract: &Contract, text: &str) -> Vec<(String, usize)> {
    let Phrases { capability, writes, refused, forbidden, busy, untrusted, secret, followed, .. } = &contract.phrases;
    let own = [
        ("`doc`", &contract.service.doc),
        ("`phrase.capability`", capability),
        ("`phrase.writes`", writes),
        ("`phrase.refused`", refused),
        ("`phrase.forbidden`", forbidden),
        ("`phrase.busy`", busy),
        ("`phrase.untrusted`", untrusted),
        ("`phrase.secret`", secret),
        ("`phrase.followed`", followed),
    ];
    let states = contract.states.iter().map(|state| (format!("`state.{}.meaning`", state.name), &state.meaning));
    let all = own.into_iter().map(|(key, part)| (key.to_owned(), part)).chain(states);
    all.filter(|(_, part)| text.contains(part.as_str())).map(|(key, part)| (key, part.chars().count())).collect()
}

fn measure(rule: Rule, what: &str, length: usize, limit: usize) -> String {
    let whom = match rule {
        Rule::DescriptionTooLong => "OpenAI-shaped gateways and Claude Code take",
        Rule::InstructionsTooLong => "Claude Code takes",
        Rule::InstructionsLead => "ChatGPT reads",
        _ => "hosts that show a model all tools at once, such as ChatGPT, take",
    };
    format!("{what} has {length} characters, {} more than {whom} whole: {limit}", length.saturating_sub(limit))
}

fn shorten(over: usize, mut parts: Vec<(String, usize)>) -> String {
    parts.sort_by_key(|(_, length)| Reverse(*length));
    let parts: Vec<_> = parts.iter().map(|(key, length)| format!("{key} {length}")).collect();
    format!("shorten by {over}: {}", parts.join(", "))
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

/// Requires a call that every reader of tasks may make after a state that is not final or not
/// certain.
fn next_steps(contract: &Contract, files: &Files, report: &mut Report) {
    const UNCLEAR: [&str; 3] = ["dispatched", "success_unverified", "timeout"];
    let Some(reading) = contract.read_tool() else { return };
    let mut raws = tools_of(files).filter(|(_, raw)| *raw.name == reading.name);
    let place = raws.next().map(|(file, raw)| at(file, raw.name.span()));
    let granted = reading.permission.grants.iter().fold(0, |set, bit| set | 1_u64 << bit);
    let is_call = |state: &str, text: &str| match state {
        "dispatched" => names_tool(text, &reading.name),
        _ => sentences(contract, text).iter().any(|sentence| sentence.needs != 0 && sentence.needs & !granted == 0),
    };
    let mut require = |state: &str, text: &str, place: Option<Place>| {
        if let (false, Some(place)) = (is_call(state, text), place) {
            let message = format!("what follows `{state}` names no tool that every reader of a task may call");
            let help = format!("name one that `{}` permits", reading.permission.name);
            report.add(Rule::NextStepNamesATool, place, message, Some(help));
        }
    };
    for state in contract.states.iter().filter(|state| UNCLEAR.contains(&state.name.as_str())) {
        let own = files.service.state.get(&state.name);
        let written = own.and_then(|own| own.next_step.as_ref()).map(|text| at(SERVICE, text.span()));
        require(&state.name, &state.next_step, written.or_else(|| place.clone()));
        let reported = own.and_then(|own| own.reported.as_ref()).into_iter().flat_map(Named::iter);
        for ((_, text), (_, filled)) in reported.zip(&state.reported) {
            require(&state.name, filled, Some(at(SERVICE, text.span())));
        }
    }
    for ((_, raw), probe) in files.service.probe.iter().zip(&contract.probes) {
        if let Some(text) = &raw.timeout {
            require("timeout", &probe.timeout, Some(at(SERVICE, text.span())));
        }
    }
}

fn plain(ContractText { place, text, .. }: &ContractText<'_>, report: &mut Report) {
    let odd = find_deceiving(text);
    let tag = text.match_indices('<').any(|(at, _)| {
        let rest = text[at + 1..].trim_start_matches('/');
        rest.starts_with(|c: char| c.is_ascii_alphabetic()) && rest.contains('>')
    });
    let message = match odd {
        Some('\n') => "a text is one line; end it with `\\` where it goes on in the next".to_owned(),
        Some(odd) => format!("a text has no character U+{:04X}", u32::from(odd)),
        None if tag => "a text has no markup, and nothing that looks like a tag".to_owned(),
        None => return,
    };
    report.add(Rule::PlainText, place.clone(), message, None);
}

fn placeholders(ContractText { place, text, placeholders }: &ContractText<'_>, words: &Words, report: &mut Report) {
    let own = placeholders.iter().flatten().copied();
    let known: Vec<&str> = words.placeholders().filter(|_| placeholders.is_some()).chain(own).collect();
    for name in slots(text).filter(|name| !known.contains(name)) {
        report.unknown(Rule::UnknownPlaceholder, place.clone(), "placeholder", name, known.iter().copied());
    }
}

/// Returns the contents of each pair of braces, or the text after an unclosed one. Skips lists,
/// such as `{code, message}`, and JSON.
fn slots(text: &str) -> impl Iterator<Item = &str> {
    let inner = text.split('{').skip(1).map(|rest| rest.split_once('}').map_or(rest, |(name, _)| name));
    inner.filter(|inner| !inner.contains([',', ':', '"']))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn unknown_words(ContractText { place, text, .. }: &ContractText<'_>, vocabulary: &HashSet<&str>, report: &mut Report) {
    let known = |word: &str| vocabulary.contains(word) || word.bytes().all(|b| b.is_ascii_digit());
    if text.matches('`').count() % 2 == 1 {
        report.add(Rule::UnknownWord, place.clone(), "a backtick is not closed", None);
        return;
    }
    let quoted = text.split('`').skip(1).step_by(2);
    let quoted =
        quoted.filter(|quoted| !quoted.starts_with('{') && !quoted.split('.').all(|word| is_word(word) && known(word)));
    let slots: Vec<&str> = slots(text).collect();
    let loose = words(text).filter(|word| word.contains('_') && !known(word) && !slots.contains(word));
    let mut unknown: Vec<&str> = quoted.chain(loose).collect();
    unknown.sort_unstable();
    unknown.dedup();
    for word in unknown {
        let mut near: Vec<&str> = vocabulary.iter().copied().collect();
        near.sort_unstable();
        let help = match nearest(word, near) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "write it without backticks, or declare it".to_owned(),
        };
        report.add(Rule::UnknownWord, place.clone(), format!("`{word}` is no name of this contract"), Some(help));
    }
}
