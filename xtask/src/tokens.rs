//! The table of `cargo xtask gen`: lengths and costs in tokens of the texts that agents read.

use anyhow::Result;
use std::fmt::Write;
use tiktoken_rs::o200k_base;
use toolwarrant_reader::model::{Contract, ReadersSpec, ToolSpec};
use toolwarrant_reader::{ListForm, description, input_schema, instructions_text, list_item};

/// Counts the tokens of a tool's whole item in the list without output schemas.
pub(crate) fn table(contract: &Contract) -> Result<String> {
    let encoding = o200k_base()?;
    let ReadersSpec {
        description: of_tool,
        argument,
        list: list_most,
        list_with_outputs,
        instructions,
        lead,
        brief: _,
    } = &contract.readers;
    let of_tool = format!("{of_tool} characters, {argument} a property");
    let mut out = format!("{:16}{:>11}{:>18}{:>8}  limit\n", "", "characters", "longest property", "tokens");
    let mut row = |name: &str, characters: usize, property: &str, tokens: usize, limit: &str| {
        let _ = writeln!(out, "{name:16}{characters:>11}{property:>18}{tokens:>8}  {limit}");
    };
    for tool in contract.tools() {
        let tokens = encoding.count_ordinary(&list_item(contract, tool, ListForm::Plain));
        let characters = description(contract, tool).chars().count();
        row(&tool.name, characters, &longest_property(tool).to_string(), tokens, &of_tool);
    }
    let listed = |form, toolset, such: &dyn Fn(&ToolSpec) -> bool| {
        let tools = contract.tools_with(toolset).filter(|tool| such(tool));
        let items: Vec<_> = tools.map(|tool| list_item(contract, tool, form)).collect();
        format!("{{\"tools\":[{}]}}", items.join(","))
    };
    let mut texts = Vec::new();
    let mut list = |name: &str, toolset, [plain, with_outputs]: [u32; 2]| {
        for (name, form, limit) in
            [(name, ListForm::Plain, plain), ("  with outputs", ListForm::WithOutputs, with_outputs)]
        {
            texts.push((name.to_owned(), listed(form, toolset, &|_| true), format!("{limit} characters")));
        }
    };
    list("tools/list", None, [*list_most, *list_with_outputs]);
    for toolset in &contract.toolsets {
        list(&format!("  {}", toolset.name), Some(toolset), [toolset.list, toolset.list_with_outputs]);
    }
    texts.extend(contract.permissions.iter().map(|held| {
        let list = listed(ListForm::Plain, None, &|tool| held.grants.contains(&tool.permission.index));
        (format!("  {}", held.name), list, String::new())
    }));
    let limit = format!("{instructions} characters, {lead} in the first line");
    texts.push(("instructions".to_owned(), instructions_text(contract), limit));
    for (name, text, limit) in texts {
        row(&name, text.chars().count(), "", encoding.count_ordinary(&text), &limit);
    }
    Ok(out)
}

fn longest_property(tool: &ToolSpec) -> usize {
    let schema = input_schema(tool);
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter_map(|(_, schema)| Some(schema["description"].as_str()?.chars().count())).max().unwrap_or(0)
}
