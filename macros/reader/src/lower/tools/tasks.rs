//! Lowers tools that make tasks.

use super::lowering::{Arguments, Lowering};
use crate::lower::derived::{field_with_doc, idempotency_key, make_type, ours, plain, task_status};
use crate::lower::require::{at, list_missing};
use crate::model::{EffectSpec, Field, Kind, NamedType, PolicySpec, TargetSpec, TaskSpec, ToolHints, Type};
use crate::raw::{self, At, EffectName, Named};
use crate::rules::{Rule, STATES};
use std::ops::Range;
use std::sync::Arc;
use toolwarrant_common::nearest;

impl Lowering<'_> {
    pub(super) fn effect(&mut self, tool: &raw::Tool, args: &Arguments<'_>) -> Option<EffectSpec> {
        let raw::Tool { effect, task, target, .. } = tool;
        let hints = self.hints(tool);
        let (message, help) = match (**effect, task) {
            (EffectName::Act, None) => return hints.map(EffectSpec::Act),
            (EffectName::Read, None) => return Some(EffectSpec::Read),
            (EffectName::ReadTask, _) => return Some(EffectSpec::ReadTask),
            (EffectName::Issue, None) => return Some(EffectSpec::Issue),
            (EffectName::Task, Some(task)) if target.is_some() => {
                return self.terms_of(task, effect, args).map(EffectSpec::Task);
            }
            (EffectName::Task, Some(_)) => ("a task needs a `target`", None),
            (EffectName::Task, None) => ("a task needs its terms", Some("write them under `[tool.task]`")),
            (EffectName::Read | EffectName::Act | EffectName::Issue, Some(_)) => {
                ("only `effect = \"task\"` has `[tool.task]`", Some("remove one of the two"))
            }
        };
        self.add(Rule::Task, effect, message, help.map(str::to_owned));
        None
    }

    /// Returns `None` for a tool that is no act.
    fn hints(&mut self, tool: &raw::Tool) -> Option<ToolHints> {
        let raw::Tool { effect, destructive, idempotent, open_world, .. } = tool;
        let written = [("destructive", destructive), ("idempotent", idempotent), ("open_world", open_world)];
        if **effect != EffectName::Act {
            for (key, flag) in written.iter().filter_map(|(key, flag)| Some((key, flag.as_ref()?))) {
                let help = if **effect == EffectName::Task { "`[tool.task]` has `idempotent`" } else { "leave it out" };
                self.add(Rule::Act, flag, format!("only an act declares `{key}`"), Some(help.to_owned()));
            }
            return None;
        }
        if let (Some(destructive), Some(idempotent), Some(open_world)) = (destructive, idempotent, open_world) {
            let [destructive, idempotent, open_world] = [destructive, idempotent, open_world].map(|flag| **flag);
            return Some(ToolHints { read_only: false, destructive, idempotent, open_world });
        }
        let lacks = written.map(|(key, flag)| (key, flag.is_none()));
        let help = "if you are not sure, write `destructive = true`, `idempotent = false` and `open_world = true`";
        self.add(Rule::Act, effect, format!("this act lacks {}", list_missing(&lacks)), Some(help.to_owned()));
        None
    }

    fn terms_of(&mut self, raw: &raw::Task, effect: &At<EffectName>, args: &Arguments<'_>) -> Option<TaskSpec> {
        let raw::Task { select, case, probe, idempotent, settle_seconds, deadline_seconds, usually_ends } = raw;
        for state in usually_ends.iter().flatten() {
            if !STATES[1..].contains(&state.as_str()) {
                self.unknown(Rule::Task, "terminal state", state, STATES[1..].iter().copied());
            }
        }
        let common = raw::Terms {
            probe: probe.clone(),
            idempotent: *idempotent,
            settle_seconds: *settle_seconds,
            deadline_seconds: *deadline_seconds,
        };
        let cases = match select {
            None => vec![(String::new(), self.terms(&common, &common, effect.span())?)],
            Some(select) => self.cases(select, case.as_ref(), &common, args)?,
        };
        if let (None, Some((value, _))) = (select, case.iter().flat_map(Named::iter).next()) {
            let help = Some("name the enum argument: `select = \"...\"`".to_owned());
            self.add(Rule::Task, value, "cases need an argument that selects them", help);
        }
        Some(TaskSpec {
            select: select.as_ref().map(|select| select.to_string()),
            cases,
            usually_ends: usually_ends.iter().flatten().map(|state| state.to_string()).collect(),
        })
    }

    fn cases(
        &mut self,
        select: &At<String>,
        case: Option<&Named<raw::Terms>>,
        common: &raw::Terms,
        args: &Arguments<'_>,
    ) -> Option<Vec<(String, PolicySpec)>> {
        let Ok(field) = args.find(select) else {
            self.unknown(Rule::UnknownArgument, "argument", select, args.names.iter().copied());
            return None;
        };
        let field = field?;
        let ty = field.ty.as_named().filter(|_| !field.optional);
        let Some(Kind::Enum(values)) = ty.map(|ty| &ty.kind) else {
            self.add(Rule::Task, select, "cases are selected by a required enum argument", None);
            return None;
        };
        let cases: Vec<_> = case.iter().flat_map(|named| named.iter()).collect();
        let mut meant = Vec::new();
        for (value, _) in &cases {
            if !values.iter().any(|known| known.name == ***value) {
                let known = values.iter().map(|known| known.name.as_str());
                meant.extend(nearest(value, known.clone()));
                self.unknown(Rule::CaseNotTotal, "value", value, known);
            }
        }
        let mut lowered = Vec::new();
        let mut whole = true;
        for value in values.iter().filter(|value| !meant.contains(&value.name.as_str())) {
            match cases.iter().find(|(name, _)| ***name == value.name) {
                // A key that is missing from one case is usually missing from the next one also.
                Some(_) if !whole => {}
                Some((case, terms)) => match self.terms(terms, common, case.span()) {
                    Some(terms) => lowered.push((value.name.clone(), terms)),
                    None => whole = false,
                },
                None => {
                    let help = Some(format!("add `case.{} = {{ ... }}`", value.name));
                    self.add(Rule::CaseNotTotal, select, format!("no case for `{}`", value.name), help);
                }
            }
        }
        Some(lowered)
    }

    fn terms(&mut self, own: &raw::Terms, common: &raw::Terms, place: Range<usize>) -> Option<PolicySpec> {
        let place = at(self.file, place);
        let written = own.probe.as_ref().or(common.probe.as_ref());
        let (unread, known) = (&self.scope.files.service.probe.unread, &self.scope.probes);
        let probe = match written {
            Some(name) => Some(self.find(Rule::UnknownProbe, "probe", name, unread, known, |probe| &probe.name)?),
            None => None,
        };
        let idempotent = own.idempotent.or(common.idempotent);
        let settle_seconds = own.settle_seconds.or(common.settle_seconds);
        let deadline_seconds = own.deadline_seconds.or(common.deadline_seconds);
        let lacks = [
            ("idempotent", idempotent.is_none()),
            ("settle_seconds", settle_seconds.is_none()),
            ("deadline_seconds", deadline_seconds.is_none()),
        ];
        let (Some(idempotent), Some(settle_seconds), Some(deadline_seconds)) =
            (idempotent, settle_seconds, deadline_seconds)
        else {
            let help = Some("add it here, or for every case under `[tool.task]`".to_owned());
            self.report.add(Rule::Task, place, format!("the terms of this task lack {}", list_missing(&lacks)), help);
            return None;
        };
        if settle_seconds >= deadline_seconds {
            let message =
                format!("settles in {settle_seconds} s, which is not before its deadline of {deadline_seconds} s");
            self.report.add(Rule::Bounds, place, message, None);
        }
        if let (false, Some(name), Some(probe)) = (idempotent, written, &probe)
            && !probe.baseline
        {
            let help = Some("give the probe `baseline = true`, or choose one that has it".to_owned());
            let message = format!("`{}` cannot tell whether a write that must not repeat has happened", probe.name);
            self.add(Rule::NoBaseline, name, message, help);
        }
        Some(PolicySpec { probe, idempotent, settle_seconds, deadline_seconds })
    }
}

pub(super) fn idempotency_argument() -> Field {
    let doc = "The same key returns the task in flight and sends nothing; after its end, the call is sent anew. Default: tool \
        and arguments.";
    Field { optional: true, ..plain("idempotency_key", doc, Type::Named(idempotency_key())) }
}

pub(super) fn task_result_type(target: &TargetSpec, read_tool: &str) -> Arc<NamedType> {
    let fields = vec![
        ours("task_id", &format!("Names the task for {read_tool}.")),
        ours("tool", "The tool that made it."),
        plain(&target.arg, "What it acts on.", Type::Named(Arc::clone(&target.resource.id))),
        plain("status", "State of the task; a new one is always `dispatched`.", Type::Named(task_status())),
        plain("terminal", "Whether the state is final.", Type::Boolean),
        field_with_doc(
            "idempotent_hit",
            "Whether the task was in flight before; then nothing was sent.",
            Type::Boolean,
        ),
        field_with_doc(
            "request_matches",
            "Whether the task is for the same tool, target and arguments.",
            Type::Boolean,
        ),
        plain("poll_after_seconds", "When to poll it.", Type::Integer),
        ours("next_step", "What to do next."),
    ];
    make_type("TaskAccepted", "An accepted write: the task whose outcome is polled.", Kind::Object(fields))
}
