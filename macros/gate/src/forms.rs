//! The arguments of tools that make tasks, as tasks in flight store them.
//!
//! A task of an earlier contract may be in flight at an upgrade. A released record keeps the former
//! forms of each tool as `stored.TOOL.NUMBER`.

use crate::pair::{Facts, names, text};
use crate::shape::Shape;
use crate::values::shape_of_argument;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use toolwarrant_common::json;

type Form = BTreeMap<String, Shape>;

/// Names the form of the record's own tool `stored.TOOL`.
fn forms(facts: &Facts) -> Vec<(String, Form)> {
    let mut found = Vec::new();
    for tool in names(facts, "stored") {
        for number in names(facts, &format!("stored.{tool}")) {
            let key = format!("stored.{tool}.{number}");
            let shape = |argument: &str| {
                let below = format!("{key}.{argument}.");
                let parts = facts.range(below.clone()..).take_while(|(key, _)| key.starts_with(&below));
                let members = parts.map(|(key, value)| (key[below.len()..].to_owned(), value.clone()));
                let shape = json::convert(&Value::Object(members.collect()));
                (argument.to_owned(), shape.unwrap_or_default())
            };
            found.push((key.clone(), names(facts, &key).into_iter().map(shape).collect()));
        }
    }
    let own = names(facts, "tool").into_iter();
    found.extend(own.filter_map(|tool| Some((format!("stored.{tool}"), own_form(facts, tool)?))));
    found
}

fn own_form(facts: &Facts, tool: &str) -> Option<Form> {
    let makes_tasks = text(facts, &format!("tool.{tool}.effect")) == "task";
    let arguments = format!("tool.{tool}.argument");
    // The idempotency key is stored apart from the arguments.
    let stored = names(facts, &arguments).into_iter().filter(|name| *name != "idempotency_key");
    let shape =
        |name: &str| (name.to_owned(), shape_of_argument(facts, &format!("{arguments}.{name}")).unwrap_or_default());
    makes_tasks.then(|| stored.map(shape).collect())
}

pub(crate) fn unreadable(old: &Facts, new: &Facts) -> Vec<(String, String)> {
    forms(old).into_iter().filter_map(|(key, form)| Some((key.clone(), fault(&key, &form, new)?))).collect()
}

/// Keeps the forms that the new contract reads and does not have itself.
#[must_use]
pub fn forms_to_keep(old: &Facts, new: &Facts) -> Facts {
    let mut kept = Facts::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for (key, form) in forms(old) {
        let tool = key.split('.').nth(1).unwrap_or_default().to_owned();
        if own_form(new, &tool).as_ref() == Some(&form) || fault(&key, &form, new).is_some() {
            continue;
        }
        let number = numbers.entry(tool.clone()).or_default();
        *number += 1;
        for (argument, shape) in &form {
            let members = serde_json::to_value(shape).ok().and_then(|shape| shape.as_object().cloned());
            let absent = [Value::Null, Value::from(""), false.into(), Value::Array(Vec::new())];
            let members: Map<_, _> =
                members.into_iter().flatten().filter(|(_, value)| !absent.contains(value)).collect();
            let key = format!("stored.{tool}.{number}.{argument}");
            kept.extend(members.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
        }
    }
    kept
}

fn fault(key: &str, former: &Form, new: &Facts) -> Option<String> {
    let tool = key.split('.').nth(1)?;
    let Some(present) = own_form(new, tool) else {
        return Some(format!("`{tool}` makes no tasks any more, and some may be in flight"));
    };
    let formerly = |name: &str| {
        let names = new.get(&format!("tool.{tool}.argument.{name}.formerly"));
        names.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (mut gone, mut narrowed, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (name, argument) in former {
        match present.iter().find(|(now, _)| *now == name || formerly(now).contains(&Value::from(name.as_str()))) {
            Some((now, shape)) if !kept.contains(&now) => {
                kept.push(now);
                narrowed.extend(
                    (!shape.admits(argument) || (argument.optional && !is_optional(new, tool, now))).then_some(now),
                );
            }
            Some(_) | None => gone.push(name),
        }
    }
    let added: Vec<&String> =
        present.keys().filter(|name| !kept.contains(name) && !is_optional(new, tool, name)).collect();
    let reasons = [
        (gone, "is no argument any more, and tasks in flight may have it: add `formerly` to the one in its place"),
        (
            added,
            "is required, and tasks in flight do not have it: make it optional, or say with `formerly` which name it had",
        ),
        (narrowed, "does not admit every value that tasks in flight may have"),
    ];
    let list = |names: &[&String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let reasons = reasons.iter().filter(|(names, _)| !names.is_empty());
    let reasons: Vec<_> = reasons.map(|(names, reason)| format!("{} {reason}", list(names))).collect();
    (!reasons.is_empty()).then(|| format!("tasks of `{tool}` in flight cannot be read: {}", reasons.join("; ")))
}

fn is_optional(facts: &Facts, tool: &str, argument: &str) -> bool {
    facts.contains_key(&format!("tool.{tool}.argument.{argument}.optional"))
}
