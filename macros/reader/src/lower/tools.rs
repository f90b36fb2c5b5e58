//! Lowers tools: resolves the names that they use and derives what follows from them. `tasks` lowers the policies of tools that make
//! tasks; `reading` derives the tool that reads tasks; `http` lowers their twins under `/v1`.

mod http;
mod reading;
mod tasks;

pub(crate) use reading::derived_types;

use super::types::{Place, Types};
use super::words::Words;
use super::{FIRST_TOOLS, at, require_distinct, require_name, require_text};
use crate::model::{
    Domain, EffectSpec, ErrorCode, Example, Field, Kind, NamedType, PermissionSpec, ProbeSpec, ResourceSpec,
    TargetSpec, ToolSpec, Type,
};
use crate::raw::{self, At, EffectName, Files, Named, Unread};
use crate::report::{Report, Source, line_column};
use crate::rules::Rule;
use crate::{fit, names};
use http::Routes;
use std::collections::HashMap;
use std::sync::Arc;

/// Longest name of a tool: clients put up to 27 characters before it, and providers accept 64 in all.
const MAX_NAME: usize = 37;

pub(crate) const RETIRED: &str = "choose another name; whoever still uses the old one must meet an error";

/// What tools may refer to.
pub(crate) struct Scope<'a> {
    pub(crate) permissions: Vec<Arc<PermissionSpec>>,
    pub(crate) probes: Vec<Arc<ProbeSpec>>,
    pub(crate) errors: Vec<Arc<ErrorCode>>,
    pub(crate) resources: Vec<Arc<ResourceSpec>>,
    pub(crate) types: Types,
    pub(crate) words: Words,
    /// All files. A name in them is known even if its entry could not be read or lowered.
    pub(crate) files: &'a Files,
}

/// The arguments of one tool.
struct Arguments<'a> {
    /// The arguments that could be lowered.
    lowered: Vec<Field>,
    /// The names of all arguments, written and derived.
    names: Vec<&'a str>,
}

impl Arguments<'_> {
    /// Finds an argument by its name. Returns `Err` if there is none, and `Ok(None)` if its problem is already reported.
    fn find(&self, name: &str) -> Result<Option<&Field>, ()> {
        let found = self.lowered.iter().find(|field| field.name == name);
        if found.is_none() && !self.names.contains(&name) { Err(()) } else { Ok(found) }
    }
}

pub(crate) fn lower(files: &Files, sources: &[Source], scope: &Scope<'_>, report: &mut Report) -> Vec<Domain> {
    let mut seen = Seen::default();
    let reserved: Vec<&str> = files.reserved.tools.iter().flatten().map(|name| name.as_str()).collect();
    let mut domains = Vec::new();
    for (n, (name, raw::ToolsFile { tool: tools, broken: _ })) in files.tools.iter().enumerate() {
        let mut lowering = Lowering { file: FIRST_TOOLS + n, source: &sources[FIRST_TOOLS + n], scope, report };
        for tool in tools {
            lowering.once(tool, &mut seen, &reserved);
        }
        let tools = tools.iter().filter_map(|tool| lowering.tool(tool)).collect();
        domains.push(Domain { name: name.clone(), tools });
    }
    reading::check(files, scope, report);
    domains
}

/// The names and routes of the tools so far.
#[derive(Default)]
struct Seen {
    /// By name in Rust: the name on the wire, and the place.
    names: HashMap<String, (String, String)>,
    routes: Routes,
}

struct Lowering<'a> {
    file: usize,
    source: &'a Source,
    scope: &'a Scope<'a>,
    report: &'a mut Report,
}

impl<'a> Lowering<'a> {
    fn once(&mut self, tool: &At<raw::Tool>, seen: &mut Seen, reserved: &[&str]) {
        let name = &tool.name;
        let source = self.place_text(name);
        if reserved.contains(&name.as_str()) {
            let help = Some(RETIRED.to_owned());
            self.add(Rule::ReservedName, name, format!("`{}` was retired and is reserved", **name), help);
        }
        if let Some((first, place)) = seen.names.insert(names::pascal(name), (name.to_string(), source)) {
            let message = match first == **name {
                true => format!("`{first}` is declared at {place} already"),
                false => format!("`{}` is `{}` in Rust, as is `{first}` at {place}", **name, names::pascal(name)),
            };
            self.add(Rule::DuplicateName, name, message, Some("choose another name".to_owned()));
        }
        let Some(http) = tool.http.as_ref().or_else(|| Some(&self.default(tool)?.http)) else { return };
        if let Some((message, help)) = seen.routes.add(name, http) {
            self.add(Rule::DuplicateRoute, tool.http.as_ref().unwrap_or(name), message, help);
        }
    }

    fn tool(&mut self, raw: &At<raw::Tool>) -> Option<ToolSpec> {
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
            returns,
            notes,
            task,
            args,
            example,
        } = &**raw;
        require_name(self.file, name, self.report);
        if name.len() > MAX_NAME {
            let message = format!("this name has {} characters; clients take {MAX_NAME}", name.len());
            self.add(Rule::TooLong, name, message, Some("shorten it".to_owned()));
        }
        let default = self.default(raw);
        let text = [
            self.text(raw, "title", title.as_ref(), default.map(|words| &words.title)),
            self.text(raw, "summary", summary.as_ref(), default.map(|words| &words.summary)),
            self.text(raw, "use_when", use_when.as_ref(), default.map(|words| &words.use_when)),
        ];
        let not_when = self.scope.words.say(self.file, not_when.as_ref(), None, self.report);
        let returns =
            self.scope.words.say(self.file, returns.as_ref(), default.map(|words| &words.returns), self.report);
        let notes = self.notes(notes.as_deref(), default);
        let mut arguments = Arguments {
            lowered: self.scope.types.fields(self.file, args.as_ref(), Place::Argument, self.report),
            names: args.iter().flat_map(Named::iter).map(|(name, _)| name.as_str()).collect(),
        };
        let Files { service, errors: declared, .. } = self.scope.files;
        let permission = self.find(
            Rule::UnknownPermission,
            "permission",
            permission,
            &service.permission.unread,
            &self.scope.permissions,
            |p| &p.name,
        );
        let target = match target {
            // Reported below.
            Some(_) if matches!(**effect, EffectName::ReadTask) => Some(None),
            Some(target) => self.target(target, &arguments).map(Some),
            None => Some(None),
        };
        let raw_effect = effect;
        let effect = self.effect(effect, task.as_ref(), raw.target.as_ref(), &arguments);
        if matches!(**raw_effect, EffectName::Task) {
            let arg = raw.target.as_ref().map(|target| &target.arg);
            if let Some(arg) = arg.filter(|arg| tasks::FIELDS.contains(&arg.as_str())) {
                let help = Some("name the argument otherwise: answers have a field for it".to_owned());
                self.add(Rule::DuplicateName, arg, format!("every answer about a task has a field `{}`", **arg), help);
            }
            let written = args.iter().flat_map(Named::iter).find(|(name, _)| name.as_str() == "idempotency_key");
            if let Some((name, _)) = written {
                let help = Some("leave it out".to_owned());
                self.add(
                    Rule::DuplicateName,
                    name,
                    "every task tool has the argument `idempotency_key` by itself",
                    help,
                );
            } else {
                arguments.lowered.push(tasks::idempotency_key());
            }

            arguments.names.push("idempotency_key");
        }
        if matches!(**raw_effect, EffectName::ReadTask) {
            self.refuse_derived(raw);
            arguments =
                Arguments { lowered: reading::arguments(&self.scope.words), names: vec!["task_id", "wait_seconds"] };
        }
        let http = match http.as_ref().or(default.map(|words| &words.http)) {
            Some(http) => self.http(http, effect.as_ref(), &arguments).map(Some),
            None => Some(None),
        };
        require_distinct(self.file, errors.iter().flatten(), self.report);
        let own: Option<Vec<_>> = errors
            .iter()
            .flatten()
            .map(|code| {
                self.find(Rule::UnknownError, "error", code, &declared.error.unread, &self.scope.errors, |error| {
                    &error.code
                })
            })
            .collect();
        let own = if matches!(effect, Some(EffectSpec::ReadTask)) { Some(self.reading_errors()) } else { own };
        let result = match (&effect, result, &target) {
            (Some(EffectSpec::ReadTask), ..) => Some(self.task(raw)),
            (Some(EffectSpec::Task(_)), Some(result), _) => {
                self.add(Rule::Task, result, "the result of a task tool is derived; leave it out", None);
                None
            }
            (Some(EffectSpec::Task(_)), None, Some(Some(target))) => {
                Some(tasks::accepted(target, self.scope.words.read_tool()))
            }
            (_, Some(result), _) => self.result(result),
            (Some(_), None, Some(_)) => {
                let help = Some("name an object of types.toml: `result = \"...\"`".to_owned());
                self.add(Rule::Shape, name, "a tool that is no task needs a `result`", help);
                None
            }
            _ => None,
        };
        let (permission, target, effect, http, own_errors, result) =
            (permission?, target?, effect?, http?, own?, result?);
        let [Some(title), Some(summary), Some(use_when)] = text else { return None };
        // If an argument could not be lowered, every example would seem to have an unknown one.
        let whole = arguments.lowered.len() == arguments.names.len();
        let examples = match (example, default) {
            (Some(own), _) => own.as_slice(),
            (None, Some(words)) => &words.example,
            (None, None) => &[],
        };
        let examples = examples.iter().filter(|_| whole);
        let examples = examples.map(|example| self.example(example, &arguments.lowered, &result)).collect();
        Some(ToolSpec {
            name: name.to_string(),
            title,
            source: self.place_text(name),
            errors: self.derive_errors(target.as_ref(), &effect, &arguments.lowered, &own_errors),
            permission,
            target,
            effect,
            http,
            summary,
            use_when,
            not_when,
            returns,
            notes,
            args: arguments.lowered,
            result,
            own_errors,
            examples,
        })
    }

    /// Returns the framework's default texts if this is the tool that reads tasks.
    fn default(&self, tool: &raw::Tool) -> Option<&'a raw::ReadTask> {
        let reads = matches!(*tool.effect, EffectName::ReadTask);
        self.scope.files.defaults.read_task.as_ref().filter(|_| reads)
    }

    /// Returns a text that every tool must have.
    fn text(
        &mut self,
        tool: &At<raw::Tool>,
        key: &str,
        own: Option<&At<String>>,
        default: Option<&At<String>>,
    ) -> Option<String> {
        if own.is_none() && default.is_none() {
            let help = Some(format!("add `{key} = ...`"));
            self.add(Rule::Shape, tool, format!("missing key `{key}`"), help);
            return None;
        }
        Some(self.scope.words.say(self.file, own, default, self.report))
    }

    fn notes(&mut self, own: Option<&[At<String>]>, default: Option<&raw::ReadTask>) -> Vec<String> {
        for note in own.into_iter().flatten() {
            require_text(self.file, note, self.report);
        }
        let notes = own.or(default.map(|words| words.notes.as_slice()));
        notes.into_iter().flatten().map(|note| self.scope.words.fill(note)).collect()
    }

    fn target(&mut self, raw: &raw::Target, args: &Arguments<'_>) -> Option<TargetSpec> {
        let raw::Target { resource: name, arg, requires } = raw;
        let resource = self.scope.resources.iter().find(|resource| resource.name == **name).cloned();
        if resource.is_none() {
            let declared = &self.scope.files.service.resource;
            if !declared.names().any(|known| known == name.as_str()) && !declared.unread.may_be(name) {
                self.unknown(Rule::UnknownResource, "resource", name, declared.names());
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
            let (name, id) = (&field.name, &resource.id.name);
            if !matches!(&field.ty, Type::Named(ty) if ty.name == *id) || field.optional {
                let help = Some(format!("declare it as `{name} = {{ type = \"{id}\", doc = \"...\" }}`"));
                self.add(Rule::Target, arg, format!("`{name}` must be a required `{id}`"), help);
            }
        }
        Some(TargetSpec { resource, arg: arg.to_string(), requires: requires.as_ref().map(|name| name.to_string()) })
    }

    fn result(&mut self, name: &At<String>) -> Option<Arc<NamedType>> {
        let found = self.scope.types.named(self.file, name, self.report)?;
        if !matches!(found.kind, Kind::Object(_)) {
            let help = Some("a result is a type of `kind = \"object\"`".to_owned());
            self.add(Rule::Field, name, format!("`{}` is no object", **name), help);
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

    /// Derives the errors that a call can end with from what the tool declares. The tool's own errors come last.
    fn derive_errors(
        &self,
        target: Option<&TargetSpec>,
        effect: &EffectSpec,
        args: &[Field],
        own: &[Arc<ErrorCode>],
    ) -> Vec<Arc<ErrorCode>> {
        let requires = target.is_some_and(|target| target.requires.is_some());
        let roles = [
            ("forbidden", true),
            ("invalid_argument", !args.is_empty()),
            ("not_found", target.is_some()),
            ("not_supported", requires),
            ("target_busy", matches!(effect, EffectSpec::Task(_))),
            ("rate_limited", true),
            ("upstream_unavailable", target.is_some()),
            ("overloaded", true),
            ("internal", true),
        ];
        let mut errors: Vec<_> =
            roles.iter().filter(|(_, derived)| *derived).filter_map(|(role, _)| self.role(role)).collect();
        for error in own {
            if !errors.iter().any(|known| known.code == error.code) {
                errors.push(Arc::clone(error));
            }
        }
        errors
    }

    fn role(&self, role: &str) -> Option<Arc<ErrorCode>> {
        self.scope.errors.iter().find(|error| error.role.as_deref() == Some(role)).cloned()
    }

    fn find<T>(
        &mut self,
        rule: Rule,
        kind: &str,
        name: &At<String>,
        unread: &Unread,
        all: &[Arc<T>],
        key: fn(&T) -> &String,
    ) -> Option<Arc<T>> {
        let found = all.iter().find(|candidate| key(candidate) == &**name).cloned();
        if found.is_none() && !unread.may_be(name) {
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
