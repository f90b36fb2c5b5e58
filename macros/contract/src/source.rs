//! The files of a contract as text, and the place of a fact in them.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toolwarrant_common::{escape_line, line_column};

#[derive(Debug)]
pub(crate) struct File {
    /// `spec/service.toml`.
    pub(crate) shown: String,
    pub(crate) text: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) file: usize,
    pub(crate) span: Range<usize>,
    /// Otherwise it is the nearest part around the fact.
    pub(crate) is_exact: bool,
}

impl File {
    pub(crate) fn line(&self, Spot { span, .. }: &Spot) -> usize {
        line_column(&self.text, span.start).0
    }
}

pub(crate) fn read_files(folder: &Path, paths: &[PathBuf]) -> Vec<File> {
    let read =
        |path: &PathBuf| File { shown: display_path(folder, path), text: fs::read_to_string(path).unwrap_or_default() };
    paths.iter().map(read).collect()
}

pub(crate) fn display_path(folder: &Path, path: &Path) -> String {
    let base = folder.parent().unwrap_or(folder);
    escape_line(&path.strip_prefix(base).unwrap_or(path).to_string_lossy())
}

pub(crate) struct Places<'f> {
    tables: Vec<(&'f str, DeValue<'f>)>,
}

impl<'f> Places<'f> {
    pub(crate) fn of(files: &'f [File]) -> Self {
        let table = |File { shown, text }: &'f File| {
            (shown.as_str(), DeValue::Table(DeTable::parse(text).map(toml::Spanned::into_inner).unwrap_or_default()))
        };
        Self { tables: files.iter().map(table).collect() }
    }

    /// Finds the fact, or the nearest part around it. A fact of the framework alone has no place.
    pub(crate) fn find(&self, fact: &str) -> Option<Spot> {
        let parts: Vec<_> = fact.split('.').collect();
        let in_file = |(file, (shown, table)): (usize, &(&str, DeValue<'_>))| {
            let known = match &*parts {
                ["reserved", names @ ..] if shown.ends_with("reserved.toml") => names,
                parts => parts,
            };
            let (left, span) = walk(table, known, 0..0);
            // The first part is only the kind of the fact.
            (left == 0 || left + 2 <= parts.len()).then_some((left, Spot { file, span, is_exact: left == 0 }))
        };
        self.tables.iter().enumerate().filter_map(in_file).min_by_key(|(left, _)| *left).map(|(_, spot)| spot)
    }
}

fn walk(value: &DeValue<'_>, parts: &[&str], at: Range<usize>) -> (usize, Range<usize>) {
    let Some((part, rest)) = parts.split_first() else { return (0, at) };
    match value {
        DeValue::Table(table) => {
            let spelt = |keys: &str| {
                let (table, key) = match keys.split_once('.') {
                    Some((outer, key)) => (table.get(outer)?.get_ref().as_table()?, key),
                    None => (table, keys),
                };
                table.get_key_value(key)
            };
            let written = spellings(part).into_iter().find_map(|keys| spelt(&keys));
            match written {
                Some((key, value)) => {
                    let is_whole = matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
                    walk(value.get_ref(), rest, if is_whole { key.span() } else { value.span() })
                }
                None => (parts.len(), at),
            }
        }
        DeValue::Array(items) => {
            let is_meant = |(n, item): &(usize, &Spanned<DeValue<'_>>)| match item.get_ref() {
                DeValue::Table(table) => table.get("name").and_then(|name| name.get_ref().as_str()) == Some(part),
                item => item.as_str() == Some(part) || part.parse() == Ok(n + 1),
            };
            match items.iter().enumerate().find(is_meant).map(|(_, item)| item) {
                Some(item) => {
                    let name = item.get_ref().as_table().and_then(|table| table.get("name"));
                    walk(item.get_ref(), rest, name.unwrap_or(item).span())
                }
                None => (parts.len(), at),
            }
        }
        _ => (parts.len(), at),
    }
}

fn spellings(part: &str) -> Vec<String> {
    let others: &[&str] = match part {
        "argument" => &["args", "arg"],
        "file" => &["service.tools"],
        "resend" => &["idempotent"],
        "revision" => &["protocol.served"],
        "text" => &["secret", "untrusted", "ours"],
        _ => &[],
    };
    let plural = [part.to_owned(), format!("{part}s")];
    plural.into_iter().chain(others.iter().map(|&other| other.to_owned())).collect()
}
