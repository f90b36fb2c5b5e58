//! `cargo xtask gen`: writes every generated file of the repository.

use crate::{rules, tokens};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toolwarrant_common::{read_text, table_row};
use toolwarrant_reader::model::{Contract, ToolSpec};
use toolwarrant_reader::{GenerateError, Generated, Mode, generate, load, replace};

pub(crate) const SPEC: &str = "spec";

const README: &str = "README.md";

const TABLE: (&str, &str) = ("<!-- written by `cargo xtask gen` -->\n", "<!-- until here -->\n");

pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let spec = root.join(SPEC);
    let contract = load(&spec)?;
    let wanted = files(root, &contract)?;
    let is_new = |(path, text): &(&PathBuf, &String)| read_text(&root.join(path)).ok().as_ref() != Some(*text);
    let changed: Vec<_> = wanted.iter().filter(is_new).collect();
    let mut names: Vec<_> = changed.iter().map(|(path, _)| (*path).clone()).collect();
    let mode = if check { Mode::Check } else { Mode::Write };
    let Generated { tools, files, changed: stale } = match generate(&spec, mode) {
        Err(GenerateError::Stale(stale)) => Generated { tools: 0, files: 0, changed: stale },
        other => other?,
    };
    names.extend(stale);
    names.sort();
    names.dedup();
    if check && !names.is_empty() {
        let names: Vec<_> = names.iter().map(|path| path.display().to_string()).collect();
        bail!("stale: {}; run `cargo xtask gen` and commit the result", names.join(", "));
    }
    for (path, text) in &changed {
        replace(&root.join(path), text)?;
    }
    println!("{}", Generated { tools, files: files + wanted.len(), changed: names });
    if !check {
        println!("\n{}", tokens::table(&contract)?.trim_end());
    }
    Ok(())
}

fn files(root: &Path, contract: &Contract) -> Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    files.insert("tests/RULES.md".into(), rules::page(root)?);
    let text = read_text(&root.join(README)).context(README)?;
    let parts = text.split_once(TABLE.0).and_then(|(before, rest)| Some((before, rest.split_once(TABLE.1)?.1)));
    let (before, after) = parts.with_context(|| format!("{README} has no place for its table"))?;
    files.insert(README.into(), [before, TABLE.0, &tools(contract), TABLE.1, after].concat());
    Ok(files)
}

fn tools(contract: &Contract) -> String {
    let mut table = "| tool | what it does | permission |\n|---|---|---|\n".to_owned();
    for ToolSpec { name, summary, permission, .. } in contract.tools_with(None) {
        let link = format!("[`{name}`](spec/generated/tools.md#{name})");
        table += &table_row([link, summary.clone(), format!("`{}`", permission.name)]);
    }
    table
}
