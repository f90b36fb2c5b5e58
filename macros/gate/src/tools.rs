//! Judges changes of a tool that depend on its other facts, and finds out whether a program at
//! `/v1` can notice a change.

use crate::pair::{Difference, Pair, names, text};
use crate::renames::calls;

/// Returns `None` if the terms of a case changed for a value that existed.
pub(crate) fn judge_case(pair: &Pair, tool: &str, value: &str) -> Option<&'static str> {
    let select = |facts| text(facts, &format!("tool.{tool}.task.select"));
    let admits = |facts| {
        let ty = text(facts, &format!("tool.{tool}.argument.{}.type", select(facts)));
        names(facts, &format!("type.{ty}.value")).contains(&value)
    };
    match (admits(&pair.old), admits(&pair.new)) {
        (false, true) if select(&pair.old) == select(&pair.new) => Some("argument-widened"),
        (true, false) if select(&pair.old) == select(&pair.new) => Some("value-removed"),
        _ => None,
    }
}

/// Judges by the answer that the former route gets.
pub(crate) fn judge_route(pair: &Pair, former: &str) -> Option<&'static str> {
    let (method, path) = former.split_once(' ')?;
    let routes = names(&pair.new, "tool").into_iter();
    let routes = routes.filter_map(|tool| text(&pair.new, &format!("tool.{tool}.http")).split_once(' '));
    let methods: Vec<_> = routes.filter(|(_, other)| shape(other) == shape(path)).map(|(method, _)| method).collect();
    let is_refused = !methods.is_empty() && !methods.contains(&method);
    Some(if is_refused { "method-changed" } else { "route-changed" })
}

/// The names of a path's parameters do not matter.
fn shape(path: &str) -> Vec<&str> {
    path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect()
}

/// Returns true if neither contract measures the tasks that a term, such as
/// `tool.X.task.settle_seconds`, is for.
pub(crate) fn is_unmeasured(pair: &Pair, term: &str) -> bool {
    let probe = term.rsplit_once('.').map(|(above, _)| format!("{above}.probe")).unwrap_or_default();
    !pair.old.contains_key(&probe) && !pair.new.contains_key(&probe)
}

/// Returns true if each tool that a change concerns either has no route under `/v1`, or goes and
/// leaves its route to a tool that is the same but for its name and texts.
pub(crate) fn is_unseen_at_routes(pair: &Pair, difference: &Difference, users: &[String]) -> bool {
    let places = if users.is_empty() { std::slice::from_ref(&difference.key) } else { users };
    places.iter().all(|place| match place.split('.').collect::<Vec<_>>()[..] {
        ["tool", tool] => {
            let is_heir = |other: &&str| calls(&pair.old, place) == calls(&pair.new, &format!("tool.{other}"));
            !has_route(pair, tool) || (difference.new.is_none() && names(&pair.new, "tool").iter().any(is_heir))
        }
        ["tool", tool, ..] => !has_route(pair, tool),
        ["reserved", "tools"] => true,
        _ => false,
    })
}

fn has_route(pair: &Pair, tool: &str) -> bool {
    pair.old.contains_key(&format!("tool.{tool}.http"))
}
