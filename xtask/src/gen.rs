//! `cargo xtask gen`: `spec/generated` by the framework's own `gen`, the schemas for editors anew, `tests/RULES.md`, and the
//! README's table of tools.

use crate::{rules, tokens};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use toolwarrant_spec::model::{Contract, ToolSpec};
use toolwarrant_spec::{GenerateError, Generated, Mode, editor_schemas, generate, load, replace};

/// The contract of the product.
const SPEC: &str = "spec";

const README: &str = "README.md";

/// Between these two lines the README is generated.
const TABLE: (&str, &str) = ("<!-- written by `cargo xtask gen` -->\n", "<!-- until here -->\n");

/// Writes what has changed, removes what is no longer generated, and shows what the texts cost; with `check` only says what would
/// change, and fails.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let spec = root.join(SPEC);
    let contract = load(&spec).map_err(|report| anyhow::anyhow!("{report}"))?;
    let wanted = files(root, &contract)?;
    let is_new = |(path, text): &(&PathBuf, &String)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(*text);
    let changed: Vec<_> = wanted.iter().filter(is_new).collect();
    let names = || changed.iter().map(|(path, _)| (*path).clone());
    let mode = if check { Mode::Check } else { Mode::Write };
    let mut generated = match generate(&spec, mode) {
        Err(GenerateError::Stale(mut stale)) => {
            stale.extend(names());
            return Err(stale_error(stale));
        }
        other => other?,
    };
    if check && !changed.is_empty() {
        return Err(stale_error(names().collect()));
    }
    for (path, text) in &changed {
        replace(&root.join(path), text)?;
    }
    let Generated { tools: _, files, changed: all } = &mut generated;
    // The schemas for editors are counted already.
    *files += wanted.len() - editor_schemas().len();
    all.extend(names());
    all.sort();
    all.dedup();
    println!("{generated}");
    if !check {
        println!("\n{}", tokens::table(&contract)?.trim_end());
    }
    Ok(())
}

fn stale_error(mut stale: Vec<PathBuf>) -> anyhow::Error {
    stale.sort();
    stale.dedup();
    let names: Vec<_> = stale.iter().map(|path| path.display().to_string()).collect();
    anyhow::anyhow!("not what its source says: {}; run `cargo xtask gen` and commit the result", names.join(", "))
}

/// Every file that this command knows how to make and the framework does not: its path and its text.
///
/// The framework has the schemas for editors as it was compiled with; here they are made from the structs.
fn files(root: &Path, contract: &Contract) -> Result<BTreeMap<PathBuf, String>> {
    let editor = editor_schemas().into_iter();
    let mut files: BTreeMap<PathBuf, String> =
        editor.map(|(name, text)| (format!("{SPEC}/generated/editor/{name}.schema.json").into(), text)).collect();
    files.insert("tests/RULES.md".into(), rules::page(root)?);
    files.insert(README.into(), readme(contract, &fs::read_to_string(root.join(README)).context(README)?)?);
    Ok(files)
}

/// The README with its table of tools.
fn readme(contract: &Contract, text: &str) -> Result<String> {
    let parts = text.split_once(TABLE.0).and_then(|(before, rest)| Some((before, rest.split_once(TABLE.1)?.1)));
    let (before, after) = parts.with_context(|| format!("{README} has no place for the table of tools"))?;
    let mut table = "| tool | what it does | permission |\n|---|---|---|\n".to_owned();
    for ToolSpec { name, summary, permission, .. } in contract.tools() {
        let _ = writeln!(table, "| [`{name}`](spec/generated/tools.md#{name}) | {summary} | `{}` |", permission.name);
    }
    Ok([before, TABLE.0, &table, TABLE.1, after].concat())
}

/// Every file below `folder`, relative to `root`.
pub(crate) fn existing(root: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.join(folder)];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(root)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}
