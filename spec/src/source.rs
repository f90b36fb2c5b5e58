//! Finding and reading the files of a contract. Knows paths and text, and nothing of what they say.

use crate::report::{Place, Report};
use crate::rules::Rule;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that every contract has, in reading order; the files of `tools/` follow by name.
pub(crate) const FILES: [&str; 4] = ["service.toml", "errors.toml", "types.toml", "reserved.toml"];

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// As messages show it: relative to the folder that holds the spec folder.
    pub(crate) shown: String,
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// What it says; empty when it could not be read.
    pub(crate) text: String,
}

/// Reads `dir`. A file that is missing or is no UTF-8 is a problem, and an empty source.
pub(crate) fn read(dir: &Path) -> (Vec<Source>, Report) {
    let mut report = Report::default();
    let mut sources = Vec::new();
    let base = dir.file_name().map_or_else(|| "spec".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut tools: Vec<PathBuf> = fs::read_dir(dir.join("tools"))
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    tools.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    tools.sort();
    for path in FILES.iter().map(|name| dir.join(name)).chain(tools) {
        let inner = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let shown = format!("{base}/{inner}");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| {
            let help = Some(format!("every contract has the files {}", FILES.join(", ")));
            let place = Place { file: sources.len(), span: 0..0 };
            report.add(Rule::Unreadable, place, format!("cannot read `{shown}`: {error}"), help);
            String::new()
        });
        sources.push(Source { shown, path, text });
    }
    (sources, report)
}

/// Line and column of a byte offset, both from 1, the column in characters.
pub(crate) fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
