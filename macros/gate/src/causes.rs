//! Finds what follows from what: a change is shown once, with its consequences below it.

use crate::access::holders;
use crate::change::{ContractChange, ListChange};
use crate::pair::{Facts, Pair, text};
use crate::renames::{Rename, find_rename};
use crate::values::users;
use serde_json::Value;
use std::collections::BTreeMap;

/// A tool that has another name is lost and gained at one change.
pub(crate) fn attach_lists(lists: &[ListChange], pair: &Pair, changes: &mut [ContractChange]) {
    let renamed = changes.iter().filter(|change| change.rule.id == "tool-renamed");
    let renames: Vec<_> = renamed.filter_map(|change| find_rename(pair, &change.fact)).collect();
    for ListChange { permission, lost, gained } in lists {
        let both =
            lost.iter().map(|tool| (tool, &pair.old, true)).chain(gained.iter().map(|tool| (tool, &pair.new, false)));
        for (tool, facts, is_lost) in both {
            let part = format!("tool.{tool}");
            let former = renames.iter().find(|rename| rename.new == part).map(|rename| rename.old.clone());
            let own: Vec<_> =
                [format!("{part}.permission"), format!("{part}.toolset"), part].into_iter().chain(former).collect();
            let of_tool = changes.iter().any(|change| own.contains(&change.fact));
            let is_cause = |change: &&mut ContractChange| match of_tool {
                true => own.contains(&change.fact),
                false => opens(facts, &change.fact, permission, tool),
            };
            for change in changes.iter_mut().filter(is_cause) {
                let entry = change.lists.iter().position(|entry| entry.permission == *permission);
                let entry = entry.unwrap_or_else(|| {
                    let entry = ListChange { permission: permission.clone(), lost: Vec::new(), gained: Vec::new() };
                    change.lists.push(entry);
                    change.lists.len() - 1
                });
                let entry = &mut change.lists[entry];
                if is_lost { &mut entry.lost } else { &mut entry.gained }.push(tool.clone());
            }
        }
    }
}

fn opens(facts: &Facts, fact: &str, permission: &str, tool: &str) -> bool {
    let able = holders(facts, text(facts, &format!("tool.{tool}.permission")));
    match fact.split('.').collect::<Vec<_>>()[..] {
        ["permission", name] => able.contains(name) && holders(facts, name).contains(permission),
        ["permission", name, "implies", implied] => able.contains(implied) && holders(facts, name).contains(permission),
        _ => false,
    }
}

/// Puts consequences below their cause, and never judges them harder.
pub(crate) fn group(pair: &Pair, mut changes: Vec<ContractChange>) -> Vec<ContractChange> {
    let renames = name_renames(pair, &mut changes);
    let places: BTreeMap<String, usize> = (0..).zip(&changes).map(|(n, change)| (change.fact.clone(), n)).collect();
    let cause_of = |n: usize, change: &ContractChange| {
        let found = causes(pair, change, &renames, &changes).into_iter().filter_map(|fact| places.get(&fact).copied());
        found.filter(|cause| *cause != n && changes[*cause].rule.weight() >= change.rule.weight()).min()
    };
    let mut causes: Vec<Option<usize>> = (0..).zip(&changes).map(|(n, change)| cause_of(n, change)).collect();
    for n in 0..causes.len() {
        // Of two changes that name each other, the first is the cause. A consequence of a
        // consequence belongs to the first cause.
        let mut root = n;
        let mut steps = 0;
        while let Some(above) = causes[root].filter(|_| steps <= changes.len()) {
            (root, steps) = (above, steps + 1);
        }
        causes[n] = if steps > changes.len() || root == n { None } else { Some(root) };
    }
    let mut all: Vec<Option<ContractChange>> = changes.into_iter().map(Some).collect();
    for (n, cause) in causes.iter().enumerate() {
        if let Some(cause) = cause
            && let Some(change) = all[n].take()
            && let Some(cause) = all[*cause].as_mut()
        {
            cause.consequences.push(change);
        }
    }
    all.into_iter().flatten().collect()
}

fn causes(
    pair: &Pair,
    change: &ContractChange,
    renames: &[(String, String)],
    changes: &[ContractChange],
) -> Vec<String> {
    let path: Vec<&str> = change.fact.split('.').collect();
    let values = || [&change.old, &change.new].into_iter().flatten().filter_map(Value::as_str);
    let mut found: Vec<String> = match path[..] {
        ["tool", tool, ref part @ ..] => causes_in_tool(pair, changes, tool, part),
        ["error", code, "retry_after_seconds"] => vec![format!("error.{code}.retryable")],
        [kind @ ("error" | "resource"), _] if change.new.is_some() => {
            // A new name follows from the one that went.
            let went = |other: &&ContractChange| {
                other.rule.id == change.rule.id && other.fact.starts_with(kind) && other.old.is_some()
            };
            changes.iter().filter(went).map(|other| other.fact.clone()).collect()
        }
        ["type", name] => {
            let facts = if change.new.is_some() { &pair.new } else { &pair.old };
            let parts = users(facts, name).into_iter().flat_map(|(_, user)| {
                let path: Vec<&str> = user.split('.').collect();
                let above = (2..=path.len()).map(|length| path[..length].join("."));
                above.chain([format!("{user}.type")]).collect::<Vec<_>>()
            });
            parts.chain(changes_below(changes, "type", &["type"])).collect()
        }
        ["type", _, "field", ..] => {
            // An object that includes another has the same fields.
            let tail = path[2..].join(".");
            let is_same = |other: &&ContractChange| {
                let has_tail = other.fact.starts_with("type.") && other.fact.ends_with(&tail);
                has_tail && (&other.old, &other.new) == (&change.old, &change.new)
            };
            changes.iter().find(is_same).map(|other| other.fact.clone()).into_iter().collect()
        }
        ["record", "cost", permission] => {
            let gained = |list: &ListChange| list.permission == permission && !list.gained.is_empty();
            let grown = changes.iter().filter(|other| other.lists.iter().any(gained));
            grown.map(|other| other.fact.clone()).collect()
        }
        ["framework", "type", "Remark", ..] => vec!["framework.remark_max_chars".to_owned()],
        ["framework", "type", "WaitSeconds", ..] => vec!["framework.max_wait_seconds".to_owned()],
        _ => Vec::new(),
    };
    match path[..] {
        ["tool", _, "after"] => found.extend(values().map(|tool| format!("tool.{tool}"))),
        ["tool", _, "target", "resource"] => found.extend(values().map(|name| format!("resource.{name}"))),
        _ => {}
    }
    for (old, new) in renames {
        let [old_name, new_name] = [old, new].map(|part| part.rsplit('.').next().unwrap_or_default());
        let says = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
        let (before, after) = (says(&change.old), says(&change.new));
        let follows = before.contains(old_name) && before.replace(old_name, new_name) == after;
        found.extend((follows || change.fact == *new).then(|| old.clone()));
    }
    found
}

fn causes_in_tool(pair: &Pair, changes: &[ContractChange], tool: &str, part: &[&str]) -> Vec<String> {
    let own = |part: &&str| format!("tool.{tool}.{part}");
    match *part {
        ["error", code] => {
            let role = [&pair.new, &pair.old].map(|facts| text(facts, &format!("error.{code}.role")));
            let derived = match role.into_iter().find(|role| !role.is_empty()) {
                Some("not_supported") => &["target.requires"][..],
                Some("target_busy") => &["effect"],
                Some("not_found" | "upstream_unavailable") => &["target.resource", "effect"],
                _ => &[],
            };
            derived.iter().map(own).chain([format!("error.{code}")]).collect()
        }
        ["target", "argument"] => vec![own(&"target.resource")],
        ["hint", _] => changes_below(changes, &format!("tool.{tool}"), &["effect", "resend"]),
        ["task" | "result"] | ["argument", "idempotency_key"] => vec![own(&"effect")],
        ["argument", name, "default"] => vec![format!("tool.{tool}.argument.{name}.optional")],
        ["task", "case", value, ..] => {
            let types = [&pair.old, &pair.new].map(|facts| {
                let argument = text(facts, &own(&"task.select"));
                let name = text(facts, &format!("tool.{tool}.argument.{argument}.type"));
                format!("type.{name}.value.{value}")
            });
            types.into_iter().chain(["task.select", "effect"].iter().map(own)).collect()
        }
        _ => Vec::new(),
    }
}

fn changes_below(changes: &[ContractChange], above: &str, last: &[&str]) -> Vec<String> {
    let ends = |fact: &str| fact.rsplit('.').next().is_some_and(|end| last.contains(&end));
    let below = changes.iter().filter(|change| change.fact.starts_with(above) && ends(&change.fact));
    below.map(|change| change.fact.clone()).collect()
}

/// Says at each part that went which part it perhaps is by now.
fn name_renames(pair: &Pair, changes: &mut [ContractChange]) -> Vec<(String, String)> {
    let mut renames = Vec::new();
    for change in changes.iter_mut().filter(|change| change.old == Some(Value::Bool(true)) && change.new.is_none()) {
        let Some(Rename { old, new, same, all }) = find_rename(pair, &change.fact) else { continue };
        change.message += &format!("; `{new}` is new and has {same} of its {all} facts: perhaps it was renamed");
        renames.push((old, new));
    }
    renames
}
