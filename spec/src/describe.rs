//! The texts that agents read, composed from the fields of the contract so that nothing can be left out.

use crate::model::{Contract, EffectSpec, Field, Kind, NamedType, StringSpec, ToolSpec, Type};
use std::fmt::Write;

/// Writes the instructions of `initialize`: only what concerns several tools.
#[must_use]
pub fn instructions(contract: &Contract) -> String {
    let phrases = &contract.phrases;
    let sentences = [&contract.service.doc, &phrases.capability, &phrases.forbidden, &phrases.task, &phrases.retryable];
    sentences.map(|text| text.trim()).into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Writes the description of a tool: all that the contract says of it.
#[must_use]
pub fn description(contract: &Contract, tool: &ToolSpec) -> String {
    let mut out = Text(String::new());
    out.line(&tool.summary);
    out.line(&format!("Use it when {}", tool.use_when));
    out.line(&format!("Do not use it when {}", tool.not_when));
    arguments(&mut out, tool);
    preconditions(&mut out, contract, tool);
    out.list("Result", fields(&tool.result, 0));
    if tool.tells_of_tasks() {
        let states =
            contract.states.iter().map(|state| format!("{}: {} {}", state.name, state.meaning, state.next_step));
        out.list("States of the task", states.collect());
        out.line(&contract.phrases.task);
    }
    if let Some(task) = tool.task().filter(|task| !task.usually_ends.is_empty()) {
        out.line(&format!("It usually ends as {}.", task.usually_ends.join(" or ")));
    }
    for note in &tool.notes {
        out.line(note);
    }
    failures(&mut out, contract, tool);
    let examples = tool
        .examples
        .iter()
        .map(|example| format!("{}: {}", example.title, serde_json::Value::Object(example.arguments.clone())));
    out.list("Examples", examples.collect());
    out.0.trim_end().to_owned()
}

/// Says in a phrase which values a type has: `an integer from 1 to 200`.
#[must_use]
pub fn allowed(ty: &Type) -> String {
    match ty {
        Type::String => "a string".to_owned(),
        Type::Integer => "an integer".to_owned(),
        Type::Boolean => "true or false".to_owned(),
        Type::Timestamp => "a time in RFC 3339".to_owned(),
        Type::Url => "an https URL".to_owned(),
        Type::List(inner) => format!("a list, each item {}", allowed(inner)),
        Type::Named(named) => match &named.kind {
            Kind::String(rule) => allowed_string(rule),
            Kind::Integer { min, max } => format!("an integer from {min} to {max}"),
            Kind::Enum(members) => {
                let names: Vec<_> = members.iter().map(|member| format!("`{}`", member.name)).collect();
                format!("one of {}", names.join(", "))
            }
            Kind::Object(_) => "an object".to_owned(),
        },
    }
}

/// Checks whether the `type` of a schema says as much as [`allowed`] would.
pub(crate) fn allowed_is_plain(ty: &Type) -> bool {
    matches!(ty, Type::String | Type::Integer | Type::Boolean)
}

fn allowed_string(StringSpec { min, max, prefix, charset }: &StringSpec) -> String {
    let [min, max] = [min, max].map(|length| length.saturating_sub(prefix.len()));
    let length = if min == max { max.to_string() } else { format!("{min} to {max}") };
    let begins = if prefix.is_empty() { "a string of".to_owned() } else { format!("`{prefix}` and then") };
    let mut out = format!("{begins} {length} characters");
    if !charset.is_empty() {
        let range = |(from, to): &(char, char)| if from == to { from.to_string() } else { format!("{from}-{to}") };
        let _ = write!(out, " out of {}", charset.iter().map(range).collect::<Vec<_>>().join(" "));
    }
    out
}

fn arguments(out: &mut Text, tool: &ToolSpec) {
    let line = |field: &Field| {
        let presence = match (&field.default, field.optional) {
            (Some(default), _) => format!("optional, {default} if left out"),
            (None, true) => "optional".to_owned(),
            (None, false) => "required".to_owned(),
        };
        let secret = if field.secret { ", secret" } else { "" };
        format!("{} ({}; {presence}{secret}): {}{}", field.name, allowed(&field.ty), field.doc, values(&field.ty))
    };
    if tool.args.is_empty() {
        out.line("It takes no arguments.");
    } else {
        out.list("Arguments", tool.args.iter().map(line).collect());
    }
}

fn preconditions(out: &mut Text, contract: &Contract, tool: &ToolSpec) {
    let permission = format!("the key's application holds the permission `{}`", tool.permission.name);
    let requires = tool.target.as_ref().and_then(|target| Some((target, target.requires.as_ref()?)));
    match requires {
        Some((target, capability)) => {
            let resource = &target.resource.name;
            out.line(&format!(
                "Before you call: {permission}, and the {resource}'s `capabilities.{capability}` is true."
            ));
        }
        None => out.line(&format!("Before you call: {permission}.")),
    }
    if requires.is_some() || shows(&tool.result, &|field| field.name == "capabilities") {
        out.line(&contract.phrases.capability);
    }
}

/// Checks whether a result has such a field, at any depth.
fn shows(result: &NamedType, such: &dyn Fn(&Field) -> bool) -> bool {
    let Kind::Object(fields) = &result.kind else { return false };
    fields.iter().any(|field| such(field) || field.ty.object().is_some_and(|inner| shows(inner, such)))
}

fn failures(out: &mut Text, contract: &Contract, tool: &ToolSpec) {
    let line = |error: &std::sync::Arc<crate::model::ErrorCode>| {
        let retry = if error.retryable { "retryable" } else { "not retryable" };
        let carries: Vec<_> = error.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        let carries = if carries.is_empty() { String::new() } else { format!(" Carries {}.", carries.join(", ")) };
        format!("{} ({retry}): {} {}.{carries}", error.code, error.meaning, error.remedy)
    };
    out.list("Failures, each with code, message and retryable", tool.errors.iter().map(line).collect());
    if tool.target.as_ref().is_some_and(|target| target.requires.is_some()) {
        out.line(&contract.phrases.forbidden);
    }
    out.line(&contract.phrases.retryable);
    match tool.effect {
        EffectSpec::ReadTask => out.line("It changes nothing."),
        EffectSpec::Read => out.line("It changes nothing and may be repeated at will."),
        EffectSpec::Issue => out.line("Every call issues anew."),
        EffectSpec::Task(_) => {}
    }
}

/// Writes one line for each field, and the fields of nested objects indented below it.
fn fields(ty: &NamedType, depth: usize) -> Vec<String> {
    let Kind::Object(all) = &ty.kind else { return Vec::new() };
    let mut lines = Vec::new();
    for field in all {
        let list = if matches!(field.ty, Type::List(_)) { "list of " } else { "" };
        let null = if field.nullable { " or null" } else { "" };
        lines.push(format!("{}{} ({list}{}{null}): {}", "  ".repeat(depth), field.name, kind(&field.ty), field.doc));
        lines.extend(field.ty.object().into_iter().flat_map(|named| fields(named, depth + 1)));
    }
    lines
}

/// Names the kind of a value, without its limits: results are always within them.
fn kind(ty: &Type) -> String {
    match ty {
        Type::String => "string".to_owned(),
        Type::Integer => "integer".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Timestamp => "RFC 3339 time in UTC".to_owned(),
        Type::Url => "https URL".to_owned(),
        Type::List(inner) => kind(inner),
        Type::Named(named) => match &named.kind {
            Kind::String(_) => "string".to_owned(),
            Kind::Integer { .. } => "integer".to_owned(),
            Kind::Enum(members) => members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(" | "),
            Kind::Object(_) => "object".to_owned(),
        },
    }
}

fn values(ty: &Type) -> String {
    let Type::Named(named) = ty else { return String::new() };
    let Kind::Enum(members) = &named.kind else { return String::new() };
    let described = members.iter().filter(|member| !member.doc.is_empty());
    let lines: Vec<_> = described.map(|member| format!("`{}`: {}", member.name, member.doc)).collect();
    if lines.is_empty() { String::new() } else { format!(" {}", lines.join(" ")) }
}

/// A text of paragraphs and lists.
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.0.push_str(line.trim());
            self.0.push('\n');
        }
    }

    fn list(&mut self, title: &str, items: Vec<String>) {
        if items.is_empty() {
            return;
        }
        let _ = writeln!(self.0, "{title}:");
        for item in items {
            let indent = item.len() - item.trim_start().len();
            let _ = writeln!(self.0, "{}- {}", &item[..indent], item.trim());
        }
    }
}
