//! Lowers the tool that reads tasks.

use super::lowering::{Lowering, Scope};
use crate::lower::derived::{evidence, make_type, ours, plain, refund, task_id, task_status, wait_seconds};
use crate::lower::require::{at, tools_of};
use crate::lower::words::Words;
use crate::model::{Field, Kind, NamedType, ResourceSpec, Type};
use crate::names::noun;
use crate::raw::{self, At, EffectName, Files};
use crate::report::Report;
use crate::rules::Rule;
use std::sync::Arc;

pub(super) fn check(files: &Files, scope: &Scope<'_>, report: &mut Report) {
    let of = |effect: EffectName| tools_of(files).filter(move |(_, tool)| *tool.effect == effect);
    let mut reading = of(EffectName::ReadTask);
    let first = reading.next();
    for (file, tool) in reading {
        let message = format!("`{}` reads tasks already", first.map_or("", |(_, tool)| tool.name.as_str()));
        report.add(Rule::ReadTask, at(file, tool.effect.span()), message, Some("remove one of the two".to_owned()));
    }
    let whole = files.is_whole
        && ![Rule::MissingFile, Rule::UnlistedFile, Rule::Unreadable].into_iter().any(|rule| report.breaks(rule));
    if let (None, Some((file, tool)), true) = (first, of(EffectName::Task).next(), whole) {
        let known = scope.permissions.iter().any(|known| known.name == **tool.permission);
        let permission = if known { tool.permission.as_str() } else { "..." };
        let help = format!(
            "declare one in a file of `tools/`: `[[tool]]` with `name = \"get_task\"`, `permission = \"{permission}\"`, `effect = \"read_task\"`"
        );
        let message = "no tool reads the tasks that this one makes";
        report.add(Rule::ReadTask, at(file, tool.effect.span()), message, Some(help));
    }
}

impl Lowering<'_> {
    pub(super) fn refuse_derived(&mut self, tool: &raw::Tool) {
        let raw::Tool { toolset, target, result, body, errors, task, args, effect, .. } = tool;
        let written = [
            ("toolset", toolset.is_some()),
            ("target", target.is_some()),
            ("result", result.is_some()),
            ("body", body.is_some()),
            ("errors", errors.is_some()),
            ("task", task.is_some()),
            ("args", args.is_some()),
        ];
        for (key, _) in written.into_iter().filter(|(_, written)| *written) {
            let help = Some(format!("leave `{key}` out"));
            self.add(Rule::ReadTask, effect, format!("`{key}` of the tool that reads tasks is derived"), help);
        }
    }

    pub(super) fn task(&mut self, tool: &At<raw::Tool>) -> Arc<NamedType> {
        let targets = self.targets(tool);
        let noun = noun(targets.iter().map(|(resource, _)| resource.name.as_str()));
        let several = targets.len() > 1;
        let nullable = |name, doc, ty| Field { nullable: true, ..plain(name, doc, ty) };
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
        let named = Type::Named;
        let evidence = named(evidence(&self.scope.probes, &self.scope.words));
        fields.extend([
            plain("status", "State of the task.", named(task_status())),
            plain("terminal", "Whether the state is final.", Type::Boolean),
            plain("created_at", "When it was accepted.", Type::Timestamp),
            plain("deadline_at", &deadline, Type::Timestamp),
            nullable("finished_at", "When it ended; null while it is in flight.", Type::Timestamp),
            nullable("poll_after_seconds", "When to poll again; null once it has ended.", Type::Integer),
            nullable("evidence", "What its end rests on; null while it is in flight.", evidence),
            nullable("refund", "The refund; null unless it ended as `failed_silent`.", named(refund())),
            ours("next_step", "What to do next."),
        ]);
        make_type("Task", "A write and what came of it.", Kind::Object(fields))
    }

    /// Takes the name of the argument from the first tool of a resource.
    fn targets(&mut self, tool: &At<raw::Tool>) -> Vec<(Arc<ResourceSpec>, &'_ str)> {
        let Scope { resources, files, .. } = self.scope;
        let mut targets: Vec<(Arc<ResourceSpec>, &str)> = Vec::new();
        for (_, raw) in tools_of(files).filter(|(_, tool)| *tool.effect == EffectName::Task) {
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

pub(super) fn arguments(words: &Words) -> Vec<Field> {
    let doc = "Seconds to hold the answer for the task's end; use {wait_seconds}. Left out, a poll within \
        {poll_interval_seconds} s of the last is held up to {hold_seconds} s.";
    vec![
        plain("task_id", "From the answer of a write.", Type::Named(task_id())),
        Field { optional: true, ..plain("wait_seconds", &words.fill(doc), Type::Named(wait_seconds())) },
    ]
}
