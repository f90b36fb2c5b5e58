//! `cargo xtask gen`: everything under `spec/generated`, as a function of the contract alone; `tests/RULES.md`; the README's table of tools.

use crate::rules;
use anyhow::{Context, Result, bail};
use cloudphone_spec::model::{Contract, Effect, Terms, Tool};
use cloudphone_spec::{description, editor_schemas, input_schema, load, output_schema};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Holds what is a function of the contract, and nothing else.
const FOLDER: &str = "spec/generated";

const README: &str = "README.md";

/// Between these two lines the README is generated.
const TABLE: (&str, &str) = ("<!-- written by `cargo xtask gen` -->\n", "<!-- until here -->\n");

/// Writes what has changed and removes what is no longer generated; with `check` only says so, and fails.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let contract = load(&root.join("spec")).map_err(|report| anyhow::anyhow!("{report}"))?;
    let mut wanted = files(&contract)?;
    wanted.insert("tests/RULES.md".into(), rules::page(root)?);
    wanted.insert(README.into(), readme(&contract, &fs::read_to_string(root.join(README)).context(README)?)?);
    let stale = existing(root, FOLDER)?.into_iter().filter(|path| !wanted.contains_key(path)).collect::<Vec<_>>();
    let changed: Vec<_> =
        wanted.iter().filter(|(path, text)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(text)).collect();
    let names = changed.iter().map(|(path, _)| *path).chain(&stale).map(|path| path.display().to_string());
    let names = names.collect::<Vec<_>>().join(", ");
    if check && !names.is_empty() {
        bail!("not what its source says: {names}; run `cargo xtask gen` and commit the result");
    }
    for (path, text) in &changed {
        write(&root.join(path), text)?;
    }
    for path in &stale {
        fs::remove_file(root.join(path)).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let tools = contract.tools().count();
    println!("{tools} tools, {} files: {}", wanted.len(), if names.is_empty() { "nothing changed" } else { &names });
    Ok(())
}

/// Every file that is generated from the contract: its path and its text.
fn files(contract: &Contract) -> Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    for tool in contract.tools() {
        files.insert(format!("{FOLDER}/tools/{}.json", tool.name).into(), pretty(&tool_json(contract, tool))?);
    }
    for (name, schema) in editor_schemas() {
        files.insert(format!("{FOLDER}/editor/{name}.schema.json").into(), pretty(&schema.to_value())?);
    }
    files.insert(format!("{FOLDER}/tools.md").into(), tools_md(contract));
    files.insert(format!("{FOLDER}/errors.md").into(), errors_md(contract));
    Ok(files)
}

fn pretty(value: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// What goes over the wire about a tool, and what no `tools/list` shows.
fn tool_json(contract: &Contract, tool: &Tool) -> Value {
    let hints = tool.hints();
    let target = tool
        .target
        .as_ref()
        .map(|target| json!({"resource": target.resource.name, "argument": target.arg, "requires": target.requires}));
    let task = tool.task().map(|task| {
        let cases = task.cases.iter().map(|(value, terms)| (value.clone(), terms_json(terms)));
        json!({"select": task.select, "cases": cases.collect::<serde_json::Map<_, _>>(), "usually_ends": task.usually_ends})
    });
    let errors: Vec<_> =
        tool.errors.iter().map(|error| json!({"code": error.code, "retryable": error.retryable})).collect();
    let secrets: Vec<_> = tool.args.iter().filter(|field| field.secret).map(|field| &field.name).collect();
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": description(contract, tool),
        "inputSchema": input_schema(tool),
        "outputSchema": output_schema(tool),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": true,
        },
        "contract": {
            "permission": tool.permission.name,
            "target": target,
            "effect": effect(tool),
            "task": task,
            "http": format!("{} {}", tool.http.method, tool.http.path),
            "errors": errors,
            "secret_arguments": secrets,
        },
    })
}

fn terms_json(Terms { probe, idempotent, settle_seconds, deadline_seconds }: &Terms) -> Value {
    json!({
        "probe": probe.as_ref().map(|probe| &probe.name),
        "baseline": probe.as_ref().map(|probe| probe.baseline),
        "idempotent": idempotent,
        "settle_seconds": settle_seconds,
        "deadline_seconds": deadline_seconds,
    })
}

fn effect(tool: &Tool) -> &'static str {
    match tool.effect {
        Effect::Read => "read",
        Effect::Issue => "issue",
        Effect::Task(_) => "task",
    }
}

fn tools_md(contract: &Contract) -> String {
    let mut out = String::from("# Tools\n\nGenerated from the contract by `cargo xtask gen`.\n\n");
    out.push_str("| tool | what it does | permission | needs | effect | HTTP twin |\n|---|---|---|---|---|---|\n");
    for tool in contract.tools() {
        let needs = tool.target.as_ref().and_then(|target| target.requires.as_ref());
        let needs = needs.map(|name| format!("`{name}`")).unwrap_or_default();
        let _ = writeln!(
            out,
            "| [`{0}`](#{0}) | {1} | `{2}` | {needs} | {3} | `{4} {5}` |",
            tool.name,
            tool.title,
            tool.permission.name,
            effect(tool),
            tool.http.method,
            tool.http.path
        );
    }
    for tool in contract.tools() {
        let _ = writeln!(out, "\n## {}\n\n```text\n{}\n```", tool.name, description(contract, tool));
    }
    out
}

/// The README with its table of tools.
fn readme(contract: &Contract, text: &str) -> Result<String> {
    let parts = text.split_once(TABLE.0).and_then(|(before, rest)| Some((before, rest.split_once(TABLE.1)?.1)));
    let (before, after) = parts.with_context(|| format!("{README} has no place for the table of tools"))?;
    let mut table = "| tool | what it does | permission |\n|---|---|---|\n".to_owned();
    for Tool { name, summary, permission, .. } in contract.tools() {
        let _ = writeln!(table, "| [`{name}`](spec/generated/tools.md#{name}) | {summary} | `{}` |", permission.name);
    }
    Ok([before, TABLE.0, &table, TABLE.1, after].concat())
}

fn errors_md(contract: &Contract) -> String {
    let mut out = String::from(
        "# Errors\n\nGenerated from the contract by `cargo xtask gen`. What comes of a tool call on `/mcp` is always a result with \
         HTTP status 200; the column is for failures of the request itself, and for the signed twin under `/v1`.\n\n",
    );
    out.push_str(
        "| code | retryable | HTTP | JSON-RPC | meaning | what to do | carries |\n|---|---|---|---|---|---|---|\n",
    );
    for error in &contract.errors {
        let carries: Vec<_> = error.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {}. | {} |",
            error.code,
            if error.retryable { "yes" } else { "no" },
            error.http,
            error.jsonrpc,
            error.meaning,
            error.remedy,
            carries.join(", ")
        );
    }
    out
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

/// Writes a file so that a reader sees the old text or the new one, never a part.
fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().context("a generated file lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let draft = path.with_extension("draft");
    fs::write(&draft, text)
        .and_then(|()| fs::rename(&draft, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
