//! Recognises a part of a contract that has another name.

use crate::access::holders;
use crate::pair::{Facts, Pair, has_part, names, text};
use crate::texts::is_wording;
use serde_json::Value;
use std::collections::BTreeSet;

/// Texts of a tool: its calls do not depend on them. The doc of an argument may have its unit.
const TEXTS: [&str; 8] = ["title", "summary", "use_when", "not_when", "returns", "notes", "after", "usually_ends"];

pub(crate) struct Rename {
    pub(crate) old: String,
    pub(crate) new: String,
    /// The facts that are the same, of all that the old part has.
    pub(crate) same: usize,
    pub(crate) all: usize,
}

/// Pairs a part that went, such as `tool.NAME`, with the part that came and resembles it most.
pub(crate) fn find_rename(pair: &Pair, old: &str) -> Option<Rename> {
    let (above, _) = old.rsplit_once('.').filter(|_| !has_part(&pair.new, old))?;
    let known = names(&pair.old, above);
    let came = names(&pair.new, above).into_iter().filter(|name| !known.contains(name));
    let scored = came.map(|name| {
        let new = format!("{above}.{name}");
        let (same, all) = likeness(pair, old, &new);
        (is_same_tool(pair, old, &new), same, all, new)
    });
    let (_, same, all, new) = scored.max()?;
    (all > 0 && same * 5 >= all * 3).then(|| Rename { old: old.to_owned(), new, same, all })
}

/// Finds the rename of which `part` is the old or the new name.
pub(crate) fn find_rename_of(pair: &Pair, part: &str) -> Option<Rename> {
    let (above, _) = part.rsplit_once('.')?;
    let olds = names(&pair.old, above).into_iter();
    let mut renames = olds.filter_map(|name| find_rename(pair, &format!("{above}.{name}")));
    renames.find(|rename| rename.old == part || rename.new == part)
}

fn likeness(pair: &Pair, old: &str, new: &str) -> (usize, usize) {
    let below = format!("{old}.");
    let of_old: Vec<_> = pair.old.iter().filter_map(|(key, value)| Some((key.strip_prefix(&below)?, value))).collect();
    let same = of_old.iter().filter(|(key, value)| pair.new.get(&format!("{new}.{key}")) == Some(*value));
    (same.count(), of_old.len())
}

/// Returns true if a tool has another name, and perhaps another route, and is else the same to all
/// that hold a key.
pub(crate) fn is_same_tool(pair: &Pair, old: &str, new: &str) -> bool {
    let held = |facts, tool: &str, others| -> BTreeSet<String> {
        let known = names(others, "permission");
        let all = holders(facts, text(facts, &format!("{tool}.permission"))).into_iter();
        all.filter(|name| known.contains(name)).map(str::to_owned).collect()
    };
    let call = |facts, tool: &str| calls(facts, tool).into_iter().filter(|(key, _)| *key != "http").collect::<Vec<_>>();
    let summary = |facts, tool: &str| text(facts, &format!("{tool}.summary")).to_owned();
    old.starts_with("tool.")
        && call(&pair.old, old) == call(&pair.new, new)
        && is_wording(&summary(&pair.old, old), &summary(&pair.new, new), pair.vocabulary())
        && held(&pair.old, old, &pair.new) == held(&pair.new, new, &pair.old)
}

/// Leaves out texts.
pub(crate) fn calls<'a>(facts: &'a Facts, tool: &str) -> Vec<(&'a str, &'a Value)> {
    let above = format!("{tool}.");
    let own = facts.iter().filter_map(|(key, value)| Some((key.strip_prefix(&above)?, value)));
    own.filter(|(key, _)| !TEXTS.contains(&key.rsplit('.').next().unwrap_or_default())).collect()
}
