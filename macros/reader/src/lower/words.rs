//! The texts of a contract and of the framework, with their placeholders filled in.
//!
//! Placeholders that depend on one tool or one failure ([`DEFERRED`]) remain for its description or
//! message.

use super::require::{at, require_text, tools_of};
use crate::model::{Phrases, State};
use crate::names::{fill_resource, noun};
use crate::raw::{self, At, EffectName, Files, Named};
use crate::report::Report;
use crate::rules::{REPORTS, Rule, STATES};
use crate::source::SERVICE;
use std::cell::RefCell;
use std::collections::HashMap;
use toolwarrant_common::{MAX_WAIT_SECONDS, TASKS_KEPT_DAYS};

pub(crate) const DEFERRED: [&str; 8] =
    ["resource", "permission", "capability", "final", "retryable", "retry_after_seconds", "task_id", "request_id"];

#[derive(Debug)]
pub(crate) struct Words {
    resource: String,
    values: Vec<(String, String)>,
    pub(super) tasks: bool,
    acts: bool,
    pub(super) acts_once: bool,
    requires: bool,
    capabilities: bool,
    pub(super) written: RefCell<HashMap<String, String>>,
}

impl Words {
    pub(crate) fn of(files: &Files) -> Self {
        let tools = || tools_of(files).map(|(_, tool)| tool);
        let reads = tools().find(|tool| *tool.effect == EffectName::ReadTask);
        let limit = |key| limit(files, key).map_or_else(String::new, |limit| limit.to_string());
        let mut values: Vec<_> = [
            ("read_tool", reads.map_or_else(|| "the tool that reads tasks".to_owned(), |tool| tool.name.to_string())),
            ("look_tools", look_tools(files)),
            ("kept_days", TASKS_KEPT_DAYS.to_string()),
            ("poll_interval_seconds", limit(|limits| &limits.poll_interval_seconds)),
            ("wait_seconds", limit(|limits| &limits.wait_seconds)),
            ("hold_seconds", limit(|limits| &limits.hold_seconds)),
            ("max_wait_seconds", MAX_WAIT_SECONDS.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        values.extend(files.service.number.iter().map(|(name, number)| (name.to_string(), group_digits(**number))));
        let resource = &files.service.resource;
        let mut words = Self {
            resource: noun(resource.names()),
            values,
            tasks: tools().any(|tool| matches!(*tool.effect, EffectName::Task | EffectName::ReadTask)),
            acts: tools().any(|tool| *tool.effect == EffectName::Act),
            acts_once: tools().any(|tool| {
                *tool.effect == EffectName::Act && tool.idempotent.as_ref().is_some_and(|idempotent| !**idempotent)
            }),
            requires: tools().any(|tool| tool.target.as_ref().is_some_and(|target| target.requires.is_some())),
            capabilities: resource.iter().any(|(_, resource)| resource.capability.is_some()),
            written: RefCell::default(),
        };
        let briefs = STATES.iter().filter_map(|name| {
            let brief = first(states_of(files, name), |state| &state.brief)?;
            Some(format!("{name} ({})", words.fill(brief)))
        });
        let briefs = briefs.collect::<Vec<_>>().join(", ");
        words.values.push(("states".to_owned(), briefs));
        words
    }

    pub(crate) fn is_taken(&self, name: &str) -> bool {
        let numbered = self.values.iter().filter(|(known, _)| known == name).count();
        numbered > 1 || DEFERRED.contains(&name)
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name.as_str()).chain(["resource"])
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        self.keep(text, fill_resource(&self.replace_shared(text), &self.resource))
    }

    pub(crate) fn fill_shared(&self, text: &str) -> String {
        self.keep(text, self.replace_shared(text))
    }

    fn keep(&self, text: &str, filled: String) -> String {
        if filled != text {
            self.written.borrow_mut().insert(filled.clone(), text.to_owned());
        }
        filled
    }

    fn replace_shared(&self, text: &str) -> String {
        let fill = |text: String, (name, value): &(String, String)| text.replace(&format!("{{{name}}}"), value);
        self.values.iter().fold(text.to_owned(), fill)
    }

    pub(crate) fn has_tasks(&self) -> bool {
        self.tasks
    }

    pub(crate) fn read_tool(&self) -> &str {
        self.values.first().map_or("", |(_, name)| name)
    }

    pub(crate) fn say(&self, file: usize, text: Option<&At<String>>, report: &mut Report) -> String {
        let Some(text) = text else { return String::new() };
        require_text(file, text, report);
        self.fill(text)
    }
}

/// Returns `get_printer or get_tray`: the tools that read one target of the kind that tasks act on,
/// and that every server offers.
fn look_tools(files: &Files) -> String {
    let of = |effect: EffectName| tools_of(files).map(|(_, tool)| tool).filter(move |tool| *tool.effect == effect);
    let reads = of(EffectName::Read).filter(|tool| tool.toolset.is_none());
    let resource = |tool: &At<raw::Tool>| tool.target.as_ref().map(|target| target.resource.to_string());
    let acted_on: Vec<_> = of(EffectName::Task).filter_map(resource).collect();
    let looks = reads.filter(|tool| resource(tool).is_some_and(|name| acted_on.contains(&name)));
    let names: Vec<_> = looks.map(|tool| tool.name.as_str()).collect();
    if names.is_empty() { "whatever shows it".to_owned() } else { names.join(" or ") }
}

fn group_digits(number: u32) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Leaves a sentence empty unless a tool needs it or the contract sets it.
pub(super) fn phrases(files: &Files, words: &Words, report: &mut Report) -> Phrases {
    let mut say = |key: fn(&raw::Phrase) -> &Option<At<String>>, useful: bool, fill: fn(&Words, &str) -> String| {
        let default = files.defaults.phrase.as_ref().filter(|_| useful);
        let Some(text) = first([files.service.phrase.as_ref(), default], key) else { return String::new() };
        require_text(SERVICE, text, report);
        fill(words, text)
    };
    let Words { tasks, acts, acts_once, requires, capabilities, .. } = *words;
    let (shared, whole) = (Words::fill_shared, Words::fill);
    Phrases {
        needs: say(|phrase| &phrase.needs, true, shared),
        needs_capability: say(|phrase| &phrase.needs_capability, true, shared),
        read: say(|phrase| &phrase.read, true, shared),
        act: say(|phrase| &phrase.act, acts, shared),
        act_once: say(|phrase| &phrase.act_once, acts_once, shared),
        task: say(|phrase| &phrase.task, tasks, shared),
        failures: say(|phrase| &phrase.failures, true, shared),
        capability: say(|phrase| &phrase.capability, capabilities, whole),
        writes: say(|phrase| &phrase.writes, tasks, whole),
        refused: say(|phrase| &phrase.refused, true, whole),
        forbidden: say(|phrase| &phrase.forbidden, requires, whole),
        busy: say(|phrase| &phrase.busy, tasks, whole),
        untrusted: say(|phrase| &phrase.untrusted, true, whole),
        secret: say(|phrase| &phrase.secret, true, whole),
        followed: say(|phrase| &phrase.followed, tasks, whole),
        under_way: say(|phrase| &phrase.under_way, tasks, whole),
        same_write: say(|phrase| &phrase.same_write, tasks, whole),
        other_write: say(|phrase| &phrase.other_write, tasks, whole),
        lost_task: say(|phrase| &phrase.lost_task, tasks, whole),
        curable: say(|phrase| &phrase.curable, requires, whole),
    }
}

pub(super) fn states(files: &Files, words: &Words, report: &mut Report) -> Vec<State> {
    for (name, state) in files.service.state.iter() {
        if !STATES.contains(&name.as_str()) {
            report.unknown(Rule::Shape, at(SERVICE, name.span()), "task state", name, STATES);
        }
        for (reported, next) in state.reported.iter().flat_map(Named::iter) {
            require_text(SERVICE, next, report);
            if !REPORTS.contains(&reported.as_str()) {
                report.unknown(Rule::Shape, at(SERVICE, reported.span()), "report", reported, REPORTS);
            }
        }
    }
    let states = STATES.map(|name| {
        let tables @ [own, default] = states_of(files, name);
        let mut say = |key| words.say(SERVICE, first(tables, key), report);
        let (brief, meaning, next_step) =
            (say(|state| &state.brief), say(|state| &state.meaning), say(|state| &state.next_step));
        // If the contract sets `next_step` or `reported`, the framework's texts by report do not
        // apply.
        let telling = own.filter(|own| own.next_step.is_some() || own.reported.is_some()).or(default);
        let reported = telling.and_then(|state| state.reported.as_ref()).into_iter().flat_map(Named::iter);
        let reported = reported.map(|(name, text)| (name.to_string(), words.fill(text))).collect();
        State { name: name.to_owned(), brief, meaning, next_step, reported }
    });
    if words.tasks { states.into() } else { Vec::new() }
}

fn states_of<'a>(files: &'a Files, name: &str) -> [Option<&'a raw::State>; 2] {
    [&files.service.state, &files.defaults.state].map(|states| states.get(name))
}

pub(super) fn limit(files: &Files, key: fn(&raw::Limits) -> &Option<At<u32>>) -> Option<&At<u32>> {
    first([&files.service.limits, &files.defaults.limits].map(Option::as_ref), key)
}

pub(super) fn first<T, U>(tables: [Option<&T>; 2], key: fn(&T) -> &Option<U>) -> Option<&U> {
    tables.into_iter().flatten().find_map(|table| key(table).as_ref())
}
