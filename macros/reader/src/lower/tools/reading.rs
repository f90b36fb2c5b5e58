//! Derives the arguments, the result and the errors of the tool that reads tasks. No contract writes them.

use super::tasks::{ours, plain, task_status, told};
use super::{Lowering, Scope};
use crate::json_schema::REMARK_MAX_CHARS;
use crate::lower::words::{Words, noun};
use crate::lower::{MAX_WAIT_SECONDS, at};
use crate::model::{
    EffectSpec, ErrorCode, Field, Kind, Member, NamedType, ProbeSpec, ResourceSpec, StringSpec, ToolSpec, Type,
};
use crate::raw::{self, At, EffectName, Files};
use crate::report::Report;
use crate::rules::Rule;
use crate::source::FIRST_TOOLS;
use std::sync::Arc;

/// The arguments that no contract writes.
const DERIVED: [&str; 3] = ["idempotency_key", "task_id", "wait_seconds"];

/// The roles of the tool's own errors.
const ERRORS: [&str; 2] = ["not_found", "internal"];

/// Reports if there are tasks but no tool that reads them, or two.
pub(super) fn check(files: &Files, scope: &Scope<'_>, report: &mut Report) {
    let tools = || (FIRST_TOOLS..).zip(&files.tools).flat_map(|(n, (_, file))| file.tool.iter().map(move |t| (n, t)));
    let of = |effect: EffectName| tools().filter(move |(_, tool)| *tool.effect == effect);
    let mut reading = of(EffectName::ReadTask);
    let first = reading.next();
    for (file, tool) in reading {
        let message = format!("`{}` reads tasks already", first.map_or("", |(_, tool)| tool.name.as_str()));
        report.add(Rule::ReadTask, at(file, tool.effect.span()), message, Some("remove one of the two".to_owned()));
    }
    let whole = files.tools.iter().all(|(_, file)| !file.broken)
        && ![Rule::MissingFile, Rule::UnlistedFile, Rule::Unreadable].into_iter().any(|rule| report.breaks(rule));
    if let (None, Some((file, tool)), true) = (first, of(EffectName::Task).next(), whole) {
        let known = scope.permissions.iter().any(|known| known.name == **tool.permission);
        let permission = if known { tool.permission.as_str() } else { "..." };
        let help = format!(
            "declare one in a file of `tools/`:\n\n[[tool]]\nname = \"get_task\"\npermission = \"{permission}\"\neffect = \"read_task\""
        );
        report.add(
            Rule::ReadTask,
            at(file, tool.effect.span()),
            "no tool reads the tasks that this one makes",
            Some(help),
        );
    }
}

impl Lowering<'_> {
    /// Reports keys that a contract must not set for the tool that reads tasks.
    pub(super) fn refuse_derived(&mut self, tool: &raw::Tool) {
        let raw::Tool { target, result, errors, task, args, effect, .. } = tool;
        let written = [
            ("target", target.is_some()),
            ("result", result.is_some()),
            ("errors", errors.is_some()),
            ("task", task.is_some()),
            ("args", args.is_some()),
        ];
        for (key, _) in written.into_iter().filter(|(_, written)| *written) {
            let help = Some(format!("leave `{key}` out"));
            self.add(Rule::ReadTask, effect, format!("`{key}` of the tool that reads tasks is derived"), help);
        }
    }

    pub(super) fn reading_errors(&self) -> Vec<Arc<ErrorCode>> {
        ERRORS.into_iter().filter_map(|role| self.role(role)).collect()
    }

    /// Derives the result: the task and its outcome. The field for a target has the name of the argument for it.
    pub(super) fn task(&mut self, tool: &At<raw::Tool>) -> Arc<NamedType> {
        let targets = self.targets(tool);
        let noun = noun(targets.iter().map(|(resource, _)| resource.name.as_str()));
        let several = targets.len() > 1;
        let nullable = |field: Field| Field { nullable: true, ..field };
        let time = |name, doc: &str| plain(name, doc, Type::Timestamp);
        let mut fields = vec![
            plain("task_id", "Identifier of the task.", Type::Named(task_id())),
            ours("tool", "The tool that made it."),
        ];
        for (resource, arg) in targets {
            let null = if several { "; null if it acts on something else" } else { "" };
            let doc = format!("The {} that it acts on{null}.", resource.name.replace('_', " "));
            fields.push(Field { nullable: several, ..plain(arg, &doc, Type::Named(Arc::clone(&resource.id))) });
        }
        let deadline = format!("When it ends at the latest, give or take a last look at the {noun}.");
        let evidence = evidence(&self.scope.probes, &noun);
        fields.extend([
            plain("status", "State of the task.", Type::Named(Arc::new(task_status()))),
            plain("terminal", "Whether the state is final.", Type::Boolean),
            time("created_at", "When it was accepted."),
            time("deadline_at", &deadline),
            nullable(time("finished_at", "When it ended; null while it is in flight.")),
            nullable(plain("poll_after_seconds", "When to poll again; null once it has ended.", Type::Integer)),
            nullable(plain("evidence", "What its end rests on; null while it is in flight.", Type::Named(evidence))),
            nullable(plain("refund", "The refund; null unless it ended as `failed_silent`.", Type::Named(refund()))),
            ours("next_step", "What to do next."),
        ]);
        object("Task", "A write and what came of it.", fields)
    }

    /// Returns the resources that tasks act on, each with the argument for its id. The first tool of a resource decides.
    fn targets(&mut self, tool: &At<raw::Tool>) -> Vec<(Arc<ResourceSpec>, &'_ str)> {
        let Scope { resources, files, .. } = self.scope;
        let mut targets: Vec<(Arc<ResourceSpec>, &str)> = Vec::new();
        for raw in files.tools.iter().flat_map(|(_, file)| &file.tool).filter(|tool| *tool.effect == EffectName::Task) {
            let Some(target) = &raw.target else { continue };
            let Some(resource) = resources.iter().find(|resource| resource.name == **target.resource) else { continue };
            if targets.iter().any(|(known, _)| known.name == resource.name) {
                continue;
            }
            if let Some((other, arg)) = targets.iter().find(|(_, arg)| *arg == target.arg.as_str()) {
                let message =
                    format!("tasks act on `{}` and on `{}`, and tools name both `{arg}`", other.name, resource.name);
                let help = Some("name one of the arguments otherwise: the result has a field for each".to_owned());
                self.report.add(Rule::ReadTask, at(self.file, tool.effect.span()), message, help);
            }
            targets.push((Arc::clone(resource), &target.arg));
        }
        targets
    }
}

/// Derives the arguments.
pub(super) fn arguments(words: &Words) -> Vec<Field> {
    let wait = NamedType {
        name: "WaitSeconds".to_owned(),
        doc: "How long an answer may be held.".to_owned(),
        kind: Kind::Integer { min: 0, max: MAX_WAIT_SECONDS.into() },
    };
    let doc = "Holds the answer until the task ends, at most so many seconds; use {wait_seconds}. 0 answers at once. Left out, a poll \
        within {poll_interval_seconds} s of the last is held up to {hold_seconds} s.";
    vec![
        plain("task_id", "task_id from the answer of a write.", Type::Named(task_id())),
        Field { optional: true, ..plain("wait_seconds", &words.fill(doc), Type::Named(Arc::new(wait))) },
    ]
}

/// Returns the types of derived arguments, both of tools that make tasks and of the one that reads them.
pub(crate) fn derived_types<'a>(tools: impl Iterator<Item = &'a ToolSpec>) -> Vec<Arc<NamedType>> {
    let mut types: Vec<Arc<NamedType>> = Vec::new();
    for tool in tools {
        let derived = match tool.effect {
            EffectSpec::Task(_) | EffectSpec::ReadTask => {
                tool.args.iter().filter(|field| DERIVED.contains(&field.name.as_str()))
            }
            EffectSpec::Read | EffectSpec::Issue => continue,
        };
        for ty in derived.filter_map(|field| field.ty.named()) {
            if !types.iter().any(|known| known.name == ty.name) {
                types.push(Arc::clone(ty));
            }
        }
    }
    types.sort_by(|a, b| a.name.cmp(&b.name));
    types
}

fn task_id() -> Arc<NamedType> {
    let rule = StringSpec { min: 37, max: 37, prefix: "task_".to_owned(), charset: vec![('0', '9'), ('a', 'f')] };
    let doc = "Identifier of a task.".to_owned();
    Arc::new(NamedType { name: "TaskId".to_owned(), doc, kind: Kind::String(rule) })
}

fn evidence(probes: &[Arc<ProbeSpec>], noun: &str) -> Arc<NamedType> {
    let probes: String = probes.iter().map(|probe| format!("`{}`, ", probe.name)).collect();
    let checked = match probes.is_empty() {
        true => format!("What was read: `upstream_answer`, since nothing on the {noun} can be."),
        false => format!("What was read: {probes}or `upstream_answer` where nothing on the {noun} could be."),
    };
    let remark = |name, doc| Field { untrusted: true, ..plain(name, doc, Type::Named(remark())) };
    let fields = vec![
        ours("checked", &checked),
        remark("expected", "What would have shown the effect."),
        remark("observed", "What was seen."),
        told(plain("reported", "What the platform said, which is not what happened.", Type::Named(upstream_report()))),
        plain("checked_at", "When it was seen.", Type::Timestamp),
    ];
    object("Evidence", "What the end of a task rests on.", fields)
}

/// What evidence quotes: text from outside with more room than a name has.
fn remark() -> Arc<NamedType> {
    let rule = StringSpec { min: 0, max: REMARK_MAX_CHARS, prefix: String::new(), charset: Vec::new() };
    let doc = "Text from outside.".to_owned();
    Arc::new(NamedType { name: "Remark".to_owned(), doc, kind: Kind::String(rule) })
}

fn upstream_report() -> Arc<NamedType> {
    let members = [
        ("success", "It is done."),
        ("failure", "It failed."),
        ("no_answer", "Nothing that could be understood; it may have been done."),
        ("not_sent", "Nothing was asked of it: no request ever left."),
    ];
    let members = members.map(|(name, doc)| Member { name: name.to_owned(), doc: doc.to_owned() });
    let doc = "What the platform said of a write.".to_owned();
    Arc::new(NamedType { name: "UpstreamReport".to_owned(), doc, kind: Kind::Enum(members.into()) })
}

fn refund() -> Arc<NamedType> {
    let fields =
        vec![plain("units", "Units given back.", Type::Integer), plain("refunded_at", "When.", Type::Timestamp)];
    object("Refund", "A refund.", fields)
}

fn object(name: &str, doc: &str, fields: Vec<Field>) -> Arc<NamedType> {
    Arc::new(NamedType { name: name.to_owned(), doc: doc.to_owned(), kind: Kind::Object(fields) })
}
