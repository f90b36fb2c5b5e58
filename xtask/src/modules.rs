//! Which modules of a crate use each other in a circle, read from their paths.
//!
//! A module is what `src` and each folder below it list side by side. What a module's parts use counts as used by the module; what
//! stands in tests does not count.

use crate::r#gen::existing;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Modules, by their path from the crate's root, and those that each uses.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The circles among modules of the same parent, each as the names of those in it.
pub(crate) fn circles(package: &Path) -> Result<Vec<Vec<String>>> {
    let mut uses = Uses::new();
    for file in existing(package, "src")? {
        let path: Vec<String> =
            file.with_extension("").iter().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
        let is_source = file.extension().is_some_and(|extension| extension == "rs");
        if !is_source || path.iter().any(|part| part == "tests") || ["lib", "main"].contains(&path[0].as_str()) {
            continue;
        }
        let text = fs::read_to_string(package.join(&file)).with_context(|| file.display().to_string())?;
        uses.insert(path.clone(), used(&path, &text));
    }
    let mut circles = Vec::new();
    let parents: BTreeSet<&[String]> = uses.keys().map(|path| &path[..path.len() - 1]).collect();
    for parent in parents {
        let graph = siblings(parent, &uses);
        let in_circle = graph.keys().filter(|name| reach(&graph, name).contains(*name));
        let mut left: Vec<&String> = in_circle.collect();
        while let Some(first) = left.first().copied() {
            let circle: Vec<String> = left
                .iter()
                .filter(|other| reach(&graph, first).contains(**other) && reach(&graph, other).contains(first))
                .map(|name| (*name).clone())
                .collect();
            left.retain(|name| !circle.contains(name));
            circles.push(circle);
        }
    }
    Ok(circles)
}

/// The modules that stand side by side below `parent`, and which of them each uses.
fn siblings(parent: &[String], uses: &Uses) -> BTreeMap<String, BTreeSet<String>> {
    let below = |path: &Vec<String>| {
        (path.len() > parent.len() && path.starts_with(parent)).then(|| path[parent.len()].clone())
    };
    let mut graph = BTreeMap::<String, BTreeSet<String>>::new();
    for (path, used) in uses {
        let Some(own) = below(path) else { continue };
        let others = used.iter().filter_map(below).filter(|other| *other != own);
        graph.entry(own.clone()).or_default().extend(others);
    }
    let known: BTreeSet<String> = graph.keys().cloned().collect();
    graph.values_mut().for_each(|used| used.retain(|other| known.contains(other)));
    graph
}

fn reach(graph: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = graph.get(from).into_iter().flatten().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next.clone()) {
            open.extend(graph.get(next).into_iter().flatten());
        }
    }
    reached
}

/// The modules of its crate that a file names.
fn used(own: &[String], text: &str) -> BTreeSet<Vec<String>> {
    let text = text.find("\n#[cfg(test)]").map_or(text, |at| &text[..at]);
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        names(&code[at + "crate::".len()..], &[], &mut found);
    }
    for (at, _) in code.match_indices("super::") {
        let ups = code[..at].chars().rev().collect::<String>();
        let ups = 1 + ups.split("::repus").take_while(|part| part.is_empty()).count().saturating_sub(1);
        if own.len() >= ups {
            names(&code[at + "super::".len()..], &own[..own.len() - ups], &mut found);
        }
    }
    found
}

/// The paths that `code` begins with, one or a group, as far as they can be modules.
fn names(code: &str, base: &[String], found: &mut BTreeSet<Vec<String>>) {
    if let Some(group) = code.strip_prefix('{') {
        let mut depth = 0;
        let mut start = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => return,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    start = true;
                    continue;
                }
                c if c.is_whitespace() => continue,
                _ if start && depth == 0 => names(&group[at..], base, found),
                _ => {}
            }
            start = false;
        }
        return;
    }
    let word = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
    let end = code.find(|c| !word(c)).unwrap_or(code.len());
    if end == 0 {
        return;
    }
    let path = [base, &[code[..end].to_owned()]].concat();
    if let Some(rest) = code[end..].strip_prefix("::") {
        names(rest, &path, found);
    }
    found.insert(path);
}
