//! The check of a contract against the released one: its changes, and everything that is to do
//! before it may land.

use crate::accepted::{self, Accepted, Mistake};
use crate::source::{self, File, Places, Spot, display_path};
use crate::version::Version;
use crate::{base, release};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use toolwarrant_gate::{Bump, ContractChange, Severity, compare};
use toolwarrant_reader::{ACCEPTED, ContractRecord, Problem, RELEASED, Report, load};

pub(crate) struct Judgement {
    pub(crate) files: Vec<File>,
    /// The former record's, the contract's, and the lowest that the changes allow.
    pub(crate) versions: [String; 3],
    pub(crate) former: String,
    pub(crate) changes: Vec<Judged>,
    pub(crate) branch: Option<(String, Vec<Judged>)>,
    pub(crate) refusals: Vec<RefusedContract>,
}

pub(crate) struct Judged {
    pub(crate) change: ContractChange,
    pub(crate) accepted: Option<Accepted>,
    pub(crate) spot: Option<Spot>,
    pub(crate) former: Option<Spot>,
}

pub(crate) struct RefusedContract {
    pub(crate) id: &'static str,
    pub(crate) message: String,
    pub(crate) help: String,
    pub(crate) spot: Option<Spot>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Against<'a> {
    pub(crate) revision: Option<&'a str>,
    pub(crate) other: Option<&'a str>,
}

pub(crate) fn check(folder: &Path, Against { revision, other }: Against<'_>) -> Result<Judgement, String> {
    let (contract, too_long) = match load(folder) {
        Ok(contract) => (contract, Vec::new()),
        Err(Report { overlong: Some(contract), problems, .. }) => (*contract, problems),
        Err(report) => return Err(report.to_string()),
    };
    let new = release::record_with_costs(&contract);
    let mut paths = contract.files.clone();
    paths.push(folder.join(ACCEPTED));
    let files = source::read_files(folder, &paths);
    let in_accepted = files.len() - 1;
    let places = Places::of(&files[..in_accepted]);
    let mut records = Vec::new();
    let refuse = |Mistake { span, message, help }| {
        let spot = Some(Spot { file: in_accepted, span, is_exact: true });
        RefusedContract { id: "acceptance", message, help, spot }
    };
    let (accepted, mistake) = match accepted::parse(&files[in_accepted].text) {
        Ok(accepted) => (accepted, None),
        Err(mistake) => (Vec::new(), Some(mistake)),
    };
    let too_long = too_long.into_iter().map(|Problem { rule, file, span, message, help, .. }| {
        let file = files.iter().position(|known| known.shown == file);
        let spot = file.map(|file| Spot { file, span, is_exact: true });
        RefusedContract { id: rule.id(), message, help: help.unwrap_or_else(|| "shorten it".to_owned()), spot }
    });
    let mut refusals: Vec<_> = too_long.chain(mistake.map(refuse)).collect();
    let (former, (old, text)) = match other {
        Some(other) => (other.to_owned(), base::read(folder, other)?),
        None => (display_path(folder, &folder.join(RELEASED)), release::read(folder)?),
    };
    let mut judge = |old: &ContractRecord, shown: &str, text: String| {
        let former = files.len() + records.len();
        let judge = |change: ContractChange| {
            let line = line(former, &text, &change.fact);
            Judged { former: line, ..judge_change(change, [old, &new], &places, &accepted) }
        };
        let changes = compare(old, &new).into_iter().map(judge).collect::<Vec<_>>();
        records.push(File { shown: shown.to_owned(), text });
        changes
    };
    let changes = judge(&old, &former, text);
    let branch = match revision {
        Some(revision) => {
            let (base, text) = base::at(folder, revision)?;
            refusals.extend(release_refusal(&base, &new, revision));
            Some((
                revision.to_owned(),
                judge(&base, &format!("{revision}:{}", display_path(folder, &folder.join(base::IN_FORCE))), text),
            ))
        }
        None => None,
    };
    let bump = changes.iter().map(|judged| largest_bump(&judged.change)).max();
    let [before, written] = [&old, &new].map(|record| record.head_text("version").to_owned());
    let required = Version::parse(&before).ok().map(|before| bump.map_or(before, |bump| before.after(bump)));
    refusals.extend(version_refusal(required, &written, places.find("service.version")));
    let breaks: Vec<_> = changes.iter().filter(|judged| breaks(&judged.change)).collect();
    refusals.extend(breaks.iter().filter(|judged| judged.accepted.is_none()).map(|judged| break_refusal(judged)));
    if other.is_none() {
        let unmatched = |known: &&Accepted| !breaks.iter().any(|judged| known.covers(&judged.change));
        let mistake = |known: &Accepted| known.mistake(breaks.iter().map(|judged| &judged.change));
        refusals.extend(accepted.iter().filter(unmatched).map(mistake).map(refuse));
    }
    refusals.extend(name_refusal(&old, &new, places.find("reserved.tools")));
    let required = required.map_or(before.clone(), |required| required.to_string());
    let files = files.into_iter().chain(records).collect();
    Ok(Judgement { files, versions: [before, written, required], former, changes, branch, refusals })
}

pub(crate) fn breaks(change: &ContractChange) -> bool {
    change.worst() == Severity::Breaking || change.consequences.iter().any(breaks)
}

fn largest_bump(change: &ContractChange) -> Bump {
    change.consequences.iter().map(largest_bump).fold(change.rule.bump, Ord::max)
}

fn judge_change(
    mut change: ContractChange,
    [old, new]: [&ContractRecord; 2],
    places: &Places<'_>,
    accepted: &[Accepted],
) -> Judged {
    let accepted = accepted.iter().find(|accepted| accepted.covers(&change)).cloned();
    let spot = places.find(&change.fact);
    let of_framework = |fact: &str| {
        let tables = ["error.", "framework.", "limit.", "phrase.", "readers.", "revision.", "state."];
        tables.iter().any(|table| fact.starts_with(table))
    };
    let is_own = spot.as_ref().is_some_and(|spot| spot.is_exact) || !of_framework(&change.fact);
    change.is_framework |= !is_own && old.head_text("framework") != new.head_text("framework");
    Judged { change, accepted, spot, former: None }
}

fn line(file: usize, text: &str, fact: &str) -> Option<Spot> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.strip_prefix(fact).is_some_and(|rest| rest.starts_with([' ', '.'])) {
            return Some(Spot { file, span: at..at + line.trim_end().len(), is_exact: true });
        }
        at += line.len();
    }
    None
}

fn version_refusal(required: Option<Version>, written: &str, spot: Option<Spot>) -> Option<RefusedContract> {
    let (id, message, version) = match Version::parse(written) {
        Err(why) => ("version-form", why, required),
        Ok(version) if Some(version) < required => {
            ("version-too-low", format!("the version is {written}, which is too low for the changes"), required)
        }
        Ok(_) => return None,
    };
    let version = version.map_or("0.1.0".to_owned(), |version| version.to_string());
    Some(RefusedContract { id, message, help: format!("write `version = \"{version}\"` under `[service]`"), spot })
}

fn break_refusal(Judged { change: ContractChange { rule, fact, message, .. }, .. }: &Judged) -> RefusedContract {
    RefusedContract {
        id: "break-not-accepted",
        message: message.clone(),
        help: format!("undo it, or say why it must be: `contract accept {} {fact} --reason \"...\"`", rule.id),
        spot: None,
    }
}

fn name_refusal(old: &ContractRecord, new: &ContractRecord, spot: Option<Spot>) -> Option<RefusedContract> {
    let names = |record: &ContractRecord, kind: &str| -> BTreeSet<String> {
        let parts = record.facts.keys().map(|key| key.split('.').collect::<Vec<_>>());
        let name = |parts: Vec<&str>| match (kind, &*parts) {
            ("tools", ["tool", name, ..]) | ("errors", ["error", name, ..]) => Some((*name).to_owned()),
            ("values", ["type", _, "value", name]) => Some((*name).to_owned()),
            _ => None,
        };
        parts.filter_map(name).collect()
    };
    let lost = ["tools", "errors", "values"].into_iter().filter_map(|kind| {
        let reserved = new.facts.get(&format!("reserved.{kind}")).and_then(Value::as_array);
        let now = names(new, kind);
        let is_lost = |name: &String| {
            !now.contains(name) && !reserved.is_some_and(|reserved| reserved.iter().any(|known| known == name))
        };
        let lost: Vec<_> = names(old, kind).into_iter().filter(is_lost).map(|name| format!("\"{name}\"")).collect();
        (!lost.is_empty()).then(|| format!("{kind} = [{}]", lost.join(", ")))
    });
    let lost: Vec<_> = lost.collect();
    (!lost.is_empty()).then(|| RefusedContract {
        id: "name-not-reserved",
        message: "names went, and may return with another meaning".to_owned(),
        help: format!("add to reserved.toml: {}", lost.join("; ")),
        spot,
    })
}

fn release_refusal(base: &ContractRecord, new: &ContractRecord, revision: &str) -> Option<RefusedContract> {
    let [before, now] = [base, new].map(|record| Version::parse(record.head_text("released.version")).ok());
    let is_same = base.head_text("released.digest") == new.head_text("released.digest");
    (before >= now && !(is_same && before == now)).then(|| RefusedContract {
        id: "release-altered",
        message: format!("released.toml is not the one of `{revision}`, and its version did not go up"),
        help: format!("take it back: `git checkout {revision} -- {RELEASED}`; only a release changes it"),
        spot: None,
    })
}
