//! The tools that permissions open, and the change of them.

use crate::change::ListChange;
use crate::pair::{Facts, Pair, names, text};
use std::collections::BTreeSet;

pub(crate) fn holders<'a>(facts: &'a Facts, needed: &'a str) -> BTreeSet<&'a str> {
    let all = names(facts, "permission");
    let mut found: BTreeSet<&str> = all.iter().copied().filter(|name| *name == needed).collect();
    loop {
        let implies =
            |name: &&str| found.iter().any(|known| facts.contains_key(&format!("permission.{name}.implies.{known}")));
        let more: Vec<&str> = all.iter().copied().filter(|name| !found.contains(name)).filter(implies).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

pub(crate) fn list_changes(pair: &Pair) -> Vec<ListChange> {
    let opened = |facts| -> BTreeSet<(String, String)> {
        // The list of a server without toolsets.
        let tools = names(facts, "tool").into_iter();
        let tools = tools.filter(|tool| !facts.contains_key(&format!("tool.{tool}.toolset")));
        let pairs = tools.flat_map(|tool| {
            let needed = text(facts, &format!("tool.{tool}.permission"));
            holders(facts, needed).into_iter().map(move |holder| (holder.to_owned(), tool.to_owned()))
        });
        pairs.collect()
    };
    let (old, new) = (opened(&pair.old), opened(&pair.new));
    let changed: BTreeSet<&String> = old.symmetric_difference(&new).map(|(permission, _)| permission).collect();
    let of = |permission: &String, tools: Vec<&(String, String)>| {
        let own = tools.into_iter().filter(|(holder, _)| holder == permission);
        own.map(|(_, tool)| tool.clone()).collect::<Vec<_>>()
    };
    let changes = changed.into_iter().map(|permission| ListChange {
        permission: permission.clone(),
        lost: of(permission, old.difference(&new).collect()),
        gained: of(permission, new.difference(&old).collect()),
    });
    changes.collect()
}

pub(crate) fn judge_permission(pair: &Pair, old: &str, new: &str) -> &'static str {
    let before = holders(&pair.old, old);
    // A permission that has gone is a change of its own.
    let left = before.into_iter().filter(|name| names(&pair.new, "permission").contains(name));
    let now = holders(&pair.new, new);
    if left.into_iter().all(|name| now.contains(name)) { "permission-lowered" } else { "permission-raised" }
}

pub(crate) fn judge_implication(pair: &Pair, holder: &str, implied: &str, is_new: bool) -> &'static str {
    let (with, without) = if is_new { (&pair.new, &pair.old) } else { (&pair.old, &pair.new) };
    let known = names(without, "permission");
    let affected: Vec<_> = holders(with, holder).into_iter().filter(|name| known.contains(name)).collect();
    let differs = names(with, "tool").into_iter().filter(|tool| names(without, "tool").contains(tool)).any(|tool| {
        let needed = |facts| text(facts, &format!("tool.{tool}.permission"));
        let opens = holders(with, needed(with)).contains(implied);
        let others = holders(without, needed(without));
        opens && affected.iter().any(|name| !others.contains(name))
    });
    match (differs, is_new) {
        (false, _) => "unseen-changed",
        (true, true) => "permission-lowered",
        (true, false) => "implication-removed",
    }
}
