//! Turns answers into text for people: lists into tables, objects into lines.
//!
//! A terminal never gets a control character other than a line end, whatever an answer contains,
//! because stored data may be older than the code that cleans it.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::ops::Range;
use toolwarrant_base::json;
use toolwarrant_base::text::clean;
use toolwarrant_common::escape_json;
pub use toolwarrant_common::escape_text as plain;
use unicode_width::UnicodeWidthStr;

/// Returns the answer as JSON, with a line end. Characters that a terminal interprets, or that a
/// reader cannot see, are escaped.
#[must_use]
pub fn json(answer: &Value) -> String {
    escape_json(&format!("{answer:#}\n"))
}

/// Members of the framework's answers that only programs need: places in a file, counts of rows
/// that were read, events as they are stored, and the points of a picture.
const FOR_PROGRAMS: [&str; 4] = ["number", "examined", "event", "periods"];

/// Members whose own members have names from elsewhere.
const OF_OTHERS: [&str; 4] = ["arguments", "labels", "input_schema", "output_schema"];

/// Leaves out of an answer of the framework the members that only programs need, and out of the
/// answer to a change the keys and the usage of the application.
#[must_use]
pub fn for_people(mut answer: Value) -> Value {
    if let Some(members) = answer.as_object_mut().filter(|members| members.contains_key("act_id")) {
        members.shift_remove("keys");
        members.shift_remove("requests_in_last_minute");
    }
    drop_members(&mut answer);
    answer
}

fn drop_members(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_members),
        Value::Object(members) => {
            members.retain(|name, _| !FOR_PROGRAMS.contains(&name.as_str()));
            let ours = members.iter_mut().filter(|(name, _)| !OF_OTHERS.contains(&name.as_str()));
            ours.for_each(|(_, value)| drop_members(value));
        }
        _ => {}
    }
}

/// Returns the answer as text, with a line end, for a terminal with that many columns.
#[must_use]
pub fn text(answer: &Value, columns: Option<usize>) -> String {
    let room = columns.unwrap_or(usize::MAX);
    match answer {
        Value::Array(rows) if rows.is_empty() => "none\n".to_owned(),
        Value::Array(rows) => table(rows, "", room),
        Value::Object(members) if is_line(members) => format!("{}\n", facts(answer)),
        Value::Object(members) => match &present_members(members)[..] {
            [(_, rows @ Value::Array(_))] => text(rows, columns),
            members => lines(members, room).trim_start().to_owned(),
        },
        other => format!("{}\n", cell(other)),
    }
}

/// Returns true for the answer to a change that has no secret or link to be copied, and no rows.
fn is_line(members: &Map<String, Value>) -> bool {
    let is_long = |(name, value): (&String, &Value)| name == "secret" || name == "link" || has_rows(value);
    members.contains_key("act_id") && !members.iter().any(is_long)
}

fn has_rows(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().any(Value::is_object))
}

fn present_members(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    members.iter().filter(|(_, value)| !value.is_null()).collect()
}

/// The most lines of a row. A row that needs more is one line of facts.
const LINES_MAX: usize = 3;

const CONTINUATION: &str = "    ";

/// The columns are the members that any row has. A row that is wider than the terminal takes
/// several lines. Nothing is cut, because it can be an id.
fn table(rows: &[Value], indent: &str, room: usize) -> String {
    let names = columns(rows, |value| value.is_null() || value.as_array().is_some_and(Vec::is_empty));
    if names.is_empty() {
        return rows.iter().fold(String::new(), |out, row| out + indent + &cell(row) + "\n");
    }
    let head: Vec<String> = names.iter().map(|name| name.replace('_', " ").to_uppercase()).collect();
    let cells = rows
        .iter()
        .map(|row| names.iter().map(|name| cell(row.get(*name).unwrap_or(&Value::Null))).collect::<Vec<_>>());
    let cells: Vec<_> = std::iter::once(head).chain(cells).collect();
    let room = room.saturating_sub(indent.len() + CONTINUATION.len()).max(1);
    let widest = |n: usize| cells.iter().map(|row| row[n].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..names.len()).map(widest).collect();
    let lines = break_columns(&widths, room);
    if lines.len() > LINES_MAX {
        return rows.iter().fold(String::new(), |out, row| out + indent + &facts(row) + "\n");
    }
    cells.iter().fold(String::new(), |mut out, row| {
        for (at, columns) in lines.iter().enumerate() {
            let start = if at == 0 { "" } else { CONTINUATION };
            let line = columns.clone().fold(String::new(), |line, n| line + &fill(&row[n], widths[n]) + "  ");
            let _ = writeln!(out, "{indent}{start}{}", line.trim_end());
        }
        out
    })
}

/// Returns the members of the rows in the order of their type, without those that are empty in
/// every row.
#[must_use]
pub fn columns(rows: &[Value], is_empty: impl Fn(&Value) -> bool) -> Vec<&str> {
    let mut names: Vec<(&str, bool)> = Vec::new();
    for (name, value) in rows.iter().filter_map(Value::as_object).flatten() {
        match names.iter_mut().find(|(known, _)| known == name) {
            Some((_, is_shown)) => *is_shown |= !is_empty(value),
            None => names.push((name, !is_empty(value))),
        }
    }
    names.into_iter().filter(|(_, is_shown)| *is_shown).map(|(name, _)| name).collect()
}

/// Returns the columns of each line.
fn break_columns(widths: &[usize], room: usize) -> Vec<Range<usize>> {
    let (mut lines, mut begin, mut used) = (Vec::new(), 0, 0);
    for (n, width) in widths.iter().enumerate() {
        if n > begin && used + width > room {
            lines.push(begin..n);
            (begin, used) = (n, 0);
        }
        used += width + 2;
    }
    lines.push(begin..widths.len());
    lines
}

fn fill(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(text.width()))
}

fn lines(members: &[(&String, &Value)], room: usize) -> String {
    let width = members.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    members.iter().fold(String::new(), |mut out, (name, value)| {
        let label = name.replace('_', " ");
        let _ = match value {
            Value::Array(rows) if has_rows(value) => {
                write!(out, "\n{label}\n{}", table(rows, "  ", room))
            }
            Value::Object(inner) if name.ends_with("schema") => {
                writeln!(out, "\n{label}\n{:#}", Value::Object(inner.clone()))
            }
            Value::Object(inner) if inner.values().all(is_difference) => {
                writeln!(out, "{label:width$}  {}", cell(value))
            }
            Value::Object(inner) => {
                let inner = lines(&present_members(inner), room.saturating_sub(2));
                let inner = inner.lines().fold(String::new(), |out, line| out + "  " + line + "\n");
                write!(out, "\n{label}\n{inner}")
            }
            Value::String(text) if text.contains('\n') => writeln!(out, "\n{}", plain(text)),
            value => writeln!(out, "{label:width$}  {}", cell(value)),
        };
        out
    })
}

/// Returns a value as one line.
#[must_use]
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => without_millis(clean(text).into_owned()),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) if items.iter().all(Value::is_object) => {
            items.iter().map(facts).collect::<Vec<_>>().join("; ")
        }
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(members) if members.values().all(Value::is_boolean) => {
            let set: Vec<_> =
                members.iter().filter(|(_, value)| **value == true).map(|(name, _)| name.as_str()).collect();
            if set.is_empty() { "none".to_owned() } else { set.join(", ") }
        }
        Value::Object(members) if !members.is_empty() && members.values().all(is_difference) => {
            members.iter().map(|(name, value)| difference(name, value)).collect::<Vec<_>>().join("; ")
        }
        Value::Object(_) => facts(value),
        other => clean(&other.to_string()).into_owned(),
    }
}

/// Shortens a time such as `2026-11-28T16:21:59.084Z`.
fn without_millis(text: String) -> String {
    let is_time = text.len() == 24 && text.as_bytes()[10] == b'T' && text.as_bytes()[19] == b'.' && text.ends_with('Z');
    if is_time { format!("{}Z", &text[..19]) } else { text }
}

/// Quotes a text that could look like other members, and puts braces around members of members.
fn facts(object: &Value) -> String {
    let fact = |(name, value): (&String, &Value)| {
        let cell = match value {
            Value::String(text) if text.contains(',') => format!("\"{}\"", cell(value).replace('"', "'")),
            Value::Object(inner) if !inner.values().all(|value| value.is_boolean() || is_difference(value)) => {
                format!("{{{}}}", cell(value))
            }
            value => cell(value),
        };
        format!("{} {cell}", name.replace('_', " "))
    };
    let members = object.as_object().map(present_members).unwrap_or_default();
    members.into_iter().map(fact).collect::<Vec<_>>().join(", ")
}

/// A difference in an act.
#[derive(Deserialize)]
#[serde(untagged)]
enum Difference {
    Value { before: Value, after: Value },
    List { added: Vec<Value>, removed: Vec<Value> },
}

fn is_difference(value: &Value) -> bool {
    value.is_object() && json::convert::<Difference>(value).is_ok()
}

fn difference(name: &str, value: &Value) -> String {
    let name = name.replace('_', " ");
    match json::convert(value) {
        Ok(Difference::Value { before, after }) => format!("{name} {} -> {}", cell(&before), cell(&after)),
        Ok(Difference::List { added, removed }) => {
            let items = |sign, items: &[Value]| items.iter().map(|item| format!("{sign}{}", cell(item))).collect();
            let signed: [Vec<_>; 2] = [items("+", &added), items("-", &removed)];
            format!("{name} {}", signed.concat().join(" "))
        }
        Err(_) => format!("{name} {}", facts(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwarrant_base::json;

    #[test]
    fn answers_are_rendered_as_tables_and_lines() {
        let rows = json!([
            {"part_id": "a", "capabilities": {"x": true, "y": false}, "arguments": {"n": 1}, "seen_by": []},
            {"part_id": "longer", "capabilities": {"x": false}, "arguments": null, "seen_by": ["one", "two"]},
        ]);
        let table = "PART ID  CAPABILITIES  ARGUMENTS  SEEN BY\n\
                     a        x             n 1        none\n\
                     longer   none          -          one, two\n";
        assert_eq!(text(&rows, None), table);
        let changes =
            json!({"live_secrets": {"before": 2, "after": null}, "sees": {"added": ["a", "b"], "removed": ["c"]}});
        assert_eq!(text(&json!({"changes": changes}), None), "changes  live secrets 2 -> -; sees +a +b -c\n");
        assert_eq!(text(&json!([{"changes": changes}]), None), "CHANGES\nlive secrets 2 -> -; sees +a +b -c\n");
        assert_eq!(text(&json!([]), None), "none\n");
        assert_eq!(text(&json!({"a": 1, "long_name": "b"}), None), "a          1\nlong name  b\n");
    }

    #[test]
    fn a_row_that_is_wider_than_the_terminal_takes_several_lines_and_a_change_takes_one() {
        let rows = json!([
            {"id": "p-1", "name": "一号电话", "at": "2026-11-28T16:21:59.084Z", "number": 4, "gone_at": null},
            {"id": "p-22", "name": "b", "at": null, "number": 5},
        ]);
        let wide = "ID    NAME      AT\n\
                    p-1   一号电话  2026-11-28T16:21:59Z\n\
                    p-22  b         -\n";
        let narrow = "ID    NAME\n    AT\n\
                      p-1   一号电话\n    2026-11-28T16:21:59Z\n\
                      p-22  b\n    -\n";
        let rows = json!({"rows": rows, "examined": 9, "next": null});
        assert_eq!(text(&for_people(rows.clone()), Some(44)), wide);
        assert_eq!(text(&for_people(rows), Some(34)), narrow);
        // The members of a service or of a client have any names.
        let arguments = json!({"number": 1, "arguments": {"number": 2}});
        assert_eq!(text(&for_people(json!([arguments])), None), "ARGUMENTS\nnumber 2\n");
        assert_eq!(text(&json!([{"number": 3}]), None), "NUMBER\n3\n");
        assert_eq!(text(&json!([{"id": "一号电话", "n": 1}]), Some(9)), "ID\n    N\n一号电话\n    1\n");
        let many = json!([{"aaaa": "1234", "bbbb": "1234", "cccc": "1234", "dddd": "1234"}]);
        assert_eq!(text(&many, Some(8)), "aaaa 1234, bbbb 1234, cccc 1234, dddd 1234\n");
        let change = json!({"name": "a, b", "sees": [], "ended_at": null, "keys": [{"id": 1}], "labels": {"x": "y, z"}, "act_id": "act_1"});
        assert_eq!(text(&for_people(change), None), "name \"a, b\", sees none, labels {x \"y, z\"}, act id act_1\n");
    }

    #[test]
    fn an_answer_has_no_control_character_except_line_ends() {
        let raw = "a\u{1b}[31m\tb\u{7f}\u{9b}0mc\u{202e}\u{2028}\u{e0041}";
        let several = format!("first\n  {raw}");
        let nested = json!({"x": raw, "list": [raw], "object": {"y": raw}});
        let rows = json!([{"cell": format!("{raw}\n"), "object": {"y": raw}}, {"cell": several, "object": null}]);
        for answer in [nested, rows, json!({"text": several}), json!(raw), json!([raw])] {
            let shown = [text(&answer, None), super::json(&answer)];
            assert!(
                shown.iter().flat_map(|text| text.chars()).all(|c| c == '\n' || !toolwarrant_base::text::deceives(c)),
                "{shown:?}"
            );
            assert_eq!(json::read::<Value>(&shown[1]).expect("JSON"), answer, "nothing is lost");
        }
        assert_eq!(text(&json!([{"cell": several}]), None), "CELL\nfirst a b c\n");
        assert_eq!(
            text(&json!({"text": several}), None),
            "first\n  a\\u{1b}[31m\\u{9}b\\u{7f}\\u{9b}0mc\\u{202e}\\u{2028}\\u{e0041}\n"
        );
    }
}
