//! Lowers tools: resolves the names that they use and derives the parts that a contract does not
//! write.

mod body;
mod http;
mod lowering;
mod reading;
mod tasks;

pub(crate) use lowering::Scope;

use super::derived::FIELDS;
use super::require::{require_distinct, require_text, require_wire_name};
use super::types::FieldPlace;
use crate::model::{
    Domain, EffectSpec, ErrorCode, Example, Field, Kind, NamedType, TargetSpec, ToolHints, ToolSpec, Type,
};
use crate::raw::{self, At, EffectName, Files, Named};
use crate::report::{Report, Source};
use crate::rules::{OUTCOME_UNKNOWN, Rule};
use crate::source::FIRST_TOOLS;
use crate::{fit, names};
use http::Routes;
use lowering::{Arguments, Lowering};
use std::collections::HashMap;
use std::sync::Arc;

/// Clients put up to 27 characters in front of it, and providers accept 64 in total.
const MAX_NAME: usize = 37;

pub(crate) const RETIRED: &str = "choose another name; whoever still uses the old one must meet an error";

pub(crate) fn lower(files: &Files, sources: &[Source], scope: &Scope<'_>, report: &mut Report) -> Vec<Domain> {
    let mut seen = Seen::default();
    let reserved: Vec<&str> = files.reserved.tools.iter().flatten().map(|name| name.as_str()).collect();
    let mut domains = Vec::new();
    for (n, (name, raw::ToolsFile { tool: tools })) in files.tools.iter().enumerate() {
        let mut lowering = Lowering { file: FIRST_TOOLS + n, source: &sources[FIRST_TOOLS + n], scope, report };
        let tools: Vec<_> = tools.iter().map(|tool| lowering.complete(tool)).collect();
        for tool in &tools {
            lowering.once(tool, &mut seen, &reserved);
        }
        let tools = tools.iter().filter_map(|tool| lowering.tool(tool)).collect();
        domains.push(Domain { name: name.clone(), tools });
    }
    reading::check(files, scope, report);
    domains
}

#[derive(Default)]
struct Seen {
    names: HashMap<String, (String, String)>,
    routes: Routes,
}

impl Lowering<'_> {
    /// Gives the framework's words the place of the tool's name.
    fn complete(&self, tool: &At<raw::Tool>) -> At<raw::Tool> {
        let mut whole = (**tool).clone();
        if let (EffectName::ReadTask, Some(words)) = (*whole.effect, &self.scope.files.defaults.read_task) {
            let raw::ReadTask { title, http, summary, use_when, returns, notes, example } = words;
            for (own, default) in [
                (&mut whole.title, title),
                (&mut whole.http, http),
                (&mut whole.summary, summary),
                (&mut whole.use_when, use_when),
                (&mut whole.returns, returns),
            ] {
                own.get_or_insert_with(|| tool.name.with(default.to_string()));
            }
            whole.notes.get_or_insert_with(|| notes.iter().map(|note| tool.name.with(note.to_string())).collect());
            whole.example.get_or_insert_with(|| example.clone());
        }
        tool.with(whole)
    }

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
        let Some(http) = &tool.http else { return };
        if let Some((message, help)) = seen.routes.add(name, http) {
            self.add(Rule::DuplicateRoute, http, message, help);
        }
    }

    fn tool(&mut self, raw: &At<raw::Tool>) -> Option<ToolSpec> {
        let raw::Tool { name, permission, target, effect, http, args, example, .. } = &**raw;
        let raw::Tool { title, summary, use_when, not_when, returns, notes, .. } = &**raw;
        require_wire_name(self.file, name, self.report);
        if let Some(help) = names::refuse_for_windows(name) {
            self.add(Rule::Name, name, format!("no file can be named `{}.json`", **name), Some(help));
        }
        if name.len() > MAX_NAME {
            let message = format!("this name has {} characters; clients take {MAX_NAME}", name.len());
            self.add(Rule::TooLong, name, message, Some("shorten it".to_owned()));
        }
        let [title, summary, use_when] = [("title", title), ("summary", summary), ("use_when", use_when)]
            .map(|(key, text)| self.require_text(raw, key, text.as_ref()));
        let is_sentence = |text: &&At<String>| text.starts_with(char::is_uppercase) || text.starts_with("use ");
        if let Some(text) = raw.use_when.as_ref().filter(is_sentence) {
            let help = Some("begin with a lower-case word such as `to`, `when` or `before`".to_owned());
            self.add(Rule::UseWhen, text, "agents read this after the words `Use it`", help);
        }
        let mut say = |text| self.scope.words.say(self.file, text, self.report);
        let [not_when, returns] = [not_when, returns].map(|text| say(text.as_ref()));
        let notes = notes.iter().flatten().map(|note| say(Some(note))).collect();
        let mut arguments = Arguments {
            lowered: self.scope.types.fields(self.file, args.as_ref(), FieldPlace::Argument, self.report),
            names: args.iter().flat_map(Named::iter).map(|(name, _)| name.as_str()).collect(),
        };
        let (unread, known) = (&self.scope.files.service.permission.unread, &self.scope.permissions);
        let permission = self.find(Rule::UnknownPermission, "permission", permission, unread, known, |p| &p.name);
        let (unread, known) = (&self.scope.files.service.toolset.unread, &self.scope.toolsets);
        let toolset = match &raw.toolset {
            Some(name) => self.find(Rule::Toolset, "toolset", name, unread, known, |toolset| &toolset.name).map(Some),
            None => Some(None),
        };
        let lowered_target = match target.as_ref().filter(|_| **effect != EffectName::ReadTask) {
            Some(target) => self.target(target, &arguments).map(Some),
            None => Some(None),
        };
        let effect = self.effect(raw, &arguments);
        self.derive_arguments(raw, &mut arguments);
        let http = match http {
            Some(http) => self.http(http, effect.as_ref(), &arguments).map(Some),
            None => Some(None),
        };
        let own_errors = self.own_errors(raw, effect.as_ref());
        let result = self.result(raw, effect.as_ref(), lowered_target.as_ref());
        let (permission, toolset, target, effect) = (permission?, toolset?, lowered_target?, effect?);
        let (http, own_errors, result) = (http?, own_errors?, result?);
        let body = self.body(raw, &effect, &result)?;
        let (title, summary, use_when) = (title?, summary?, use_when?);
        // If an argument could not be lowered, every example would seem to have an unknown one.
        let whole = arguments.lowered.len() == arguments.names.len();
        let examples = example.iter().flatten().filter(|_| whole);
        let examples = examples.map(|example| self.example(example, &arguments.lowered, &result)).collect();
        let tool = ToolSpec {
            name: name.to_string(),
            title,
            source: self.place_text(name),
            errors: self.derive_errors(target.as_ref(), &effect, &own_errors),
            right: permission.index,
            permission,
            toolset,
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
            body,
            own_errors,
            examples,
        };
        self.check_nullable(&tool, args.as_ref());
        Some(tool)
    }

    /// Hosts in the strict mode of a provider send null for each argument that a model leaves out.
    fn check_nullable(&mut self, tool: &ToolSpec, args: Option<&Named<raw::Field>>) {
        let in_query = tool.http.as_ref().is_some_and(|http| !http.has_body());
        let nullable = args.into_iter().flat_map(Named::iter).filter_map(|(_, field)| field.nullable.as_ref());
        for flag in nullable.filter(|flag| ***flag) {
            let (message, help) = match tool.hints().destructive {
                true if in_query => ("no query can say null", "use PUT or POST, whose arguments stand in the body"),
                true => continue,
                false => (
                    "this tool is not destructive, and some hosts send null unasked",
                    "leave `nullable` out: null of an `optional` argument means that it is absent",
                ),
            };
            self.add(Rule::Field, flag, message, Some(help.to_owned()));
        }
    }

    fn require_text(&mut self, tool: &At<raw::Tool>, key: &str, text: Option<&At<String>>) -> Option<String> {
        if text.is_none() {
            self.add(Rule::Shape, tool, format!("missing key `{key}`"), Some(format!("add `{key} = ...`")));
        }
        text.map(|text| self.scope.words.say(self.file, Some(text), self.report))
    }

    fn derive_arguments(&mut self, tool: &raw::Tool, arguments: &mut Arguments<'_>) {
        match *tool.effect {
            EffectName::Task => {
                let arg = tool.target.as_ref().map(|target| &target.arg);
                if let Some(arg) = arg.filter(|arg| FIELDS.split_whitespace().any(|field| field == arg.as_str())) {
                    let message = format!("every answer about a task has a field `{}`", **arg);
                    let help = Some("name the argument otherwise: answers have a field for it".to_owned());
                    self.add(Rule::DuplicateName, arg, message, help);
                }
                let mut written = tool.args.iter().flat_map(Named::iter);
                if let Some((name, _)) = written.find(|(name, _)| name.as_str() == "idempotency_key") {
                    let message = "every task tool has the argument `idempotency_key` by itself";
                    self.add(Rule::DuplicateName, name, message, Some("leave it out".to_owned()));
                } else {
                    arguments.lowered.push(tasks::idempotency_argument());
                }
                arguments.names.push("idempotency_key");
            }
            EffectName::ReadTask => {
                self.refuse_derived(tool);
                *arguments = Arguments {
                    lowered: reading::arguments(&self.scope.words),
                    names: vec!["task_id", "wait_seconds"],
                };
            }
            EffectName::Read | EffectName::Act | EffectName::Issue => {}
        }
    }

    fn own_errors(&mut self, tool: &raw::Tool, effect: Option<&EffectSpec>) -> Option<Vec<Arc<ErrorCode>>> {
        require_distinct(self.file, tool.errors.iter().flatten(), self.report);
        let (unread, known) = (&self.scope.files.errors.error.unread, &self.scope.errors);
        let named = tool.errors.iter().flatten();
        let own = named.map(|code| self.find(Rule::UnknownError, "error", code, unread, known, |error| &error.code));
        let own = own.collect();
        match effect {
            Some(EffectSpec::ReadTask) => {
                Some(["not_found", "internal"].iter().filter_map(|role| self.role(role)).collect())
            }
            _ => own,
        }
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
            } else if !self.shows_capabilities(name) {
                let flags = format!("{}Capabilities", names::pascal(name));
                let message = "the description names `capabilities`, and no result shows them";
                let help = format!(
                    "add `fields.capabilities = {{ type = \"{flags}\", doc = \"...\" }}` to the type of a result"
                );
                self.add(Rule::UnknownCapability, requires, message, Some(help));
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

    fn shows_capabilities(&self, resource: &str) -> bool {
        let types = &self.scope.files.types.r#type;
        let flags = format!("{}Capabilities", names::pascal(resource));
        let mut fields = types.iter().flat_map(|(_, ty)| ty.fields.iter().flat_map(Named::iter));
        types.iter().next().is_none()
            || fields.any(|(name, field)| name.as_str() == "capabilities" && field.r#type.as_str() == flags)
    }

    fn result(
        &mut self,
        tool: &At<raw::Tool>,
        effect: Option<&EffectSpec>,
        target: Option<&Option<TargetSpec>>,
    ) -> Option<Arc<NamedType>> {
        match (effect, &tool.result, target) {
            (Some(EffectSpec::ReadTask), ..) => Some(self.task(tool)),
            (Some(EffectSpec::Task(_)), Some(result), _) => {
                self.add(Rule::Task, result, "the result of a task tool is derived; leave it out", None);
                None
            }
            (Some(EffectSpec::Task(_)), None, Some(Some(target))) => {
                Some(tasks::task_result_type(target, self.scope.words.read_tool()))
            }
            (_, Some(result), _) => self.object(result),
            (Some(_), None, Some(_)) => {
                let help = Some("name an object of types.toml: `result = \"...\"`".to_owned());
                self.add(Rule::Shape, &tool.name, "a tool that is no task needs a `result`", help);
                None
            }
            _ => None,
        }
    }

    fn object(&mut self, name: &At<String>) -> Option<Arc<NamedType>> {
        let found = self.scope.types.find_named(self.file, name, self.report)?;
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

    fn derive_errors(
        &self,
        target: Option<&TargetSpec>,
        effect: &EffectSpec,
        own: &[Arc<ErrorCode>],
    ) -> Vec<Arc<ErrorCode>> {
        let requires = target.is_some_and(|target| target.requires.is_some());
        let roles = [
            ("forbidden", true),
            ("invalid_argument", true),
            ("not_found", target.is_some()),
            ("not_supported", requires),
            ("target_busy", matches!(effect, EffectSpec::Task(_))),
            ("rate_limited", true),
            ("upstream_unavailable", target.is_some()),
            ("overloaded", true),
            ("internal", true),
            (OUTCOME_UNKNOWN, matches!(effect, EffectSpec::Act(ToolHints { idempotent: false, .. }))),
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
}
