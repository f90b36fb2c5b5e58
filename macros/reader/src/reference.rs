//! The complete contract of a tool in Markdown, for people.

use crate::describe::{describe_values, description};
use crate::model::{Contract, ErrorCode, Field, Kind, NamedType, ToolSpec, Type};
use serde_json::Value;
use std::fmt::Write;
use toolwarrant_common::table_row;

#[must_use]
pub fn reference(contract: &Contract, tool: &ToolSpec) -> String {
    let mut out = format!("```text\n{}\n```\n", description(contract, tool));
    table(&mut out, "| argument | values | meaning |", tool.args.iter().map(argument));
    table(&mut out, "| result | type | meaning |", fields(&tool.result, ""));
    table(
        &mut out,
        "| failure | retryable | meaning | what to do | carries |",
        tool.errors.iter().map(|error| failure(error)),
    );
    for example in &tool.examples {
        let arguments = Value::Object(example.arguments.clone());
        let _ = writeln!(out, "\n{}:\n\n```json\n{arguments}\n```", example.title);
    }
    out
}

#[must_use]
pub(crate) fn states(contract: &Contract) -> String {
    let mut out = String::new();
    let rows = contract.states.iter().map(|state| {
        let mut next = state.next_step.clone();
        for (reported, text) in &state.reported {
            let _ = write!(next, "<br>`{reported}` was reported: {text}");
        }
        [format!("`{}`", state.name), state.meaning.clone(), next]
    });
    table(&mut out, "| state | meaning | what to do next |", rows);
    out
}

fn failure(error: &ErrorCode) -> [String; 5] {
    let retryable = match error.retryable {
        true => format!("after {} s", error.retry_after_seconds),
        false => "no".to_owned(),
    };
    [format!("`{}`", error.code), retryable, error.meaning.clone(), error.remedy.clone(), name_fields(error)]
}

pub(crate) fn name_fields(error: &ErrorCode) -> String {
    error.fields.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn table<const N: usize>(out: &mut String, head: &str, rows: impl IntoIterator<Item = [String; N]>) {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "\n{head}\n|{}", "---|".repeat(N));
    out.extend(rows.map(table_row));
}

fn argument(field: &Field) -> [String; 3] {
    let presence = match (&field.default, field.optional) {
        (Some(default), _) => format!("; {default} if left out"),
        (None, true) => "; optional".to_owned(),
        (None, false) => String::new(),
    };
    let secret = if field.secret { "; secret" } else { "" };
    let allowed = format!("{}{presence}{secret}", describe_values(&field.ty));
    [format!("`{}`", field.name), allowed, format!("{}{}", field.doc, values(&field.ty))]
}

fn fields(ty: &NamedType, prefix: &str) -> Vec<[String; 3]> {
    let Kind::Object(all) = &ty.kind else { return Vec::new() };
    let rows = all.iter().flat_map(|field| {
        let list = if matches!(field.ty, Type::List(_)) { "list of " } else { "" };
        let null = if field.nullable { " or null" } else { "" };
        let shown = format!("{list}{}{null}", kind(&field.ty));
        let row = [format!("`{prefix}{}`", field.name), shown, format!("{}{}", field.doc, values(&field.ty))];
        let nested = field.ty.object().map(|inner| fields(inner, &format!("{prefix}{}.", field.name)));
        std::iter::once(row).chain(nested.unwrap_or_default())
    });
    rows.collect()
}

/// Leaves out limits: results are always within them.
fn kind(ty: &Type) -> String {
    match ty {
        Type::String => "string".to_owned(),
        Type::Integer => "integer".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Timestamp => "RFC 3339 time in UTC".to_owned(),
        Type::Url => "https URL, or http on this machine".to_owned(),
        Type::Picture => "PNG or JPEG".to_owned(),
        Type::List(inner) => kind(inner),
        Type::Named(named) => match &named.kind {
            Kind::String(_) | Kind::Text(_) => "string".to_owned(),
            Kind::Number { .. } => "number".to_owned(),
            Kind::Integer { .. } => "integer".to_owned(),
            Kind::Enum(members) => {
                members.iter().map(|member| format!("`{}`", member.name)).collect::<Vec<_>>().join(", ")
            }
            Kind::Object(_) | Kind::Json(_) => "object".to_owned(),
            Kind::Map { values, .. } => format!("object, each member {}", kind(values)),
        },
    }
}

fn values(ty: &Type) -> String {
    let Some(named) = ty.element().as_named() else { return String::new() };
    let Kind::Enum(members) = &named.kind else { return String::new() };
    let described = members.iter().filter(|member| !member.doc.is_empty());
    described.map(|member| format!(" `{}`: {}", member.name, member.doc)).collect()
}
