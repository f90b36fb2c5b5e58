//! Collects the facts of a contract. A flag is a fact only if it is true, and a text only if there
//! is one. A text is as the contract's author wrote it, with its placeholders.

use super::framework;
use crate::model::{
    Contract, EffectSpec, ErrorCode, Field, Kind, NamedType, PolicySpec, StringSpec, ToolSpec, ToolsetSpec, Type,
};
use crate::names::pascal;
use crate::rules::FRAMEWORK_TYPES;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn facts(contract: &Contract) -> BTreeMap<String, Value> {
    let mut facts = Facts { contract, all: BTreeMap::new() };
    facts.service();
    facts.permissions_and_resources();
    contract.errors.iter().for_each(|error| facts.error(error));
    for state in &contract.states {
        let key = format!("state.{}", state.name);
        facts.texts(&key, &[("brief", &state.brief), ("meaning", &state.meaning), ("next_step", &state.next_step)]);
        state.reported.iter().for_each(|(report, text)| facts.text(format!("{key}.reported.{report}"), text));
    }
    facts.types();
    let mut before = "";
    for tool in contract.tools() {
        facts.tool(tool);
        facts.text(format!("tool.{}.after", tool.name), before);
        before = &tool.name;
    }
    for (key, value) in framework::facts() {
        facts.set(format!("framework.{key}"), value);
    }
    facts.all
}

struct Facts<'a> {
    contract: &'a Contract,
    all: BTreeMap<String, Value>,
}

impl Facts<'_> {
    fn set(&mut self, key: String, value: impl Into<Value>) {
        self.all.insert(key, value.into());
    }

    fn flag(&mut self, key: String, is_true: bool) {
        if is_true {
            self.set(key, true);
        }
    }

    fn text(&mut self, key: String, text: &str) {
        if !text.is_empty() {
            let written = self.contract.written.get(text).map_or(text, String::as_str);
            self.set(key, written);
        }
    }

    fn texts(&mut self, key: &str, texts: &[(&str, &str)]) {
        texts.iter().for_each(|(name, text)| self.text(format!("{key}.{name}"), text));
    }

    fn service(&mut self) {
        let Contract { service, readers, phrases, texts, numbers, reserved, .. } = self.contract;
        self.texts("service", &[("name", &service.name), ("title", &service.title), ("doc", &service.doc)]);
        service.served.iter().for_each(|revision| self.flag(format!("revision.{revision}"), true));
        self.flag("protocol.tasks".to_owned(), service.follows);
        for (key, number) in [
            ("requests_per_minute", service.requests_per_minute),
            ("poll_interval_seconds", service.poll_interval_seconds),
            ("hold_seconds", service.hold_seconds),
            ("wait_seconds", service.wait_seconds),
        ] {
            self.set(format!("limit.{key}"), number);
        }
        for (table, keys) in [("readers", serde_json::to_value(readers)), ("phrase", serde_json::to_value(phrases))] {
            for (key, value) in keys.iter().filter_map(Value::as_object).flatten() {
                match value {
                    Value::String(text) => self.text(format!("{table}.{key}"), text),
                    number => self.set(format!("{table}.{key}"), number.clone()),
                }
            }
        }
        texts.iter().for_each(|(name, text)| self.text(format!("text.{name}"), text));
        numbers.iter().for_each(|(name, number)| self.set(format!("number.{name}"), *number));
        for (kind, names) in [("tools", &reserved.tools), ("errors", &reserved.errors), ("values", &reserved.values)] {
            let mut names = names.clone();
            names.sort();
            self.set(format!("reserved.{kind}"), names);
        }
    }

    fn permissions_and_resources(&mut self) {
        let Contract { permissions, resources, probes, .. } = self.contract;
        for permission in permissions {
            let key = format!("permission.{}", permission.name);
            self.text(format!("{key}.doc"), &permission.doc);
            permission.implies.iter().for_each(|implied| self.flag(format!("{key}.implies.{implied}"), true));
        }
        for toolset in &self.contract.toolsets {
            let ToolsetSpec { name, doc, list, list_with_outputs, index: _ } = &**toolset;
            self.text(format!("toolset.{name}.doc"), doc);
            self.set(format!("toolset.{name}.list"), *list);
            self.set(format!("toolset.{name}.list_with_outputs"), *list_with_outputs);
        }
        for resource in resources {
            let key = format!("resource.{}", resource.name);
            self.texts(&key, &[("id", &resource.id.name), ("doc", &resource.doc), ("find", &resource.find)]);
            for capability in &resource.capabilities {
                self.text(format!("{key}.capability.{}", capability.name), &capability.doc);
            }
        }
        for probe in probes {
            let key = format!("probe.{}", probe.name);
            self.texts(&key, &[("doc", &probe.doc), ("unread", &probe.unread)]);
            self.texts(&key, &[("timeout", &probe.timeout), ("success", &probe.success)]);
            self.flag(format!("{key}.baseline"), probe.baseline);
        }
    }

    fn error(&mut self, error: &ErrorCode) {
        let ErrorCode { code, role, retryable, retry_after_seconds, http, jsonrpc, meaning, brief, remedy, fields } =
            error;
        let key = format!("error.{code}");
        self.flag(format!("{key}.retryable"), *retryable);
        self.set(format!("{key}.http"), *http);
        self.set(format!("{key}.jsonrpc"), *jsonrpc);
        if *retryable {
            self.set(format!("{key}.retry_after_seconds"), *retry_after_seconds);
        }
        let role = role.as_deref().unwrap_or_default();
        self.texts(&key, &[("role", role), ("meaning", meaning), ("brief", brief), ("remedy", remedy)]);
        fields.iter().for_each(|field| self.field(&key, field));
    }

    fn field(&mut self, above: &str, field: &Field) {
        let Field { name, doc, ty, optional, nullable, secret, untrusted, ours, told, derived, .. } = field;
        if *derived {
            return;
        }
        let key = format!("{above}.field.{name}");
        self.texts(&key, &[("type", &spell(ty)), ("doc", doc)]);
        self.flag(format!("{key}.optional"), *optional);
        self.flag(format!("{key}.nullable"), *nullable);
        self.add_limits(&key, field);
        self.flag(format!("{key}.told"), *told);
        let author = [("secret", secret), ("untrusted", untrusted), ("ours", ours)];
        if let Some((author, _)) = author.iter().find(|(_, is)| **is) {
            self.set(format!("{key}.text"), *author);
        }
    }

    /// Adds what only arguments and their parts have.
    fn add_limits(&mut self, key: &str, Field { max_items, default, .. }: &Field) {
        if let Some(max) = max_items {
            self.set(format!("{key}.max_items"), *max);
        }
        if let Some(default) = default {
            self.set(format!("{key}.default"), default.clone());
        }
    }

    /// Leaves out types that follow from permissions, probes and capabilities.
    fn types(&mut self) {
        let contract = self.contract;
        let derived = contract.resources.iter().flat_map(|resource| {
            let name = pascal(&resource.name);
            [format!("{name}Capability"), format!("{name}Capabilities")]
        });
        let mut derived: Vec<String> = derived.collect();
        derived.extend(["Permission", "Probe"].map(str::to_owned));
        for ty in contract.types.iter().filter(|ty| !derived.contains(&ty.name)) {
            let is_own = !FRAMEWORK_TYPES.split_whitespace().any(|known| known == ty.name);
            self.add_type(if is_own { "type" } else { "framework.type" }, ty);
        }
        // A field for a target follows from the tools.
        for tool in contract.tools().filter(|tool| tool.tells_of_tasks()) {
            self.add_type("framework.type", &tool.result);
        }
    }

    fn add_type(&mut self, above: &str, ty: &NamedType) {
        let key = format!("{above}.{}", ty.name);
        let is_own = above == "type";
        if is_own {
            self.text(format!("{key}.doc"), &ty.doc);
        }
        let kind = match &ty.kind {
            Kind::String(StringSpec { min, max, prefix, charset }) => {
                self.set(format!("{key}.min_length"), *min);
                self.set(format!("{key}.max_length"), *max);
                self.text(format!("{key}.prefix"), prefix);
                let charset: Vec<_> = charset.iter().map(range).collect();
                self.set(format!("{key}.charset"), charset);
                "string"
            }
            Kind::Integer { min, max } => {
                self.set(format!("{key}.min"), *min);
                self.set(format!("{key}.max"), *max);
                "integer"
            }
            Kind::Enum(members) => {
                members.iter().for_each(|member| self.set(format!("{key}.value.{}", member.name), &*member.doc));
                "enum"
            }
            Kind::Object(fields) => {
                let ids: Vec<_> = self.contract.resources.iter().map(|resource| &resource.id.name).collect();
                let follows = |field: &&Field| field.ty.as_named().is_some_and(|named| ids.contains(&&named.name));
                for field in fields.iter().filter(|field| is_own || !follows(field)) {
                    let doc = if is_own || field.told { field.doc.clone() } else { String::new() };
                    self.field(&key, &Field { doc, ..field.clone() });
                    if let Some(remark) = field.ty.as_named().filter(|named| named.name == "Remark") {
                        self.add_type(above, remark);
                    }
                }
                "object"
            }
            Kind::Text(max) => {
                self.set(format!("{key}.max_length"), *max);
                "text"
            }
            Kind::Number { min, max } => {
                for (name, bound) in [("min", min), ("max", max)] {
                    self.texts(&key, &[(name, &bound.map(|bound| bound.to_string()).unwrap_or_default())]);
                }
                "number"
            }
            Kind::Map { values, max_items } => {
                self.text(format!("{key}.values"), &spell(values));
                self.set(format!("{key}.max_items"), *max_items);
                "map"
            }
            Kind::Json(max) => {
                self.set(format!("{key}.max_bytes"), *max);
                "json"
            }
        };
        self.set(format!("{key}.kind"), kind);
    }

    fn tool(&mut self, tool: &ToolSpec) {
        let ToolSpec { name, title, permission, target, effect, http, summary, use_when, not_when, .. } = tool;
        let key = format!("tool.{name}");
        let http = http.as_ref().map(|http| format!("{} {}", http.method, http.path)).unwrap_or_default();
        let texts: [(&str, &str); 8] = [
            ("title", title),
            ("permission", &permission.name),
            ("effect", effect.name()),
            ("http", &http),
            ("summary", summary),
            ("use_when", use_when),
            ("not_when", not_when),
            ("returns", &tool.returns),
        ];
        self.texts(&key, &texts);
        self.text(format!("{key}.toolset"), tool.toolset.as_ref().map_or("", |toolset| &toolset.name));
        self.set(format!("{key}.result"), &*tool.result.name);
        self.text(format!("{key}.body"), tool.body.as_ref().map_or("", |body| &body.field));
        let written = |note| self.contract.written.get(note).unwrap_or(note).clone();
        let notes: Vec<_> = tool.notes.iter().map(written).collect();
        if !notes.is_empty() {
            self.set(format!("{key}.notes"), notes);
        }
        if let Some(target) = target {
            let requires = target.requires.as_deref().unwrap_or_default();
            let target: [(&str, &str); 3] =
                [("resource", &target.resource.name), ("argument", &target.arg), ("requires", requires)];
            self.texts(&format!("{key}.target"), &target);
        }
        for field in &tool.args {
            let Field { name, doc, ty, optional, nullable, secret, formerly, .. } = field;
            let key = format!("{key}.argument.{name}");
            self.texts(&key, &[("type", &spell(ty)), ("doc", doc)]);
            self.flag(format!("{key}.optional"), *optional);
            self.flag(format!("{key}.nullable"), *nullable);
            self.flag(format!("{key}.secret"), *secret);
            self.add_limits(&key, field);
            if !formerly.is_empty() {
                self.set(format!("{key}.formerly"), formerly.clone());
            }
        }
        tool.errors.iter().for_each(|error| self.flag(format!("{key}.error.{}", error.code), true));
        let hints = tool.hints();
        let hints =
            [("read_only", hints.read_only), ("destructive", hints.destructive), ("idempotent", hints.idempotent)];
        hints.into_iter().for_each(|(name, hint)| self.flag(format!("{key}.hint.{name}"), hint));
        self.flag(format!("{key}.hint.closed_world"), !tool.hints().open_world);
        if let EffectSpec::Task(task) = effect {
            let key = format!("{key}.task");
            self.text(format!("{key}.select"), task.select.as_deref().unwrap_or_default());
            self.set(format!("{key}.usually_ends"), task.usually_ends.clone());
            for (value, PolicySpec { probe, idempotent, settle_seconds, deadline_seconds }) in &task.cases {
                let key = if value.is_empty() { key.clone() } else { format!("{key}.case.{value}") };
                self.text(format!("{key}.probe"), probe.as_ref().map_or("", |probe| &probe.name));
                self.flag(format!("{key}.resend"), *idempotent);
                self.set(format!("{key}.settle_seconds"), *settle_seconds);
                self.set(format!("{key}.deadline_seconds"), *deadline_seconds);
            }
        }
    }
}

fn spell(ty: &Type) -> String {
    match ty {
        Type::String => "string".to_owned(),
        Type::Integer => "integer".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Timestamp => "timestamp".to_owned(),
        Type::Url => "url".to_owned(),
        Type::Picture => "picture".to_owned(),
        Type::Named(named) => named.name.clone(),
        Type::List(inner) => format!("[{}]", spell(inner)),
    }
}

fn range((from, to): &(char, char)) -> String {
    if from == to { from.to_string() } else { format!("{from}-{to}") }
}
