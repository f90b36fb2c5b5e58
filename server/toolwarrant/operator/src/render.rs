//! Turns answers into text for people: lists into tables, objects into lines.
//!
//! A terminal never gets a control character other than a line end, whatever an answer contains,
//! because stored data may be older than the code that cleans it.

use serde_json::{Map, Value};
use std::fmt::Write;
use toolwarrant_base::text::clean;
use toolwarrant_common::escape_json;
pub use toolwarrant_common::escape_text as plain;

/// Returns the answer as JSON, with a line end. Characters that a terminal interprets, or that a
/// reader cannot see, are escaped.
#[must_use]
pub fn json(answer: &Value) -> String {
    escape_json(&format!("{answer:#}\n"))
}

#[must_use]
pub fn text(answer: &Value) -> String {
    match answer {
        Value::Array(rows) if rows.is_empty() => "none\n".to_owned(),
        Value::Array(rows) => table(rows, ""),
        Value::Object(members) => lines(members),
        other => format!("{}\n", cell(other)),
    }
}

fn table(rows: &[Value], indent: &str) -> String {
    let mut names: Vec<&String> = Vec::new();
    for name in rows.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return rows.iter().fold(String::new(), |out, row| out + indent + &cell(row) + "\n");
    }
    let head: Vec<String> = names.iter().map(|name| name.replace('_', " ").to_uppercase()).collect();
    let cells = rows.iter().map(|row| names.iter().map(|name| cell(&row[*name])).collect::<Vec<_>>());
    let cells: Vec<_> = std::iter::once(head).chain(cells).collect();
    let widths: Vec<usize> =
        (0..names.len()).map(|n| cells.iter().map(|row| row[n].chars().count()).max().unwrap_or(0)).collect();
    cells.iter().fold(String::new(), |mut out, row| {
        let row = row.iter().zip(&widths).fold(String::new(), |mut line, (cell, width)| {
            let _ = write!(line, "{cell:width$}  ");
            line
        });
        let _ = writeln!(out, "{indent}{}", row.trim_end());
        out
    })
}

fn lines(members: &Map<String, Value>) -> String {
    let width = members.keys().map(String::len).max().unwrap_or(0);
    members.iter().fold(String::new(), |mut out, (name, value)| {
        let label = name.replace('_', " ");
        let _ = match value {
            Value::Array(rows) if rows.iter().any(Value::is_object) => write!(out, "\n{label}\n{}", table(rows, "  ")),
            Value::Object(inner) if name.ends_with("schema") => {
                writeln!(out, "\n{label}\n{:#}", Value::Object(inner.clone()))
            }
            Value::Object(inner) if inner.values().all(is_difference) => {
                writeln!(out, "{label:width$}  {}", cell(value))
            }
            Value::Object(inner) => {
                let inner = lines(inner).lines().fold(String::new(), |out, line| out + "  " + line + "\n");
                write!(out, "\n{label}\n{inner}")
            }
            Value::String(text) if text.contains('\n') => writeln!(out, "\n{}", plain(text)),
            value => writeln!(out, "{label:width$}  {}", cell(value)),
        };
        out
    })
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => clean(text).into_owned(),
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

fn facts(object: &Value) -> String {
    let members = object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    members.map(|(name, value)| format!("{} {}", name.replace('_', " "), cell(value))).collect::<Vec<_>>().join(", ")
}

fn is_difference(value: &Value) -> bool {
    let has = |names: [&str; 2]| names.iter().all(|name| value.get(name).is_some());
    has(["before", "after"]) || has(["added", "removed"])
}

fn difference(name: &str, value: &Value) -> String {
    let name = name.replace('_', " ");
    if value.get("before").is_some() {
        return format!("{name} {} -> {}", cell(&value["before"]), cell(&value["after"]));
    }
    let items = |member: &str, sign: &str| -> Vec<String> {
        value[member].as_array().into_iter().flatten().map(|item| format!("{sign}{}", cell(item))).collect()
    };
    format!("{name} {}", [items("added", "+"), items("removed", "-")].concat().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_rendered_as_tables_and_lines() {
        let rows = json!([
            {"part_id": "a", "capabilities": {"x": true, "y": false}, "arguments": {"n": 1}, "seen_by": []},
            {"part_id": "longer", "capabilities": {"x": false}, "arguments": null, "seen_by": ["one", "two"]},
        ]);
        let table = "PART ID  CAPABILITIES  ARGUMENTS  SEEN BY\n\
                     a        x             n 1        none\n\
                     longer   none          -          one, two\n";
        assert_eq!(text(&rows), table);
        let changes =
            json!({"live_secrets": {"before": 2, "after": null}, "sees": {"added": ["a", "b"], "removed": ["c"]}});
        assert_eq!(text(&json!({"changes": changes})), "changes  live secrets 2 -> -; sees +a +b -c\n");
        assert_eq!(text(&json!([{"changes": changes}])), "CHANGES\nlive secrets 2 -> -; sees +a +b -c\n");
        assert_eq!(text(&json!([])), "none\n");
        assert_eq!(text(&json!({"a": 1, "long_name": "b"})), "a          1\nlong name  b\n");
    }

    #[test]
    fn an_answer_has_no_control_character_except_line_ends() {
        let raw = "a\u{1b}[31m\tb\u{7f}\u{9b}0mc\u{202e}\u{2028}\u{e0041}";
        let several = format!("first\n  {raw}");
        let nested = json!({"x": raw, "list": [raw], "object": {"y": raw}});
        let rows = json!([{"cell": format!("{raw}\n"), "object": {"y": raw}}, {"cell": several, "object": null}]);
        for answer in [nested, rows, json!({"text": several}), json!(raw), json!([raw])] {
            let shown = [text(&answer), super::json(&answer)];
            assert!(
                shown.iter().flat_map(|text| text.chars()).all(|c| c == '\n' || !toolwarrant_base::text::deceives(c)),
                "{shown:?}"
            );
            assert_eq!(serde_json::from_str::<Value>(&shown[1]).expect("JSON"), answer, "nothing is lost");
        }
        assert_eq!(text(&json!([{"cell": several}])), "CELL\nfirst a b c\n");
        assert_eq!(
            text(&json!({"text": several})),
            "\nfirst\n  a\\u{1b}[31m\\u{9}b\\u{7f}\\u{9b}0mc\\u{202e}\\u{2028}\\u{e0041}\n"
        );
    }
}
