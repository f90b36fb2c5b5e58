//! Records of other states of the contract: of a revision, a file or a folder.

use crate::version::Version;
use std::path::Path;
use std::process::Command;
use toolwarrant_common::escape_line;
use toolwarrant_reader::{ContractRecord, load};

pub(crate) const IN_FORCE: &str = "generated/contract.toml";

pub(crate) fn read(folder: &Path, from: &str) -> Result<(ContractRecord, String), String> {
    let path = Path::new(from);
    if path.is_dir() {
        let record = load(path).map(|contract| ContractRecord::of(&contract)).map_err(|report| report.to_string())?;
        let text = record.text();
        return Ok((record, text));
    }
    if path.is_file() {
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", escape_line(from)))?;
        return parse(from, text);
    }
    at(folder, from)
}

/// Needs the revision's commit, and no history.
pub(crate) fn at(folder: &Path, revision: &str) -> Result<(ContractRecord, String), String> {
    if revision.starts_with('-') {
        return Err(format!("`{}` is not a revision", escape_line(revision)));
    }
    let commit = format!("{revision}^{{commit}}");
    if git(folder, &["rev-parse", "--verify", "--quiet", &commit])?.is_none() {
        let revision = escape_line(revision);
        let missing = format!("this clone has no revision `{revision}`: run");
        let [history, branch] = ["HEAD~", "origin/"].map(|prefix| revision.strip_prefix(prefix));
        return Err(match (history, branch) {
            (Some(depth), _) => format!("{missing} `git fetch --deepen={depth}`"),
            (_, Some(name)) => format!("{missing} `git fetch --depth=1 origin {name}:refs/remotes/{revision}`"),
            _ => format!("{missing} `git fetch --depth=1 origin {revision}`, and name it FETCH_HEAD"),
        });
    }
    let blob = format!("{revision}:./{IN_FORCE}");
    let text = git(folder, &["show", &blob])?;
    let text =
        text.ok_or_else(|| format!("`{}` has no {IN_FORCE} of this contract: `gen` writes it", escape_line(revision)))?;
    parse(&blob, text)
}

fn parse(from: &str, text: String) -> Result<(ContractRecord, String), String> {
    let refuse = |why: String| format!("{}: {why}", escape_line(from));
    let record = ContractRecord::parse(&text).map_err(refuse)?;
    Version::parse(record.head_text("version")).map_err(refuse)?;
    Ok((record, text))
}

fn git(folder: &Path, arguments: &[&str]) -> Result<Option<String>, String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}
