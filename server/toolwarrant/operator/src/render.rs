//! Turns views of answers into text: tables, and facts into lines.
//!
//! A terminal never gets a control character other than a line end, whatever an answer contains,
//! because stored data may be older than the code that cleans it.

use crate::view::{AnswerView, Fact, Table};
use serde_json::Value;
use std::fmt::Write;
use std::ops::Range;
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

/// Returns the view as text, with a line end, for a terminal with that many columns.
#[must_use]
pub fn text(view: &AnswerView, columns: Option<usize>) -> String {
    let room = columns.unwrap_or(usize::MAX);
    match view {
        AnswerView::List(items) if items.is_empty() => "none\n".to_owned(),
        AnswerView::List(items) => items.iter().fold(String::new(), |out, item| out + &cell(item) + "\n"),
        AnswerView::Table(shown) => table(shown, "", room),
        AnswerView::Facts(facts) => match &list_present(facts)[..] {
            [(_, only @ (AnswerView::Table(_) | AnswerView::List(_)))] => text(only, columns),
            present => lines(present, room).trim_start().to_owned(),
        },
        other => format!("{}\n", cell(other)),
    }
}

fn list_present(facts: &[Fact]) -> Vec<(&str, &AnswerView)> {
    let present = facts.iter().filter(|(_, view)| *view != AnswerView::Absent);
    present.map(|(name, view)| (&**name, view)).collect()
}

/// The most lines of a row. A row that needs more is one line of facts.
const LINES_MAX: usize = 3;

const CONTINUATION: &str = "    ";

/// A row that is wider than the terminal takes several lines. Nothing is cut, because it can be an
/// id.
fn table(Table { head, rows }: &Table, indent: &str, room: usize) -> String {
    let names = head.iter().map(|name| clean(name).to_uppercase()).collect::<Vec<_>>();
    let cells = std::iter::once(names).chain(rows.iter().map(|row| row.iter().map(cell).collect()));
    let cells: Vec<_> = cells.collect();
    let room = room.saturating_sub(indent.len() + CONTINUATION.len()).max(1);
    let widest = |n: usize| cells.iter().map(|row| row[n].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(widest).collect();
    let lines = break_columns(&widths, room);
    if lines.len() > LINES_MAX {
        let line = |row: &Vec<AnswerView>| facts(&head.iter().map(|name| &**name).zip(row).collect::<Vec<_>>());
        return rows.iter().fold(String::new(), |out, row| out + indent + &line(row) + "\n");
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

fn lines(facts: &[(&str, &AnswerView)], room: usize) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    facts.iter().fold(String::new(), |mut out, (name, view)| {
        let label = clean(name);
        let _ = match view {
            AnswerView::Table(shown) => write!(out, "\n{label}\n{}", table(shown, "  ", room)),
            AnswerView::Facts(inner) if !inner.is_empty() => {
                let inner = lines(&list_present(inner), room.saturating_sub(2));
                let inner = inner.lines().fold(String::new(), |out, line| out + "  " + line + "\n");
                write!(out, "\n{label}\n{inner}")
            }
            AnswerView::Text(text) if text.contains('\n') => writeln!(out, "\n{label}\n{}", plain(text)),
            view => writeln!(out, "{label:width$}  {}", cell(view)),
        };
        out
    })
}

/// Returns a value as one line.
#[must_use]
pub fn cell(view: &AnswerView) -> String {
    match view {
        AnswerView::Absent => "-".to_owned(),
        AnswerView::Text(text) | AnswerView::Word(text, _) | AnswerView::Link(text, _) => clean(text).into_owned(),
        AnswerView::Number(number) => number.to_string(),
        // Without milliseconds.
        AnswerView::Time(time) => format!("{}Z", &time.to_string()[..19]),
        AnswerView::List(items) if items.is_empty() => "none".to_owned(),
        AnswerView::List(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        AnswerView::Table(Table { head, rows }) => {
            let row = |row: &Vec<AnswerView>| facts(&head.iter().map(|name| &**name).zip(row).collect::<Vec<_>>());
            rows.iter().map(row).collect::<Vec<_>>().join("; ")
        }
        AnswerView::Facts(members) | AnswerView::Line(members) if members.is_empty() => "none".to_owned(),
        AnswerView::Facts(members) | AnswerView::Line(members) => facts(&list_present(members)),
    }
}

/// Quotes a text that could look like other members, and puts braces around members of members.
fn facts(members: &[(&str, &AnswerView)]) -> String {
    let fact = |(name, view): &(&str, &AnswerView)| {
        let cell = match view {
            AnswerView::Text(text) if text.contains(',') => format!("\"{}\"", cell(view).replace('"', "'")),
            AnswerView::Facts(inner) if !inner.is_empty() => format!("{{{}}}", cell(view)),
            view => cell(view),
        };
        format!("{} {cell}", clean(name))
    };
    let present = members.iter().filter(|(_, view)| **view != AnswerView::Absent);
    present.map(fact).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Show;
    use serde_json::json;
    use toolwarrant_base::json;
    use toolwarrant_core::act::Changes;

    fn write(value: &Value, columns: Option<usize>) -> String {
        text(&AnswerView::of_value(value), columns)
    }

    #[test]
    fn answers_are_rendered_as_tables_and_lines() {
        let rows = json!([
            {"part_id": "a", "capabilities": {"x": true, "y": false}, "arguments": {"n": 1}, "seen_by": []},
            {"part_id": "longer", "capabilities": {"x": false}, "arguments": null, "seen_by": ["one", "two"]},
        ]);
        let table = "PART ID  CAPABILITIES  ARGUMENTS  SEEN BY\n\
                     a        x             n 1        none\n\
                     longer   none          -          one, two\n";
        assert_eq!(write(&rows, None), table);
        assert_eq!(write(&json!([]), None), "none\n");
        // A time in another form than this server's is a text.
        assert_eq!(write(&json!({"a": 1, "on": "2026-11-28"}), None), "a   1\non  2026-11-28\n");
        assert_eq!(write(&json!({"a": 1, "long_name": "b"}), None), "a          1\nlong name  b\n");
        let changes =
            json!({"live_secrets": {"before": 2, "after": null}, "sees": {"added": ["a", "b"], "removed": ["c"]}});
        let changes: Changes = json::convert(&changes).unwrap();
        assert_eq!(cell(&changes.show()), "live secrets 2 -> -; sees +a +b -c");
    }

    #[test]
    fn a_row_that_is_wider_than_the_terminal_takes_several_lines_and_a_change_takes_one() {
        let rows = json!([
            {"id": "p-1", "name": "一号电话", "gone_at": null, "at": "2026-11-28T16:21:59.084Z"},
            {"id": "p-22", "name": "b", "at": null},
        ]);
        let wide = "ID    NAME      AT\n\
                    p-1   一号电话  2026-11-28T16:21:59Z\n\
                    p-22  b         -\n";
        let narrow = "ID    NAME\n    AT\n\
                      p-1   一号电话\n    2026-11-28T16:21:59Z\n\
                      p-22  b\n    -\n";
        let rows = json!({"rows": rows, "next": null});
        assert_eq!(write(&rows, Some(44)), wide);
        assert_eq!(write(&rows, Some(34)), narrow);
        assert_eq!(write(&json!([{"id": "一号电话", "n": 1}]), Some(9)), "ID\n    N\n一号电话\n    1\n");
        let many = json!([{"aaaa": "1234", "bbbb": "1234", "cccc": "1234", "dddd": "1234"}]);
        assert_eq!(write(&many, Some(8)), "aaaa 1234, bbbb 1234, cccc 1234, dddd 1234\n");
        let change =
            json!({"name": "a, b", "sees": [], "ended_at": null, "keys": [{"id": 1}], "labels": {"x": "y, z"}});
        let change = AnswerView::of_change(change.as_object().unwrap().facts());
        assert_eq!(text(&change, None), "name \"a, b\", sees none, labels {x \"y, z\"}\n");
    }

    #[test]
    fn an_answer_has_no_control_character_except_line_ends() {
        let raw = "a\u{1b}[31m\tb\u{7f}\u{9b}0mc\u{202e}\u{2028}\u{e0041}";
        let several = format!("first\n  {raw}");
        let nested = json!({"x": raw, "list": [raw], "object": {"y": raw}, raw: raw});
        let rows = json!([{"cell": format!("{raw}\n"), raw: {"y": raw}}, {"cell": several, "object": null}]);
        for answer in [nested, rows, json!({"text": several}), json!(raw), json!([raw])] {
            let shown = [write(&answer, None), super::json(&answer)];
            assert!(
                shown.iter().flat_map(|text| text.chars()).all(|c| c == '\n' || !toolwarrant_base::text::deceives(c)),
                "{shown:?}"
            );
            assert_eq!(json::read::<Value>(&shown[1]).expect("JSON"), answer, "nothing is lost");
        }
        assert_eq!(write(&json!([{"cell": several}]), None), "CELL\nfirst a b c\n");
        assert_eq!(
            write(&json!({"text": several}), None),
            "text\nfirst\n  a\\u{1b}[31m\\u{9}b\\u{7f}\\u{9b}0mc\\u{202e}\\u{2028}\\u{e0041}\n"
        );
    }
}
