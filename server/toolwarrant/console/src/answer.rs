//! Any answer of a command as tables and facts, with ids as links: the twin of the text that the
//! command line shows.

use crate::markup::Markup;
use askama::Template;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::Value;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_operator::render;

/// A value as it is shown.
#[derive(Clone, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) link: Option<String>,
    /// The exact time, for a machine.
    pub(crate) time: Option<String>,
    pub(crate) class: &'static str,
}

/// A value with the name of its member, which decides its link and its class.
pub(crate) struct Named(&'static str, Value);

/// The headings of a table, and the value of each in a row.
pub(crate) type Columns<T> = &'static [(&'static str, fn(&T) -> Option<Named>)];

pub(crate) fn with_name(name: &'static str, value: &impl Serialize) -> Option<Named> {
    let value = to_value(value);
    (!value.is_null()).then_some(Named(name, value))
}

fn to_value(answer: impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

#[derive(Template)]
#[template(path = "pages/table.html")]
struct Table<'a> {
    name: &'a str,
    head: Vec<String>,
    rows: Vec<Vec<Vec<Cell>>>,
}

#[derive(Template)]
#[template(path = "pages/facts.html")]
struct Facts {
    facts: Vec<(String, Vec<Cell>)>,
    parts: Vec<(String, Markup)>,
}

const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Writes the text as a part of a path or a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, &PLAIN).to_string()
}

pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Returns the page of what a member names.
fn link(catalogue: &Catalogue, name: &str, text: &str) -> Option<String> {
    let page = match name {
        "task_id" => "/tasks/",
        "application" | "applications" | "application_name" => "/applications/",
        "resource" if catalogue.resource(text).is_some() => "/fleet/",
        "id" if text.starts_with("app_") => "/applications/",
        "key_id" => "/keys/",
        "act_id" | "request_id" | "object" | "target" => "/find?id=",
        _ => {
            let target =
                catalogue.tools.iter().filter_map(|tool| tool.target.as_ref()).find(|target| target.arg == name)?;
            return Some(format!("/fleet/{}/{}", target.resource, encode(text)));
        }
    };
    let id = text.split(" (deleted ").next().unwrap_or(text);
    Some(format!("{page}{}", encode(id)))
}

/// The class of a word of the framework, which also has a mark in the stylesheet.
pub(crate) fn class_of(name: &str, value: &Value) -> &'static str {
    match (name, value) {
        (_, Value::Number(_)) => "number",
        ("healthy" | "sound" | "ready" | "reachable", Value::Bool(true)) => "good",
        ("healthy" | "sound" | "ready" | "reachable", Value::Bool(false)) => "bad",
        ("status" | "outcome" | "state", Value::String(text)) => match text.as_str() {
            "success" | "ok" | "live" => "good",
            "success_unverified" | "expired" | "suspended" | "unconfirmed" | "unknown" => "doubtful",
            "failed_silent" => "silent",
            "dispatched" => "going",
            "revoked" => "off",
            "failed" | "timeout" | "fault" => "bad",
            _ => "",
        },
        _ => "",
    }
}

/// Returns the cells of a member: several for a list of names that are links.
pub(crate) fn cells(catalogue: &Catalogue, name: &str, value: &Value) -> Vec<Cell> {
    if let (Value::Array(items), "applications") = (value, name) {
        return items.iter().flat_map(|item| cells(catalogue, name, item)).collect();
    }
    let text = if value.is_null() { String::new() } else { render::cell(value) };
    let time = value.as_str().filter(|text| text.parse::<Timestamp>().is_ok() && text.len() == 24);
    let shown = match time {
        Some(time) => format!("{} {}", &time[5..10], &time[11..19]),
        None => text.clone(),
    };
    let link = value.as_str().filter(|text| !text.is_empty()).and_then(|_| link(catalogue, name, &text));
    vec![Cell { text: shown, link, time: time.map(str::to_owned), class: class_of(name, value) }]
}

/// Makes a table with these columns. Its name is for those who do not see it.
pub(crate) fn table_with<T>(catalogue: &Catalogue, name: &str, columns: Columns<T>, rows: &[T]) -> Markup {
    let cell =
        |value: Option<Named>| value.map(|Named(name, value)| cells(catalogue, name, &value)).unwrap_or_default();
    let head = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let rows = rows.iter().map(|row| columns.iter().map(|(_, value)| cell(value(row))).collect()).collect();
    Markup::of(&Table { name, head, rows })
}

/// Makes a table of rows, with the members that any row has.
pub(crate) fn table(catalogue: &Catalogue, name: &str, rows: &[impl Serialize]) -> Markup {
    show_named(catalogue, name, &render::for_people(to_value(rows)))
}

fn table_of_values(catalogue: &Catalogue, name: &str, rows: &[Value]) -> Markup {
    // Rows in a row are for its own page.
    let is_empty = |value: &Value| {
        has_rows(value)
            || value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(|m| m.is_empty())
    };
    let names = render::columns(rows, is_empty);
    let head = names.iter().map(|name| words(name)).collect();
    let cell = |row: &Value, name: &str| row.get(name).map(|value| cells(catalogue, name, value)).unwrap_or_default();
    let rows = rows.iter().map(|row| names.iter().map(|name| cell(row, name)).collect()).collect();
    Markup::of(&Table { name, head, rows })
}

pub(crate) fn has_rows(value: &Value) -> bool {
    value.as_array().is_some_and(|rows| rows.iter().any(Value::is_object))
}

/// Shows an answer whole.
pub(crate) fn show(catalogue: &Catalogue, answer: impl Serialize) -> Markup {
    show_named(catalogue, "list", &render::for_people(to_value(answer)))
}

fn show_named(catalogue: &Catalogue, name: &str, answer: &Value) -> Markup {
    match answer {
        Value::Array(rows) => table_of_values(catalogue, name, rows),
        Value::Object(members) => {
            let (mut facts, mut parts) = (Vec::new(), Vec::new());
            for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                let is_part = has_rows(value)
                    || value.is_object() && ["task", "key", "act", "application"].contains(&name.as_str());
                match is_part {
                    true => parts.push((words(name), show_named(catalogue, &words(name), value))),
                    false => facts.push((words(name), cells(catalogue, name, value))),
                }
            }
            Markup::of(&Facts { facts, parts })
        }
        other => Markup::of(&Facts { facts: vec![(String::new(), cells(catalogue, "", other))], parts: Vec::new() }),
    }
}
