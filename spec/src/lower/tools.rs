//! Tools: what they name, what they imply, and what is derived from that.

use super::types::{Place, Types};
use super::{FIRST_TOOLS, at, require_name, require_text};
use crate::model::{
    Domain, Effect, ErrorCode, Example, Field, Http, Kind, NamedType, Permission, Probe, Resource, StringRule, Target,
    Task, Terms, Tool, Type,
};
use crate::raw::{self, At, EffectName, Files, Named};
use crate::report::Report;
use crate::rules::{Rule, STATES};
use crate::source::{Source, line_column};
use crate::{fit, names};
use std::collections::HashMap;
use std::sync::Arc;

/// Clients put up to 27 characters before a name, of which providers take 64.
const MAX_NAME: usize = 37;

/// What tools may name.
pub(crate) struct Scope<'a> {
    pub(crate) permissions: Vec<Arc<Permission>>,
    pub(crate) probes: Vec<Arc<Probe>>,
    pub(crate) errors: Vec<Arc<ErrorCode>>,
    pub(crate) resources: Vec<Arc<Resource>>,
    pub(crate) types: Types,
    /// Every resource that is written down: one that could not be lowered is no unknown one.
    pub(crate) declared: &'a Named<raw::Resource>,
}

/// The arguments of one tool.
struct Arguments<'a> {
    /// Those that could be lowered.
    lowered: Vec<Field>,
    /// Every name that is written down, or derived.
    names: Vec<&'a str>,
}

impl Arguments<'_> {
    /// The argument of that name; `Err` if there is none, `Ok(None)` if what is wrong with it is noted already.
    fn find(&self, name: &str) -> Result<Option<&Field>, ()> {
        let found = self.lowered.iter().find(|field| field.name == name);
        if found.is_none() && !self.names.contains(&name) { Err(()) } else { Ok(found) }
    }
}

/// The argument `idempotency_key` of every tool of tasks, which no spec writes down.
pub(crate) fn idempotency_key() -> Field {
    let rule = StringRule { min: 1, max: 128, prefix: String::new(), charset: vec![('!', '~')] };
    let ty = NamedType {
        name: "IdempotencyKey".to_owned(),
        doc: "Names one intended write.".to_owned(),
        kind: Kind::String(rule),
    };
    let doc = "Names this write: while its task is in flight, a call with the same key returns that task and sends \
        nothing. Left out, it is derived from the tool and its arguments, so that a blind repeat is harmless.";
    Field { optional: true, ..plain("idempotency_key", doc, Type::Named(Arc::new(ty))) }
}

pub(crate) fn lower(files: &Files, sources: &[Source], scope: &Scope<'_>, report: &mut Report) -> Vec<Domain> {
    let mut seen = Seen::default();
    let reserved: Vec<&str> = files.reserved.tools.iter().flatten().map(|name| name.as_str()).collect();
    let mut domains = Vec::new();
    for (n, (name, raw::ToolsFile { tool: tools })) in files.tools.iter().enumerate() {
        let mut lowering = Lowering { file: FIRST_TOOLS + n, source: &sources[FIRST_TOOLS + n], scope, report };
        for tool in tools {
            lowering.once(tool, &mut seen, &reserved);
        }
        let tools = tools.iter().filter_map(|tool| lowering.tool(tool)).collect();
        domains.push(Domain { name: name.clone(), tools });
    }
    domains
}

/// Names and routes of the tools before.
#[derive(Default)]
struct Seen {
    names: HashMap<String, String>,
    routes: HashMap<String, String>,
}

struct Lowering<'a> {
    file: usize,
    source: &'a Source,
    scope: &'a Scope<'a>,
    report: &'a mut Report,
}

impl Lowering<'_> {
    fn once(&mut self, tool: &At<raw::Tool>, seen: &mut Seen, reserved: &[&str]) {
        let name = &tool.name;
        let source = self.place_text(name);
        if reserved.contains(&name.as_str()) {
            let help = Some("choose another name; whoever still calls the old one must meet an error".to_owned());
            self.add(Rule::ReservedName, name, format!("`{}` was retired and is reserved", **name), help);
        }
        if let Some(first) = seen.names.insert(name.to_string(), source) {
            self.add(Rule::DuplicateName, name, format!("`{}` is declared at {first} already", **name), None);
        }
        let shape: String = tool.http.split('/').map(|part| if part.starts_with('{') { "{}/" } else { part }).collect();
        if let Some(other) = seen.routes.insert(shape, name.to_string()) {
            self.add(Rule::DuplicateRoute, &tool.http, format!("`{other}` has this HTTP twin already"), None);
        }
    }

    fn tool(&mut self, raw: &At<raw::Tool>) -> Option<Tool> {
        let raw::Tool {
            name,
            title,
            permission,
            target,
            effect,
            http,
            result,
            errors,
            summary,
            use_when,
            not_when,
            notes,
            task,
            args,
            example,
        } = &**raw;
        require_name(self.file, name, self.report);
        if name.len() > MAX_NAME {
            self.add(Rule::TooLong, name, format!("a tool's name has at most {MAX_NAME} characters"), None);
        }
        for text in [title, summary, use_when, not_when].into_iter().chain(notes.iter().flatten()) {
            require_text(self.file, text, self.report);
        }
        let mut arguments = Arguments {
            lowered: self.scope.types.fields(self.file, args.as_ref(), Place::Argument, self.report),
            names: args.iter().flat_map(Named::iter).map(|(name, _)| name.as_str()).collect(),
        };
        let permission =
            self.find(Rule::UnknownPermission, "permission", permission, &self.scope.permissions, |p| &p.name);
        let target = match target {
            Some(target) => self.target(target, &arguments).map(Some),
            None => Some(None),
        };
        let effect = self.effect(effect, task.as_ref(), raw.target.as_ref(), &arguments);
        if matches!(effect, Some(Effect::Task(_))) {
            arguments.lowered.push(idempotency_key());
            arguments.names.push("idempotency_key");
        }
        let http = self.http(http, &arguments);
        let own: Option<Vec<_>> = errors
            .iter()
            .flatten()
            .map(|code| self.find(Rule::UnknownError, "error", code, &self.scope.errors, |error| &error.code))
            .collect();
        let result = match (&effect, result, &target) {
            (Some(Effect::Task(_)), Some(result), _) => {
                self.add(Rule::Task, result, "the result of a task tool is derived; leave it out", None);
                None
            }
            (Some(Effect::Task(_)), None, Some(Some(target))) => Some(accepted(target)),
            (_, Some(result), _) => self.result(result),
            (Some(_), None, Some(_)) => {
                self.add(Rule::Shape, name, "a tool that is no task needs a `result`", None);
                None
            }
            _ => None,
        };
        let (permission, target, effect, http, own_errors, result) =
            (permission?, target?, effect?, http?, own?, result?);
        let examples =
            example.iter().flatten().map(|example| self.example(example, &arguments.lowered, &result)).collect();
        Some(Tool {
            name: name.to_string(),
            title: title.to_string(),
            source: self.place_text(name),
            errors: self.derive_errors(target.as_ref(), &effect, &arguments.lowered, &own_errors),
            permission,
            target,
            effect,
            http,
            summary: summary.to_string(),
            use_when: use_when.to_string(),
            not_when: not_when.to_string(),
            notes: notes.iter().flatten().map(|note| note.to_string()).collect(),
            args: arguments.lowered,
            result,
            own_errors,
            examples,
        })
    }

    fn target(&mut self, raw: &raw::Target, args: &Arguments<'_>) -> Option<Target> {
        let raw::Target { resource: name, arg, requires } = raw;
        let resource = self.scope.resources.iter().find(|resource| resource.name == **name).cloned();
        if resource.is_none() {
            let declared: Vec<_> = self.scope.declared.iter().map(|(name, _)| name.as_str()).collect();
            if !declared.contains(&name.as_str()) {
                self.unknown(Rule::UnknownResource, "resource", name, declared);
            }
        }
        let found = args.find(arg);
        if found.is_err() {
            self.unknown(Rule::UnknownArgument, "argument", arg, args.names.iter().copied());
        }
        let resource = resource?;
        if let Some(requires) = requires {
            let known = resource.capabilities.iter().map(|capability| capability.name.as_str());
            if !known.clone().any(|name| name == requires.as_str()) {
                self.unknown(Rule::UnknownCapability, "capability", requires, known);
            }
        }
        if let Ok(Some(field)) = found {
            let fits = matches!(&field.ty, Type::Named(ty) if ty.name == resource.id.name) && !field.optional;
            if !fits {
                self.add(
                    Rule::Target,
                    arg,
                    format!("`{}` must be a required `{}`", field.name, resource.id.name),
                    None,
                );
            }
        }
        Some(Target { resource, arg: arg.to_string(), requires: requires.as_ref().map(|name| name.to_string()) })
    }

    fn effect(
        &mut self,
        effect: &At<EffectName>,
        task: Option<&raw::Task>,
        target: Option<&raw::Target>,
        args: &Arguments<'_>,
    ) -> Option<Effect> {
        match (**effect, task) {
            (EffectName::Read, None) => Some(Effect::Read),
            (EffectName::Issue, None) => Some(Effect::Issue),
            (EffectName::Task, Some(task)) if target.is_some() => self.task(task, effect, args).map(Effect::Task),
            (EffectName::Task, Some(_)) => {
                self.add(Rule::Task, effect, "a task needs a `target`", None);
                None
            }
            (EffectName::Task, None) => {
                self.add(
                    Rule::Task,
                    effect,
                    "a task needs its terms",
                    Some("write them under `[tool.task]`".to_owned()),
                );
                None
            }
            (EffectName::Read | EffectName::Issue, Some(_)) => {
                self.add(Rule::Task, effect, "only `effect = \"task\"` has `[tool.task]`", None);
                None
            }
        }
    }

    fn task(&mut self, raw: &raw::Task, effect: &At<EffectName>, args: &Arguments<'_>) -> Option<Task> {
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
            None => vec![(String::new(), self.terms(&common, &common, effect)?)],
            Some(select) => self.cases(select, case.as_ref(), &common, effect, args)?,
        };
        if let (None, Some((value, _))) = (select, case.iter().flat_map(Named::iter).next()) {
            let help = Some("name the enum argument: `select = \"...\"`".to_owned());
            self.add(Rule::Task, value, "cases need an argument that selects them", help);
        }
        Some(Task {
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
        effect: &At<EffectName>,
        args: &Arguments<'_>,
    ) -> Option<Vec<(String, Terms)>> {
        let Ok(field) = args.find(select) else {
            self.unknown(Rule::UnknownArgument, "argument", select, args.names.iter().copied());
            return None;
        };
        let field = field?;
        let values = match &field.ty {
            Type::Named(ty) if !field.optional => match &ty.kind {
                Kind::Enum(values) => values,
                _ => return self.not_selecting(select),
            },
            _ => return self.not_selecting(select),
        };
        let cases: Vec<_> = case.iter().flat_map(|named| named.iter()).collect();
        for (value, _) in &cases {
            if !values.iter().any(|known| known.name == ***value) {
                let known = values.iter().map(|known| known.name.as_str());
                self.unknown(Rule::CaseNotTotal, "value", value, known);
            }
        }
        let mut lowered = Vec::new();
        for value in values {
            match cases.iter().find(|(name, _)| ***name == value.name) {
                Some((_, terms)) => {
                    lowered.extend(self.terms(terms, common, effect).map(|terms| (value.name.clone(), terms)))
                }
                None => {
                    let help = Some(format!("add `case.{} = {{ ... }}`", value.name));
                    self.add(Rule::CaseNotTotal, select, format!("no case for `{}`", value.name), help);
                }
            }
        }
        Some(lowered)
    }

    fn not_selecting<T>(&mut self, select: &At<String>) -> Option<T> {
        self.add(Rule::Task, select, "cases are selected by a required enum argument", None);
        None
    }

    fn terms(&mut self, own: &raw::Terms, common: &raw::Terms, effect: &At<EffectName>) -> Option<Terms> {
        let written = own.probe.as_ref().or(common.probe.as_ref());
        let probe = match written {
            Some(name) => Some(self.find(Rule::UnknownProbe, "probe", name, &self.scope.probes, |probe| &probe.name)?),
            None => None,
        };
        let (Some(idempotent), Some(settle_seconds), Some(deadline_seconds)) = (
            own.idempotent.or(common.idempotent),
            own.settle_seconds.or(common.settle_seconds),
            own.deadline_seconds.or(common.deadline_seconds),
        ) else {
            let help = Some("they are `idempotent`, `settle_seconds` and `deadline_seconds`".to_owned());
            self.add(Rule::Task, effect, "the terms of this task are not complete", help);
            return None;
        };
        if settle_seconds >= deadline_seconds {
            self.add(Rule::Bounds, effect, "a task must settle before its deadline", None);
        }
        if let (false, Some(name), Some(probe)) = (idempotent, written, &probe)
            && !probe.baseline
        {
            let help = Some("give the probe `baseline = true`, or choose one that has it".to_owned());
            self.add(
                Rule::NoBaseline,
                name,
                format!("`{}` cannot tell whether a write that must not repeat has happened", probe.name),
                help,
            );
        }
        Some(Terms { probe, idempotent, settle_seconds, deadline_seconds })
    }

    fn http(&mut self, raw: &At<String>, args: &Arguments<'_>) -> Option<Http> {
        let http = raw
            .split_once(' ')
            .filter(|(method, path)| {
                ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(method)
                    && path.starts_with("/v1/")
                    && path.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"/_-{}".contains(&b))
            })
            .map(|(method, path)| Http { method: method.to_owned(), path: path.to_owned() });
        let Some(http) = http else {
            let help = Some("write it as `PUT /v1/things/{thing_id}`, in lower case".to_owned());
            self.add(Rule::Http, raw, "this is no HTTP twin", help);
            return None;
        };
        for parameter in http.parameters() {
            match args.find(parameter) {
                Err(()) => {
                    let help = Some(names::help(parameter, args.names.iter().copied()));
                    self.add(Rule::Http, raw, format!("`{{{parameter}}}` is no argument of this tool"), help);
                }
                Ok(Some(field)) if field.optional => {
                    self.add(Rule::Http, raw, format!("`{{{parameter}}}` stands in the path but is optional"), None);
                }
                Ok(_) => {}
            }
        }
        Some(http)
    }

    fn result(&mut self, name: &At<String>) -> Option<Arc<NamedType>> {
        let found = self.scope.types.named(self.file, name, self.report)?;
        if !matches!(found.kind, Kind::Object(_)) {
            self.add(Rule::Field, name, "the result of a tool is an object", None);
        }
        Some(found)
    }

    fn example(&mut self, raw: &raw::Example, args: &[Field], result: &NamedType) -> Example {
        let raw::Example { title, arguments, result: shown } = raw;
        require_text(self.file, title, self.report);
        if let Err(why) = fit::arguments(args, arguments) {
            self.add(Rule::Example, arguments, format!("the arguments do not fit: {why}"), None);
        }
        if let (Some(shown), Kind::Object(fields)) = (shown, &result.kind)
            && let Err(why) = fit::members(fields, shown)
        {
            self.add(Rule::Example, shown, format!("the result does not fit: {why}"), None);
        }
        Example {
            title: title.to_string(),
            arguments: (**arguments).clone(),
            result: shown.as_ref().map(|shown| (**shown).clone()).unwrap_or_default(),
        }
    }

    /// What a call can end with follows from what the tool declares; its own errors come last.
    fn derive_errors(
        &self,
        target: Option<&Target>,
        effect: &Effect,
        args: &[Field],
        own: &[Arc<ErrorCode>],
    ) -> Vec<Arc<ErrorCode>> {
        let requires = target.is_some_and(|target| target.requires.is_some());
        let roles = [
            ("forbidden", true),
            ("invalid_argument", !args.is_empty()),
            ("not_found", target.is_some()),
            ("not_supported", requires),
            ("target_busy", matches!(effect, Effect::Task(_))),
            ("rate_limited", true),
            ("upstream_unavailable", target.is_some()),
            ("overloaded", true),
            ("internal", true),
        ];
        let play = |role: &str| self.scope.errors.iter().find(|error| error.role.as_deref() == Some(role)).cloned();
        let mut errors: Vec<_> =
            roles.iter().filter(|(_, derived)| *derived).filter_map(|(role, _)| play(role)).collect();
        for error in own {
            if !errors.iter().any(|known| known.code == error.code) {
                errors.push(Arc::clone(error));
            }
        }
        errors
    }

    fn find<T>(
        &mut self,
        rule: Rule,
        kind: &str,
        name: &At<String>,
        all: &[Arc<T>],
        key: fn(&T) -> &String,
    ) -> Option<Arc<T>> {
        let found = all.iter().find(|candidate| key(candidate) == &**name).cloned();
        if found.is_none() {
            self.unknown(rule, kind, name, all.iter().map(|candidate| key(candidate).as_str()));
        }
        found
    }

    fn unknown<'n>(&mut self, rule: Rule, kind: &str, name: &At<String>, known: impl IntoIterator<Item = &'n str>) {
        self.report.unknown(rule, at(self.file, name.span()), kind, name, known);
    }

    fn add<T>(&mut self, rule: Rule, place: &At<T>, message: impl Into<String>, help: Option<String>) {
        self.report.add(rule, at(self.file, place.span()), message, help);
    }

    fn place_text<T>(&self, place: &At<T>) -> String {
        format!("{}:{}", self.source.shown, line_column(&self.source.text, place.span().start).0)
    }
}

/// What every task tool answers with; the target is named as the tool's argument names it.
fn accepted(target: &Target) -> Arc<NamedType> {
    let named =
        |name: &str, doc: &str, kind| Type::Named(Arc::new(NamedType { name: name.into(), doc: doc.into(), kind }));
    let state = |state: &&str| crate::model::Member { name: (*state).to_owned(), doc: String::new() };
    let status = named("TaskStatus", "State of a task.", Kind::Enum(STATES.iter().map(state).collect()));
    let fields = vec![
        plain("task_id", "Names the task for get_task.", Type::String),
        plain("tool", "The tool that made it.", Type::String),
        plain(&target.arg, "What it acts on.", Type::Named(Arc::clone(&target.resource.id))),
        plain("status", "State of the task; a new one is always `dispatched`.", status),
        plain("terminal", "Whether the state is final.", Type::Boolean),
        plain(
            "idempotent_hit",
            "Whether this is a task that was in flight before; then nothing was sent.",
            Type::Boolean,
        ),
        plain("request_matches", "Whether that task is for the same tool, target and arguments.", Type::Boolean),
        plain("poll_after_seconds", "When to poll it.", Type::Integer),
        plain("next_step", "What to do next.", Type::String),
    ];
    let doc = "An accepted write: the task whose outcome is polled.".to_owned();
    Arc::new(NamedType { name: "TaskAccepted".to_owned(), doc, kind: Kind::Object(fields) })
}

fn plain(name: &str, doc: &str, ty: Type) -> Field {
    Field {
        name: name.to_owned(),
        doc: doc.to_owned(),
        ty,
        optional: false,
        nullable: false,
        secret: false,
        untrusted: false,
        default: None,
    }
}
