//! The documents of a contract that people review. They depend on the contract alone, not on clock,
//! environment or the order of files.

use crate::model::{Contract, ErrorCode, Http, ToolSpec};
use crate::reference::{name_fields, states, table};
use crate::{
    ContractRecord, description, editor, input_schema, openapi, output_schema, reference, schema_text, sentences,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use toolwarrant_common::{ListForm, ToolItem};

const RECORD_HEAD: &str = "\
# The record of the contract in force: every fact that a client, an application or an operator can rely on. `gen` writes it.
# `contract check` compares it with the released one.

";

#[must_use]
pub fn documents(contract: &Contract) -> BTreeMap<PathBuf, String> {
    let tools = contract.tools().map(|tool| {
        let text = format!("{:#}\n", tool_json(contract, tool));
        (format!("tools/{}.json", tool.name).into(), text)
    });
    let editor = editor::schemas(contract).into_iter();
    let editor = editor.map(|(name, schema)| (format!("editor/{name}.schema.json").into(), format!("{schema:#}\n")));
    let pages = [
        ("tools.md", tools_md(contract)),
        ("errors.md", errors_md(contract)),
        ("openapi.json", format!("{:#}\n", openapi(contract))),
        ("contract.toml", RECORD_HEAD.to_owned() + &ContractRecord::of(contract).text()),
    ];
    tools.chain(editor).chain(pages.map(|(name, text)| (name.into(), text))).collect()
}

/// Returns exactly the bytes on the wire.
#[must_use]
pub fn list_item(contract: &Contract, tool: &ToolSpec, form: ListForm) -> String {
    let [input, output] = [input_schema(tool), output_schema(tool)].map(|schema| schema_text(&schema));
    let (description, output) = (description(contract, tool), tool.body.is_none().then_some(&*output));
    let ToolSpec { name, title, .. } = tool;
    ToolItem { name, title, description: &description, input: &input, output, hints: tool.hints() }.item(form)
}

fn tool_json(contract: &Contract, tool: &ToolSpec) -> Value {
    let mut shown = json!({
        "name": tool.name,
        "title": tool.title,
        // One item for each sentence, so that a review sees which one has changed.
        "description": sentences::split(&description(contract, tool)),
        "inputSchema": input_schema(tool),
        "outputSchema": output_schema(tool),
        "annotations": tool.hints().annotations(&tool.title),
    });
    if let (Some(_), Some(members)) = (&tool.body, shown.as_object_mut()) {
        members.shift_remove("outputSchema");
    }
    shown
}

fn twin(Http { method, path }: &Http) -> String {
    format!("{method} {path}")
}

fn tools_md(contract: &Contract) -> String {
    let mut out =
        "# Tools\n\nGenerated from the contract. [errors.md](errors.md) says how to read the failures.\n".to_owned();
    let rows = contract.tools().map(|tool| {
        let (ToolSpec { name, title, .. }, effect) = (tool, tool.effect.name());
        let callers = contract.callers(tool).map(|held| format!("`{held}`")).collect::<Vec<_>>().join(", ");
        let needs = tool.target.as_ref().and_then(|target| target.requires.as_ref());
        let needs = needs.map(|name| format!("`{name}`")).unwrap_or_default();
        let twin = tool.http.as_ref().map(|http| format!("`{}`", twin(http))).unwrap_or_default();
        let with = tool.toolset.as_ref().map(|toolset| format!(", with `--toolsets {}`", toolset.name));
        [
            format!("[`{name}`](#{name}){}", with.unwrap_or_default()),
            title.clone(),
            callers,
            needs,
            effect.to_owned(),
            twin,
        ]
    });
    table(&mut out, "| tool | what it does | any permission of | needs | effect | HTTP twin |", rows);
    for tool in contract.tools() {
        let _ = write!(out, "\n## {}\n\n{}", tool.name, reference(contract, tool));
    }
    if !contract.states.is_empty() {
        let _ = write!(out, "\n## States of a task\n{}", states(contract));
    }
    out
}

fn errors_md(contract: &Contract) -> String {
    let mut out = String::from(
        "# Errors\n\nGenerated from the contract. What comes of a tool call on `/mcp` is always a result with HTTP status 200; \
         the column is for failures of the request itself, and for the signed twin under `/v1`.\n\n\
         A message is what was wrong, or the meaning, and then what to do, in the sentences that the key can act on. `{field}` stands \
         for the value of a field. Each error that is retryable carries `retry_after_seconds`: those of the table, where the server \
         knows nothing better.\n",
    );
    let rows = contract.errors.iter().map(|error| {
        let ErrorCode { code, http, jsonrpc, meaning, remedy, .. } = &**error;
        let after = if error.retryable { format!("{} s", error.retry_after_seconds) } else { "never".to_owned() };
        let (code, [http, jsonrpc]) = (format!("`{code}`"), [http.to_string(), jsonrpc.to_string()]);
        [code, after, http, jsonrpc, meaning.clone(), remedy.clone(), name_fields(error)]
    });
    table(&mut out, "| code | retry after | HTTP | JSON-RPC | meaning | what to do | carries |", rows);
    out
}
