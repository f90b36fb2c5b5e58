//! The requests and answers of an agent, as text that is the same in every run.
//!
//! Task ids, tokens and request ids are numbered in order of appearance. Times count from the
//! start. Start at [`render`].

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_testing::START;

pub(super) enum Event {
    Called(Exchange),
    /// Seconds.
    Passed(u64),
    Changed(&'static str),
}

pub(super) struct Exchange {
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) at: [Timestamp; 2],
    pub(super) kind: &'static str,
    pub(super) answer: Value,
}

/// Shows the tools of each key by a snapshot of `catalogue`.
pub(super) fn render(events: &[Event]) -> String {
    let mut aliases = Aliases::default();
    let (mut text, mut number) = (String::new(), 0);
    for event in events {
        text.push('\n');
        let write = match event {
            Event::Passed(seconds) => writeln!(text, "[{seconds} s pass]"),
            Event::Changed(what) => writeln!(text, "[{what}]"),
            Event::Called(Exchange { tool, arguments, at: [sent, answered], kind, answer }) => {
                number += 1;
                let (sent, answered) = (since_start(*sent), since_start(*answered));
                let (arguments, answer) = (aliases.of(arguments), lay_out(&aliases.of(answer), 0));
                writeln!(text, "call {number} at {sent}: {tool} {arguments}\n{kind} at {answered}: {answer}")
            }
        };
        write.expect("text");
    }
    text
}

fn since_start(at: Timestamp) -> String {
    let millis = at.since(START).as_millis();
    let (seconds, rest) = (millis / 1_000, millis % 1_000);
    if rest == 0 { format!("+{seconds}s") } else { format!("+{seconds}.{rest:03}s") }
}

/// Puts one member on a line; an item of a list always takes one line.
fn lay_out(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let (lines, [open, close]): (Vec<String>, _) = match value {
        Value::Object(members) if !members.is_empty() => {
            let line = |(name, value): (&String, &Value)| format!("{indent}\"{name}\": {}", lay_out(value, depth + 1));
            (members.iter().map(line).collect(), ['{', '}'])
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            (items.iter().map(|item| format!("{indent}{item}")).collect(), ['[', ']'])
        }
        plain => return plain.to_string(),
    };
    format!("{open}\n{}\n{}{close}", lines.join(",\n"), "  ".repeat(depth))
}

/// Values that differ from run to run get stable names.
#[derive(Default)]
struct Aliases {
    known: BTreeMap<&'static str, Vec<String>>,
}

impl Aliases {
    fn of(&mut self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.of(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), self.member(name, value))).collect()
            }
            Value::String(text) => Value::String(self.tasks(text)),
            plain => plain.clone(),
        }
    }

    fn member(&mut self, name: &str, value: &Value) -> Value {
        match (name, value) {
            ("token", Value::String(token)) => self.alias("token", token).into(),
            ("request_id", Value::String(id)) => self.alias("request", id).into(),
            (_, Value::String(_)) => serde_json::from_value::<Timestamp>(value.clone())
                .map_or_else(|_| self.of(value), |at| since_start(at).into()),
            _ => self.of(value),
        }
    }

    fn tasks(&mut self, text: &str) -> String {
        const PREFIX: &str = "task_";
        let Some((before, after)) = text.split_once(PREFIX) else { return text.to_owned() };
        let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        let (id, rest) = after.split_at(digits);
        let id = if digits == 32 { self.alias("task", id) } else { format!("{PREFIX}{id}") };
        format!("{before}{id}{}", self.tasks(rest))
    }

    fn alias(&mut self, kind: &'static str, value: &str) -> String {
        let known = self.known.entry(kind).or_default();
        let number = known.iter().position(|known| known == value).unwrap_or_else(|| {
            known.push(value.to_owned());
            known.len() - 1
        });
        format!("{kind}_{}", number + 1)
    }
}
