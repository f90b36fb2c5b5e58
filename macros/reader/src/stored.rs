//! The stored forms of task tools: the arguments as tasks in flight store them.
//!
//! `gen` records each form in `stored.toml`, next to the contract, and never removes one. A task
//! that an earlier contract accepted can be read if the contract in force admits every value of
//! its form. `lower::stored` checks that.

use crate::model::{Contract, Field, Kind, RecordedTool, StoredArgument, StoredForm, StringSpec, ToolSpec, Type};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of the file.
pub(crate) const FILE: &str = "stored.toml";

const HEAD: &str = "\
# The stored form of each tool that makes tasks: the arguments that a task in flight has. `gen` adds a form when it changes,
# and keeps former ones, because a task that an earlier contract accepted may be in flight at an upgrade. To accept that
# tasks of a form cannot be read, write its number with a reason: `1 = \"...\"` under `[unreadable.TOOL]`.
";

/// Returns the form in which tasks of this tool store their arguments; `None` if it makes no tasks.
pub(crate) fn form(tool: &ToolSpec) -> Option<StoredForm> {
    tool.task()?;
    // The idempotency key is stored apart from the arguments.
    let args = tool.args.iter().filter(|field| field.name != "idempotency_key");
    Some(args.map(|field| (field.name.clone(), argument(field))).collect())
}

/// Returns the text of the record: the known forms, and those of the contract that are new. `None`
/// if the contract has no tasks and no record.
pub(crate) fn record(contract: &Contract) -> Option<String> {
    let mut tools: BTreeMap<&str, Vec<StoredForm>> = BTreeMap::new();
    for RecordedTool { tool, forms, unreadable: _ } in &contract.stored {
        tools.insert(tool, forms.clone());
    }
    for (tool, form) in contract.tools().filter_map(|tool| Some((tool, form(tool)?))) {
        let forms = tools.entry(&tool.name).or_default();
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    let mut out = HEAD.to_owned();
    for (tool, forms) in &tools {
        for form in forms {
            let _ = writeln!(out, "\n[[stored.{tool}]]");
            for (name, argument) in form {
                let _ = writeln!(out, "{name} = {}", argument.text());
            }
        }
    }
    for RecordedTool { tool, forms: _, unreadable } in contract.stored.iter().filter(|tool| !tool.unreadable.is_empty())
    {
        let _ = writeln!(out, "\n[unreadable.{tool}]");
        for (number, reason) in unreadable {
            let _ = writeln!(out, "{number} = {}", Value::from(reason.as_str()));
        }
    }
    (!tools.is_empty()).then_some(out)
}

fn argument(field: &Field) -> StoredArgument {
    let list = matches!(field.ty, Type::List(_));
    // An argument with a default is always stored.
    let optional = field.optional && field.default.is_none();
    let any = |kind: &str| StoredArgument { kind: kind.to_owned(), list, optional, ..StoredArgument::default() };
    match field.ty.element() {
        Type::Boolean => any("boolean"),
        Type::Integer => any("integer"),
        Type::Named(named) => match &named.kind {
            Kind::Integer { min, max } => StoredArgument { min: Some(*min), max: Some(*max), ..any("integer") },
            Kind::Enum(members) => {
                let mut values: Vec<_> = members.iter().map(|member| member.name.clone()).collect();
                values.sort();
                StoredArgument { values, ..any("enum") }
            }
            Kind::String(StringSpec { min, max, prefix, charset }) => {
                let range =
                    |(from, to): &(char, char)| if from == to { from.to_string() } else { format!("{from}-{to}") };
                StoredArgument {
                    min: i64::try_from(*min).ok(),
                    max: i64::try_from(*max).ok(),
                    prefix: prefix.clone(),
                    charset: charset.iter().map(range).collect(),
                    ..any("string")
                }
            }
            Kind::Object(_) => any("object"),
        },
        Type::String | Type::Timestamp | Type::Url | Type::List(_) => any("string"),
    }
}
