//! Updates the folder `generated` next to a contract to exactly the files that `documents()`
//! returns.

use crate::{Report, documents, load};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use toolwarrant_common::{escape_line, json, read_text};

const FOLDER: &str = "generated";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Write,
    Check,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Generated {
    pub tools: usize,
    pub files: usize,
    /// Relative to the parent of the contract's folder.
    pub changed: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    #[error("{0}")]
    Contract(Report),
    #[error("stale: {}; run `gen` and commit the result", names(.0))]
    Stale(Vec<PathBuf>),
    /// Values of enums that generated tools have and the contract has lost.
    #[error(
        "the contract has lost {}: add retired values to `values` in reserved.toml; restore {FOLDER}/tools if nobody has seen them",
        .0.join(", ")
    )]
    Retired(Vec<String>),
    /// The folder is a link, or it contains these files, which `gen` never writes.
    #[error("{folder} must be a folder, not a link, with only generated files: {files}", folder = show(.0),
        files = if .1.is_empty() { "remove the link".to_owned() } else { format!("move away {}", names(.1)) })]
    Foreign(PathBuf, Vec<PathBuf>),
    #[error("cannot change {path}: {error}", path = show(.path))]
    Io {
        /// The file to write or to remove.
        path: PathBuf,
        error: io::Error,
    },
}

pub fn generate(folder: &Path, mode: Mode) -> Result<Generated, GenerateError> {
    let contract = load(folder).map_err(GenerateError::Contract)?;
    let (wanted, generated) = (documents(&contract), folder.join(FOLDER));
    let known = wanted.values().flat_map(|text| enum_values(text)).chain(contract.reserved.values.iter().cloned());
    let known: BTreeSet<String> = known.collect();
    let tools = below(&generated.join("tools"));
    let before = tools.iter().filter_map(|path| fs::read_to_string(generated.join("tools").join(path)).ok());
    let lost: BTreeSet<_> = before.flat_map(|text| enum_values(&text)).filter(|value| !known.contains(value)).collect();
    if !lost.is_empty() {
        return Err(GenerateError::Retired(lost.into_iter().map(|value| format!("`{value}`")).collect()));
    }
    let changed = wanted.iter().filter(|(path, text)| read_text(&generated.join(path)).ok().as_ref() != Some(*text));
    let changed: Vec<_> = changed.collect();
    let (stale, foreign): (Vec<_>, Vec<_>) =
        below(&generated).into_iter().filter(|path| !wanted.contains_key(path)).partition(|path| could_be_ours(path));
    if generated.is_symlink() || !foreign.is_empty() {
        return Err(GenerateError::Foreign(generated, foreign));
    }
    let base = PathBuf::from(folder.file_name().unwrap_or_default());
    let names = changed.iter().map(|(path, _)| *path).chain(&stale).map(|path| base.join(FOLDER).join(path));
    let names: Vec<_> = names.collect();
    match mode {
        Mode::Check if !names.is_empty() => return Err(GenerateError::Stale(names)),
        Mode::Check => {}
        Mode::Write => {
            for (path, text) in changed {
                replace(&generated.join(path), text)?;
            }
            for path in stale.iter().map(|path| generated.join(path)) {
                fs::remove_file(&path).map_err(|error| GenerateError::Io { path, error })?;
            }
        }
    }
    Ok(Generated { tools: contract.tools().count(), files: wanted.len(), changed: names })
}

/// Replaces a file in one step: a reader sees the old text or the new one, never a part.
pub fn replace(path: &Path, text: &str) -> Result<(), GenerateError> {
    let draft = path.with_extension("draft");
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&draft, text))
        .and_then(|()| fs::rename(&draft, path))
        .map_err(|error| GenerateError::Io { path: path.to_owned(), error })
}

fn enum_values(document: &str) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![json::read(document).unwrap_or(Value::Null)]);
    while let Some(next) = open.pop() {
        match next {
            Value::Object(mut members) => {
                let values = members.remove("enum").and_then(|values| Some(values.as_array()?.clone()));
                found.extend(values.iter().flatten().filter_map(|value| value.as_str().map(str::to_owned)));
                open.extend(members.into_iter().map(|(_, member)| member));
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

/// Returns true if an earlier contract may have generated the file.
fn could_be_ours(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::to_str).unwrap_or_default();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    matches!((folder, ending), ("", "md" | "json" | "toml") | ("tools" | "editor", "json"))
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for path in fs::read_dir(&next).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                open.push(path);
            } else {
                found.extend(path.strip_prefix(folder).map(Path::to_owned));
            }
        }
    }
    found.sort();
    found
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| show(path)).collect::<Vec<_>>().join(", ")
}

fn show(path: &Path) -> String {
    escape_line(&path.to_string_lossy())
}

impl fmt::Display for Generated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tools, files, changed } = self;
        let changed = if changed.is_empty() { "nothing changed".to_owned() } else { names(changed) };
        write!(f, "{tools} tools, {files} files: {changed}")
    }
}
