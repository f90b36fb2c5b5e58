//! The requests and answers of an agent, as text that is the same in every run.
//!
//! Task ids, tokens and request ids are numbered in order of appearance. Times count from the
//! start. Start at [`Transcript`].

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_testing::START;

/// Values that differ from run to run get stable names.
#[derive(Default)]
pub(super) struct Transcript {
    pub(super) text: String,
    calls: usize,
    known: BTreeMap<&'static str, Vec<String>>,
}

impl Transcript {
    pub(super) fn note(&mut self, what: &str) {
        writeln!(self.text, "\n[{what}]").expect("text");
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value, sent: Timestamp) {
        self.calls += 1;
        let (number, sent, arguments) = (self.calls, since_start(sent), self.of(arguments));
        writeln!(self.text, "\ncall {number} at {sent}: {tool} {arguments}").expect("text");
    }

    pub(super) fn answer(&mut self, kind: &str, answer: &Value, at: Timestamp) {
        let (at, answer) = (since_start(at), lay_out(&self.of(answer), 0));
        writeln!(self.text, "{kind} at {at}: {answer}").expect("text");
    }

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
