//! `released.toml`, the record of the contract that was released last, and its making.

use crate::accepted::Accepted;
use crate::version::Version;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use toolwarrant_gate::{Audience, ContractChange, Severity, digest, forms_to_keep};
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{ContractRecord, ListForm, RELEASED, list_item};

const HEAD: &str = "\
# The record of the contract as it was released last. `contract release` writes it, and nobody edits it.
# `record.cost` has the characters of the list of tools, with output schemas, of a key with that permission alone.

";

const UNRELEASED: &str = "## Unreleased\n";

const WIDTH: usize = 100;

/// Fails also if the facts are not those that were released.
pub(crate) fn read(folder: &Path) -> Result<(ContractRecord, String), String> {
    let path = folder.join(RELEASED);
    let shown = crate::source::display_path(folder, &path);
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("there is no {shown}: `contract release VERSION` makes the first release"),
        _ => format!("cannot read {shown}: {error}"),
    })?;
    let record = ContractRecord::parse(&text).map_err(|why| format!("{shown}: {why}"))?;
    let (said, digest) = (record.head_text("digest"), digest(&record));
    if said != digest {
        let said = if said.is_empty() { "no digest" } else { said };
        return Err(format!(
            "{shown} was changed after the release: its facts have the digest {digest}, and it says {said}; take it \
             back with `git log --oneline -- {shown}` and `git checkout COMMIT -- {shown}`"
        ));
    }
    Version::parse(record.head_text("version")).map_err(|why| format!("{shown}: {why}"))?;
    Ok((record, text))
}

/// Adds the cost of each permission's list. The record that `gen` writes has none: each text
/// changes them, so branches could not be merged.
pub(crate) fn record_with_costs(contract: &Contract) -> ContractRecord {
    let mut record = ContractRecord::of(contract);
    for permission in &contract.permissions {
        let shown =
            contract.tools_with(None).filter(|tool| contract.callers(tool).any(|holder| holder == permission.name));
        let sizes = shown.map(|tool| list_item(contract, tool, ListForm::WithOutputs).chars().count() + 1);
        let size = (sizes.sum::<usize>() + "{\"tools\":[]}".len()).saturating_sub(1);
        record.head.insert(format!("cost.{}", permission.name), size.into());
    }
    record
}

pub(crate) fn release_text(contract: &Contract, before: Option<&ContractRecord>, date: &str) -> String {
    let mut record = record_with_costs(contract);
    record.facts.extend(before.map(|before| forms_to_keep(&before.facts, &record.facts)).unwrap_or_default());
    record.head.retain(|key, _| !key.starts_with("released."));
    record.head.insert("date".to_owned(), date.into());
    record.head.insert("digest".to_owned(), digest(&record).into());
    HEAD.to_owned() + &record.text()
}

pub(crate) fn changelog(
    text: &str,
    (version, date): (&str, &str),
    changes: &[(&ContractChange, Option<&Accepted>)],
) -> String {
    let text = if text.is_empty() { "# Changelog\n\n" } else { text };
    let (before, after) = match text.split_once(UNRELEASED) {
        Some((before, after)) => (before, after),
        None => text.split_at(text.find("\n## ").map_or(text.len(), |at| at + 1)),
    };
    let mut groups = BTreeMap::<_, Vec<String>>::new();
    for (change, accepted) in changes {
        let reason = accepted.map(|accepted| format!(" {}", accepted.reason)).unwrap_or_default();
        let ContractChange { message, rule, fact, verdicts, .. } = change;
        let item = format!("{message} (`{}`, `{fact}`).{reason}", rule.id);
        groups.entry(std::cmp::Reverse(*verdicts)).or_default().push(item);
    }
    let mut own = String::new();
    for (verdicts, items) in groups {
        let _ = write!(own, "\n### Contract: {}\n\n", describe_verdicts(verdicts.0));
        items.iter().for_each(|item| own.push_str(&wrap(item)));
    }
    format!("{before}{UNRELEASED}\n## {version} - {date}\n{own}\n{}", after.trim_start_matches('\n'))
}

pub(crate) fn describe_verdicts(verdicts: [Severity; 5]) -> String {
    let of = |verdict: Severity| {
        let hurt = Audience::ALL.into_iter().filter(|audience| verdicts[*audience as usize] == verdict);
        hurt.map(Audience::name).collect::<Vec<_>>().join(", ")
    };
    let groups = [("breaks", of(Severity::Breaking)), ("may hurt", of(Severity::Risky))];
    let groups = groups.iter().filter(|(_, names)| !names.is_empty());
    let text = groups.map(|(verb, names)| format!("{verb} {names}")).collect::<Vec<_>>().join("; ");
    if text.is_empty() { "compatible".to_owned() } else { text }
}

fn wrap(text: &str) -> String {
    let (mut out, mut line) = (String::new(), "-".to_owned());
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = " ".to_owned();
        }
        line = format!("{line} {word}");
    }
    out + &line + "\n"
}
