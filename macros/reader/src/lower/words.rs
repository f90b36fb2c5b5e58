//! The texts of a contract and of the framework, with their placeholders filled in.
//!
//! `{name}` in a text stands for a name or a number of the contract, so that neither is written twice. What only the description of one
//! tool, or one failure, can fill in is left for it: [`DEFERRED`].

use super::{MAX_WAIT_SECONDS, SERVICE, at, limit, require_text};
use crate::model::{Phrases, State};
use crate::raw::{self, At, EffectName, Files, Named};
use crate::report::Report;
use crate::rules::{REPORTS, Rule, STATES};

/// Days for which an ended task can be read.
pub const TASKS_KEPT_DAYS: u32 = 7;

/// The placeholders that a description, or a failure, fills in.
pub(crate) const DEFERRED: [&str; 8] =
    ["resource", "permission", "capability", "final", "retryable", "retry_after_seconds", "task_id", "request_id"];

/// The values of the placeholders, and which of the framework's texts are needed.
#[derive(Debug)]
pub(crate) struct Words {
    /// `{resource}`.
    resource: String,
    /// The other placeholders.
    values: Vec<(String, String)>,
    tasks: bool,
    requires: bool,
    capabilities: bool,
}

impl Words {
    pub(crate) fn of(files: &Files) -> Self {
        let tools = || files.tools.iter().flat_map(|(_, file)| &file.tool);
        let reads = tools().find(|tool| *tool.effect == EffectName::ReadTask);
        let limit = |find| limit(files, find).map_or_else(String::new, |limit| limit.to_string());
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
        values.extend(files.service.number.iter().map(|(name, number)| (name.to_string(), grouped(**number))));
        let resource = &files.service.resource;
        let mut words = Self {
            resource: noun(resource.names()),
            values,
            tasks: tools().any(|tool| matches!(*tool.effect, EffectName::Task | EffectName::ReadTask)),
            requires: tools().any(|tool| tool.target.as_ref().is_some_and(|target| target.requires.is_some())),
            capabilities: resource.iter().any(|(_, resource)| resource.capability.is_some()),
        };
        let briefs = STATES.iter().filter_map(|name| {
            let brief = find_state(files, name).find_map(|state| state.brief.as_ref())?;
            Some(format!("{name} ({})", words.fill(brief)))
        });
        let briefs = briefs.collect::<Vec<_>>().join(", ");
        words.values.push(("states".to_owned(), briefs));
        words
    }

    /// Returns whether a placeholder of this name stands for something without any number of the contract.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        let numbered = self.values.iter().filter(|(known, _)| known == name).count();
        numbered > 1 || DEFERRED.contains(&name)
    }

    /// Returns the names of the placeholders that every text can have.
    pub(crate) fn known(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name.as_str()).chain(["resource"])
    }

    /// Fills in the placeholders of a text.
    pub(crate) fn fill(&self, text: &str) -> String {
        self.fill_shared(text).replace("{resource}", &self.resource)
    }

    /// Fills in the placeholders of a text for descriptions, except what each description has of its own.
    pub(crate) fn fill_shared(&self, text: &str) -> String {
        let fill = |text: String, (name, value): &(String, String)| text.replace(&format!("{{{name}}}"), value);
        self.values.iter().fold(text.to_owned(), fill)
    }

    /// Returns the name of the tool that reads tasks.
    pub(crate) fn read_tool(&self) -> &str {
        self.values.first().map_or("", |(_, name)| name)
    }

    /// Returns the contract's text or, if it has none, the framework's, filled in.
    pub(crate) fn say(
        &self,
        file: usize,
        own: Option<&At<String>>,
        default: Option<&At<String>>,
        report: &mut Report,
    ) -> String {
        if let Some(own) = own {
            require_text(file, own, report);
        }
        own.or(default).map(|text| self.fill(text)).unwrap_or_default()
    }
}

/// Returns the tools that read one target of the kind that tasks act on: `get_printer or get_tray`.
fn look_tools(files: &Files) -> String {
    let tools = || files.tools.iter().flat_map(|(_, file)| &file.tool);
    let of = |effect: EffectName| tools().filter(move |tool| *tool.effect == effect);
    let resource = |tool: &At<raw::Tool>| tool.target.as_ref().map(|target| target.resource.to_string());
    let acted_on: Vec<_> = of(EffectName::Task).filter_map(resource).collect();
    let looks = of(EffectName::Read).filter(|tool| resource(tool).is_some_and(|name| acted_on.contains(&name)));
    let names: Vec<_> = looks.map(|tool| tool.name.as_str()).collect();
    if names.is_empty() { "whatever shows it".to_owned() } else { names.join(" or ") }
}

/// Writes a number with a comma before each three digits.
fn grouped(number: u32) -> String {
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

/// Returns the noun for a target: the name of the resource if there is only one, else `target`.
pub(crate) fn noun<'a>(resources: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = resources.into_iter();
    match (names.next(), names.next()) {
        (Some(name), None) => name.replace('_', " "),
        _ => "target".to_owned(),
    }
}

/// Returns the sentences that several tools share. Each is empty unless a tool needs it or the contract sets it.
pub(super) fn phrases(files: &Files, words: &Words, report: &mut Report) -> Phrases {
    let own = files.service.phrase.as_ref();
    let mut say = |find: fn(&raw::Phrase) -> &Option<At<String>>, useful: bool, fill: fn(&Words, &str) -> String| {
        let default = files.defaults.phrase.as_ref().filter(|_| useful).and_then(|default| find(default).as_ref());
        let own = own.and_then(|own| find(own).as_ref());
        if let Some(own) = own {
            require_text(SERVICE, own, report);
        }
        own.or(default).map(|text| fill(words, text)).unwrap_or_default()
    };
    let Words { tasks, requires, capabilities, .. } = *words;
    // A description fills in what its tool has of its own.
    let (shared, whole) = (Words::fill_shared, Words::fill);
    Phrases {
        needs: say(|phrase| &phrase.needs, true, shared),
        needs_capability: say(|phrase| &phrase.needs_capability, true, shared),
        read: say(|phrase| &phrase.read, true, shared),
        task: say(|phrase| &phrase.task, tasks, shared),
        failures: say(|phrase| &phrase.failures, true, shared),
        capability: say(|phrase| &phrase.capability, capabilities, whole),
        writes: say(|phrase| &phrase.writes, tasks, whole),
        refused: say(|phrase| &phrase.refused, true, whole),
        forbidden: say(|phrase| &phrase.forbidden, requires, whole),
        busy: say(|phrase| &phrase.busy, tasks, whole),
        untrusted: say(|phrase| &phrase.untrusted, true, whole),
        secret: say(|phrase| &phrase.secret, true, whole),
        same_write: say(|phrase| &phrase.same_write, tasks, whole),
        other_write: say(|phrase| &phrase.other_write, tasks, whole),
        lost_task: say(|phrase| &phrase.lost_task, tasks, whole),
        curable: say(|phrase| &phrase.curable, requires, whole),
    }
}

/// Returns every state of a task, or none if no tool makes tasks.
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
    let own = &files.service.state;
    let mut lower = |name: &&str| {
        let find =
            |table: &Named<raw::State>| table.iter().find(|(known, _)| known.as_str() == *name).map(|(_, s)| s.clone());
        let (own, default) = (find(own), find(&files.defaults.state));
        let mut say = |key: fn(&raw::State) -> &Option<At<String>>| {
            let [own, default] = [&own, &default].map(|state| state.as_ref().and_then(|state| key(state).as_ref()));
            words.say(SERVICE, own, default, report)
        };
        let (brief, meaning, next_step) =
            (say(|state| &state.brief), say(|state| &state.meaning), say(|state| &state.next_step));
        // A contract that says what to do next says it for every report, unless it tells them apart itself.
        let telling = own.as_ref().filter(|own| own.next_step.is_some() || own.reported.is_some()).or(default.as_ref());
        let reported = telling.and_then(|state| state.reported.as_ref()).into_iter().flat_map(Named::iter);
        let reported = reported.map(|(name, text)| (name.to_string(), words.fill(text))).collect();
        State { name: (*name).to_owned(), brief, meaning, next_step, reported }
    };
    let states: Vec<State> = STATES.iter().map(&mut lower).collect();
    if words.tasks { states } else { Vec::new() }
}

/// Returns a state as the contract has it, then as the framework has it.
fn find_state<'a>(files: &'a Files, name: &str) -> impl Iterator<Item = &'a raw::State> {
    let tables = [&files.service.state, &files.defaults.state];
    tables.into_iter().filter_map(move |table| table.iter().find(|(known, _)| known.as_str() == name).map(|(_, s)| s))
}
