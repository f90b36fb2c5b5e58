//! The framework's default texts, with their placeholders filled in, and the contract's texts that replace them.

use super::{MAX_WAIT_SECONDS, SERVICE, at, limit, require_text};
use crate::model::{Phrases, State};
use crate::raw::{self, At, EffectName, Files, Named};
use crate::report::Report;
use crate::rules::{Rule, STATES};

/// The values of the placeholders in defaults.toml, and which of its texts are needed.
#[derive(Debug)]
pub(crate) struct Words {
    /// `{resource}`.
    pub(crate) resource: String,
    /// `{read_tool}`.
    pub(crate) read_tool: String,
    /// `{poll_interval_seconds}`, `{hold_seconds}`, `{wait_seconds}`.
    limits: [(&'static str, u32); 3],
    tasks: bool,
    requires: bool,
    capabilities: bool,
}

impl Words {
    pub(crate) fn of(files: &Files) -> Self {
        let tools = || files.tools.iter().flat_map(|(_, file)| &file.tool);
        let reads = |tool: &&At<raw::Tool>| *tool.effect == EffectName::ReadTask;
        let resource = &files.service.resource;
        Self {
            resource: noun(resource.names()),
            read_tool: tools()
                .find(reads)
                .map_or_else(|| "the tool that reads tasks".to_owned(), |t| t.name.to_string()),
            limits: [
                ("{poll_interval_seconds}", limit(files, |limits| &limits.poll_interval_seconds)),
                ("{hold_seconds}", limit(files, |limits| &limits.hold_seconds)),
                ("{wait_seconds}", limit(files, |limits| &limits.wait_seconds)),
            ]
            .map(|(placeholder, seconds)| (placeholder, seconds.unwrap_or_default())),
            tasks: tools().any(|tool| matches!(*tool.effect, EffectName::Task | EffectName::ReadTask)),
            requires: tools().any(|tool| tool.target.as_ref().is_some_and(|target| target.requires.is_some())),
            capabilities: resource.iter().any(|(_, resource)| resource.capability.is_some()),
        }
    }

    /// Fills in the placeholders of a default text.
    pub(crate) fn fill(&self, text: &str) -> String {
        let text = text.replace("{resource}", &self.resource).replace("{read_tool}", &self.read_tool);
        let text = text.replace("{max_wait_seconds}", &MAX_WAIT_SECONDS.to_string());
        self.limits.iter().fold(text, |text, (placeholder, seconds)| text.replace(placeholder, &seconds.to_string()))
    }

    /// Returns the contract's text or, if it has none, the framework's.
    pub(crate) fn say(
        &self,
        file: usize,
        own: Option<&At<String>>,
        default: Option<&At<String>>,
        report: &mut Report,
    ) -> String {
        match (own, default) {
            (Some(own), _) => {
                require_text(file, own, report);
                own.to_string()
            }
            (None, Some(default)) => self.fill(default),
            (None, None) => String::new(),
        }
    }
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
    let own = files.service.phrase.as_deref();
    let mut say = |find: fn(&raw::Phrase) -> &Option<At<String>>, useful: bool| {
        let default = files.defaults.phrase.as_ref().filter(|_| useful);
        words.say(
            SERVICE,
            own.and_then(|own| find(own).as_ref()),
            default.and_then(|default| find(default).as_ref()),
            report,
        )
    };
    Phrases {
        capability: say(|phrase| &phrase.capability, words.capabilities),
        forbidden: say(|phrase| &phrase.forbidden, words.requires),
        retryable: say(|phrase| &phrase.retryable, true),
        task: say(|phrase| &phrase.task, words.tasks),
    }
}

/// Returns every state of a task, or none if no tool makes tasks.
pub(super) fn states(files: &Files, words: &Words, report: &mut Report) -> Vec<State> {
    let own = &files.service.state;
    for (name, _) in own.iter().filter(|(name, _)| !STATES.contains(&name.as_str())) {
        report.unknown(Rule::Shape, at(SERVICE, name.span()), "task state", name, STATES);
    }
    let find = |table: &Named<raw::State>, name: &str| -> Option<raw::State> {
        table.iter().find(|(known, _)| known.as_str() == name).map(|(_, state)| state.clone())
    };
    let mut lower = |name: &&str| {
        let (own, default) = (find(own, name), find(&files.defaults.state, name));
        let mut say = |key: fn(&raw::State) -> &Option<At<String>>| {
            words.say(
                SERVICE,
                own.as_ref().and_then(|own| key(own).as_ref()),
                default.as_ref().and_then(|state| key(state).as_ref()),
                report,
            )
        };
        State {
            name: (*name).to_owned(),
            meaning: say(|state| &state.meaning),
            next_step: say(|state| &state.next_step),
        }
    };
    let states: Vec<State> = STATES.iter().map(&mut lower).collect();
    if words.tasks { states } else { Vec::new() }
}
