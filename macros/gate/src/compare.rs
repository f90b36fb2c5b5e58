//! Compares two records: judges each difference by the rules, and groups what follows from another.

use crate::access::{judge_implication, judge_permission, list_changes};
use crate::causes;
use crate::change::ContractChange;
use crate::forms;
use crate::pair::{Difference, Facts, Pair, fits, names, text};
use crate::renames::{Rename, find_rename, find_rename_of, is_same_tool};
use crate::rules::{ChangeRule, When, rule, rules};
use crate::severity::{Audience, Severity};
use crate::texts::is_wording;
use crate::tools::{is_unmeasured, is_unseen_at_routes, judge_case, judge_route};
use crate::units::is_unit_changed;
use crate::values::{User, Way, admits, is_quantity, resource_of, users};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use toolwarrant_reader::ContractRecord;

const UNWATCHED: &str = "behaviour-changed";

/// Returns the worst first.
#[must_use]
pub fn compare(old: &ContractRecord, new: &ContractRecord) -> Vec<ContractChange> {
    let pair = Pair::new(old, new);
    let is_upgrade = old.head_text("framework") != new.head_text("framework");
    let mut changes = Vec::new();
    for difference in pair.differences() {
        // A fact that no rule watches is no reason to pass. A test holds that there is none.
        let Some(rule) = judge(&pair, &difference).or_else(|| rule(UNWATCHED)) else { continue };
        let is_framework = is_upgrade && difference.key.starts_with("framework.");
        let users = type_name(&difference.key).map(|name| find_shared_users(&pair, name)).unwrap_or_default();
        let users: Vec<String> = users.into_iter().map(|(_, user)| user).collect();
        let mut change = change(rule, difference.key.clone(), message(&pair, &difference));
        if is_unseen_at_routes(&pair, &difference, &users) {
            change.verdicts[Audience::Http as usize] = Severity::Compatible;
        }
        let Difference { key: _, old, new } = difference;
        changes.push(ContractChange { old, new, users, is_framework, ..change });
    }
    if let Some(rule) = rule("form-unreadable") {
        let forms = forms::unreadable(&old.facts, &new.facts).into_iter();
        changes.extend(
            forms.map(|(fact, message)| ContractChange { old: Some(true.into()), ..change(rule, fact, message) }),
        );
    }
    changes.extend(grown_costs(old, new));
    causes::attach_lists(&list_changes(&pair), &pair, &mut changes);
    let mut changes = causes::group(&pair, changes);
    changes.sort_by_key(|change| (Reverse(change.rule.weight()), change.fact.clone()));
    changes
}

fn change(rule: &'static ChangeRule, fact: String, message: String) -> ContractChange {
    ContractChange {
        rule,
        verdicts: rule.verdicts,
        fact,
        old: None,
        new: None,
        message,
        lists: Vec::new(),
        users: Vec::new(),
        is_framework: false,
        consequences: Vec::new(),
    }
}

/// Counts lists that have grown by a tenth.
fn grown_costs(old: &ContractRecord, new: &ContractRecord) -> Vec<ContractChange> {
    let cost = |record: &ContractRecord, key: &str| record.head.get(key).and_then(Value::as_i64);
    let grown = new.head.keys().filter(|key| key.starts_with("cost.")).filter_map(|key| {
        let (before, now) = (cost(old, key)?, cost(new, key)?);
        let message = format!("`record.{key}` was {before} and is {now} characters");
        (now * 10 >= before * 11).then(|| rule("cost-grew").map(|rule| change(rule, format!("record.{key}"), message)))
    });
    grown.flatten().collect()
}

fn judge(pair: &Pair, difference: &Difference) -> Option<&'static ChangeRule> {
    if let Some(id) = judge_by_context(pair, difference) {
        return rule(id);
    }
    let watching = rules().iter().flat_map(|rule| rule.watches.iter().map(move |watch| (rule, watch)));
    let watching = watching
        .filter(|(_, watch)| fits(&watch.key, &difference.key) && holds(watch.when, difference, pair))
        // Rules for any change of a fact, and for any text, come last.
        .min_by_key(|(_, watch)| (watch.key == "*", watch.when == When::Changed));
    watching.map(|(rule, _)| rule)
}

/// Judges a tool that servers begin to offer. No server offers a toolset that is new.
fn judge_power(pair: &Pair, tool: &str) -> &'static str {
    let fact = |name: &str| text(&pair.new, &format!("tool.{tool}.{name}"));
    let is_held = names(&pair.old, "permission").contains(&fact("permission"));
    let is_offered = fact("toolset").is_empty() || names(&pair.old, "toolset").contains(&fact("toolset"));
    let changes = !matches!(fact("effect"), "read" | "read_task");
    if changes && is_held && is_offered { "power-added" } else { "tool-added" }
}

fn holds(when: When, Difference { old, new, .. }: &Difference, pair: &Pair) -> bool {
    let is_flag = |value: &Option<Value>| matches!(value, None | Some(Value::Bool(_)));
    let is_set = |value: &Option<Value>| value.as_ref().is_some_and(|value| *value != Value::Bool(false));
    let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_i64).unwrap_or(0);
    let flags = is_flag(old) && is_flag(new);
    match when {
        When::Added => (old.is_none() || flags) && !is_set(old) && is_set(new),
        When::Removed => (new.is_none() || flags) && is_set(old) && !is_set(new),
        When::Raised => number(new) > number(old),
        When::Lowered => number(new) < number(old),
        When::Changed => true,
        When::Wording | When::Meaning => {
            let words_of = |value: &Option<Value>| match value {
                Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
                Some(Value::String(text)) => text.clone(),
                _ => String::new(),
            };
            let is_text = |value: &Option<Value>| matches!(value, None | Some(Value::String(_) | Value::Array(_)));
            let (before, after) = (words_of(old), words_of(new));
            is_text(old) && is_text(new) && is_wording(&before, &after, pair.vocabulary()) == (when == When::Wording)
        }
        When::Judged => false,
    }
}

/// Judges facts whose rule depends on other facts.
fn judge_by_context(pair: &Pair, difference: &Difference) -> Option<&'static str> {
    let Difference { key, old, new } = difference;
    let path = difference.path();
    let spelled = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let (before, after) = (spelled(old), spelled(new));
    match path[..] {
        [.., "doc"] if is_unit_changed(&before, &after) && is_quantity(&pair.new, key) => Some("unit-changed"),
        ["tool", _, "http"] => judge_route(pair, &before),
        ["tool", tool, "task", "case", value] => judge_case(pair, tool, value),
        ["tool", _, "task", .., "resend" | "settle_seconds"] => is_unmeasured(pair, key).then_some("unseen-changed"),
        ["tool", _, "permission"] => Some(judge_permission(pair, &before, &after)),
        ["permission", holder, "implies", implied] => Some(judge_implication(pair, holder, implied, new.is_some())),
        ["tool", _] if find_rename_of(pair, key).is_some_and(|it| is_same_tool(pair, &it.old, &it.new)) => {
            Some(if new.is_some() { "tool-added" } else { "tool-renamed" })
        }
        ["tool", tool] if new.is_some() => Some(judge_power(pair, tool)),
        ["tool", _, "toolset"] if new.is_some() => Some("toolset-joined"),
        ["tool", tool, "toolset"] => Some(judge_power(pair, tool)),
        ["tool", _, "argument", _] => judge_argument(pair, key, new.is_some()),
        ["tool", _, "argument", _, "type"] => {
            let fits = admits((&pair.new, &after), (&pair.old, &before));
            let is_same = fits && admits((&pair.old, &before), (&pair.new, &after));
            Some(if is_same {
                "schema-changed"
            } else if fits {
                "argument-widened"
            } else {
                "argument-narrowed"
            })
        }
        ["tool", _, "argument", _, "max_items"] => Some(judge_size(old, new)),
        ["tool", tool, "argument", argument, "default"] => {
            let reads = matches!(text(&pair.new, &format!("tool.{tool}.effect")), "read" | "read_task");
            let is_optional = |facts: &Facts| facts.contains_key(&format!("tool.{tool}.argument.{argument}.optional"));
            Some(match (is_optional(&pair.old), is_optional(&pair.new)) {
                (true, false) => "argument-demanded",
                (false, true) => "argument-widened",
                _ if reads => "default-changed",
                _ => "default-changed-in-write",
            })
        }
        ["tool", tool, "error", _] => {
            let came_or_went = |facts: &Facts, others: &Facts| {
                let errors = names(facts, &format!("tool.{tool}.error"));
                errors.into_iter().any(|code| !others.contains_key(&format!("tool.{tool}.error.{code}")))
            };
            let is_replaced = came_or_went(&pair.old, &pair.new) && came_or_went(&pair.new, &pair.old);
            is_replaced.then_some("error-replaced")
        }
        ["tool", _, "target", "requires"] if old.is_some() && new.is_some() => Some("capability-exchanged"),
        ["tool", _, "result"] | ["error", _, "field", _, "type"] => Some(judge_result(pair, &before, &after)),
        ["resource", resource] if old.is_some() => {
            let id = text(&pair.old, &format!("resource.{resource}.id"));
            let is_renamed = resource_of(&pair.new, id).is_some();
            Some(if is_renamed { "resource-renamed" } else { "resource-removed" })
        }
        ["resource", _, "id"] => Some(judge_id(pair, &before, &after)),
        ["error", code] => Some(judge_error(pair, code, new.is_some())),
        ["error", _, "retry_after_seconds"] if old.is_none() => Some("retry-begun"),
        ["error", _, "retry_after_seconds"] if new.is_none() => Some("retry-ended"),
        ["reserved", kind] => Some(judge_reserved(pair, kind.trim_end_matches('s'), old, new)),
        ["framework", "refunded"] => Some(if grows(old, new) { "refund-widened" } else { "refund-narrowed" }),
        // More parts in the key of a write: fewer writes count as the same.
        ["framework", "write_key" | "write_key_named"] => {
            Some(if grows(old, new) { "write-key-narrowed" } else { "write-key-widened" })
        }
        ["type", name, ..] | ["framework", "type", name, ..] => judge_type(pair, difference, name),
        ["error", _, "field", _, "text"] => Some(judge_author(&before, &after)),
        _ => None,
    }
}

fn judge_argument(pair: &Pair, key: &str, is_new: bool) -> Option<&'static str> {
    let is_optional = |key: &str| pair.new.contains_key(&format!("{key}.optional"));
    match is_new {
        true => Some(if is_optional(key) { "argument-widened" } else { "argument-demanded" }),
        false => find_rename(pair, key).filter(|rename| !is_optional(&rename.new)).map(|_| "argument-renamed"),
    }
}

fn grows(old: &Option<Value>, new: &Option<Value>) -> bool {
    find_lost(old, new).is_empty()
}

fn find_lost(old: &Option<Value>, new: &Option<Value>) -> Vec<Value> {
    let members = |value: &Option<Value>| value.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let new = members(new);
    members(old).into_iter().filter(|member| !new.contains(member)).collect()
}

/// `kind` is `tool`, `error` or `value`.
fn judge_reserved(pair: &Pair, kind: &str, old: &Option<Value>, new: &Option<Value>) -> &'static str {
    let freed = find_lost(old, new);
    let is_taken = |key: &String| {
        let path: Vec<&str> = key.split('.').collect();
        path.windows(2).any(|part| part[0] == kind && freed.contains(&part[1].into()))
    };
    match (freed.is_empty(), pair.new.keys().any(is_taken)) {
        (true, _) => "unseen-changed",
        (false, false) => "reserved-freed",
        (false, true) => "reserved-taken",
    }
}

fn judge_error(pair: &Pair, code: &str, is_new: bool) -> &'static str {
    let (with, without) = if is_new { (&pair.new, &pair.old) } else { (&pair.old, &pair.new) };
    let role = text(with, &format!("error.{code}.role"));
    let plays = |other: &str| !role.is_empty() && text(without, &format!("error.{other}.role")) == role;
    // Some tool answers with the other code in its place.
    let is_exchanged = find_rename_of(pair, &format!("error.{code}")).is_some_and(|Rename { old, new, .. }| {
        let has = |facts: &Facts, tool, error| facts.contains_key(&format!("tool.{tool}.{error}"));
        names(&pair.old, "tool").into_iter().any(|tool| has(&pair.old, tool, &old) && has(&pair.new, tool, &new))
    });
    let is_renamed = is_exchanged || names(without, "error").into_iter().any(plays);
    if is_renamed { "error-renamed" } else { "unseen-changed" }
}

fn judge_id(pair: &Pair, before: &str, after: &str) -> &'static str {
    match (admits((&pair.new, after), (&pair.old, before)), admits((&pair.old, before), (&pair.new, after))) {
        (true, true) => "schema-changed",
        (true, false) => "id-widened",
        (false, _) => "id-narrowed",
    }
}

fn judge_result(pair: &Pair, before: &str, after: &str) -> &'static str {
    match (admits((&pair.old, before), (&pair.new, after)), admits((&pair.new, after), (&pair.old, before))) {
        (true, true) => "schema-changed",
        (true, false) => "result-tightened",
        (false, true) => "result-loosened",
        (false, false) => "field-retyped",
    }
}

fn judge_author(before: &str, after: &str) -> &'static str {
    match (before, after) {
        ("secret", _) => "result-secret-shown",
        (_, "secret") => "secret-covered",
        _ => "author-changed",
    }
}

/// Without a number, a list can have any size.
fn judge_size(old: &Option<Value>, new: &Option<Value>) -> &'static str {
    let size = |value: &Option<Value>| value.as_ref().and_then(Value::as_u64).unwrap_or(u64::MAX);
    if size(new) < size(old) { "argument-narrowed" } else { "argument-widened" }
}

/// Judges by the places that use the type. Returns `None` for facts that rules watch by the key
/// alone.
fn judge_type(pair: &Pair, difference: &Difference, name: &str) -> Option<&'static str> {
    let Difference { key, old, new } = difference;
    let path: Vec<&str> = key.strip_prefix("framework.").unwrap_or(key).split('.').collect();
    let ways: BTreeSet<Way> = find_shared_users(pair, name).into_iter().map(|(way, _)| way).collect();
    let is_id = resource_of(&pair.old, name).or(resource_of(&pair.new, name)).is_some();
    let takes_old = admits((&pair.new, name), (&pair.old, name));
    let gives_old = admits((&pair.old, name), (&pair.new, name));
    let spelled = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let inward = |rule: &'static str| ways.contains(&Way::In).then_some(rule);
    let outward = |rule: &'static str| ways.contains(&Way::Out).then_some(rule);
    let candidates = match path[2..] {
        _ if path.last() == Some(&"doc") || path.last() == Some(&"told") => return None,
        // The places that use the type are judged by themselves.
        [] => vec![Some("schema-changed")],
        ["value", _] if (old.is_some() && new.is_some()) || name == "TaskStatus" => return None,
        ["value", _] if new.is_some() => vec![inward("argument-widened"), outward("result-loosened")],
        ["value", _] => vec![inward("value-removed"), outward("result-tightened")],
        ["field", _] if new.is_some() => {
            let is_optional = pair.new.contains_key(&format!("{key}.optional"));
            vec![outward("field-added"), inward(if is_optional { "argument-widened" } else { "argument-demanded" })]
        }
        ["field", _] => vec![outward("field-removed"), inward("argument-removed")],
        ["field", _, "type"] => {
            let (before, after) = (spelled(old), spelled(new));
            let is_wider = admits((&pair.new, &after), (&pair.old, &before));
            let way = if is_wider { "argument-widened" } else { "argument-narrowed" };
            vec![outward(judge_result(pair, &before, &after)), inward(way)]
        }
        ["field", _, "optional"] => {
            vec![inward(if new.is_some() { "argument-widened" } else { "argument-demanded" })]
        }
        ["field", _, "default"] => vec![inward("default-changed-in-write")],
        ["field", _, "max_items"] => vec![inward(judge_size(old, new))],
        ["field", _, "nullable"] => {
            vec![outward(if new.is_some() { "field-nullable" } else { "result-tightened" })]
        }
        ["field", _, "text"] => vec![outward(judge_author(&spelled(old), &spelled(new)))],
        ["kind"] => {
            let out = if gives_old {
                "result-tightened"
            } else if takes_old {
                "result-loosened"
            } else {
                "field-retyped"
            };
            vec![
                is_id.then_some(if takes_old { "id-widened" } else { "id-narrowed" }),
                inward(if takes_old { "argument-widened" } else { "argument-narrowed" }),
                outward(out),
            ]
        }
        ["max_length"] if outgrows_hosts(pair, name, old, new) => vec![Some("result-cut")],
        _ if takes_old && gives_old => vec![],
        _ => {
            let (is_wider, is_tighter) = (
                takes_old || !is_to_blame(pair, key, |only| admits((only, name), (&pair.old, name))),
                gives_old || !is_to_blame(pair, key, |only| admits((&pair.old, name), (only, name))),
            );
            vec![
                is_id.then_some(if is_wider { "id-widened" } else { "id-narrowed" }),
                inward(if is_wider { "argument-widened" } else { "argument-narrowed" }),
                outward(if is_tighter { "result-tightened" } else { "result-loosened" }),
            ]
        }
    };
    let worst = candidates.into_iter().flatten().filter_map(rule).max_by_key(|rule| rule.weight());
    Some(worst.map_or("unseen-changed", |rule| &rule.id))
}

/// Claude Code cuts a result at 25,000 tokens, Codex at 10,000, at some 4 characters each.
const CUT_BY_HOSTS: u64 = 40_000;

fn outgrows_hosts(pair: &Pair, name: &str, old: &Option<Value>, new: &Option<Value>) -> bool {
    let is_cut = |length: &Option<Value>| length.as_ref().and_then(Value::as_u64) > Some(CUT_BY_HOSTS);
    let is_text = text(&pair.new, &format!("type.{name}.kind")) == "text";
    is_text && is_cut(new) && !is_cut(old) && users(&pair.new, name).iter().any(|(way, _)| *way == Way::Out)
}

/// Returns true if the type fails with this limit alone as it is now. If there is no such limit,
/// all are to blame.
fn is_to_blame(pair: &Pair, key: &str, holds: impl Fn(&Facts) -> bool) -> bool {
    let above = key.rsplit_once('.').map_or(key, |(above, _)| above);
    let limits = ["min", "max", "min_length", "max_length", "prefix", "charset", "values", "max_items", "max_bytes"]
        .map(|limit| format!("{above}.{limit}"));
    let changed = limits.iter().filter(|limit| pair.old.get(*limit) != pair.new.get(*limit));
    let fails_alone = |limit: &&String| {
        let mut only = pair.old.clone();
        match pair.new.get(*limit) {
            Some(value) => drop(only.insert((*limit).clone(), value.clone())),
            None => drop(only.remove(*limit)),
        }
        !holds(&only)
    };
    let blamed: Vec<&String> = changed.filter(fails_alone).collect();
    blamed.is_empty() || blamed.iter().any(|limit| *limit == key)
}

/// Leaves out a place that came or went: it is judged by itself.
fn find_shared_users(pair: &Pair, name: &str) -> BTreeSet<User> {
    &users(&pair.old, name) & &users(&pair.new, name)
}

fn type_name(key: &str) -> Option<&str> {
    key.strip_prefix("framework.").unwrap_or(key).strip_prefix("type.")?.split('.').next()
}

fn message(pair: &Pair, difference: &Difference) -> String {
    let Difference { key, old, new } = difference;
    let show = |value: &Value| match value {
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    };
    // Of a part and of a member of a set, only the presence is a fact.
    let is_flag = [&pair.old, &pair.new].iter().any(|facts| facts.contains_key(key))
        && !matches!(difference.path()[..], [.., "implies" | "error" | "revision", _] | [.., "default"]);
    match (old, new) {
        (None, Some(Value::Bool(true))) if is_flag => format!("`{key}` was false and is true"),
        (Some(Value::Bool(true)), None) if is_flag => format!("`{key}` was true and is false"),
        (Some(old), Some(new)) => format!("`{key}` was {} and is {}", show(old), show(new)),
        (None, Some(Value::Bool(true))) => format!("`{key}` is new"),
        (None, Some(new)) => format!("`{key}` is new: {}", show(new)),
        (Some(Value::Bool(true)) | None, None) => format!("`{key}` has gone"),
        (Some(old), None) => format!("`{key}` has gone; it was {}", show(old)),
    }
}
