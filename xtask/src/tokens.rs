//! The table of `cargo xtask gen`: how long the texts are that agents read, and how many tokens they cost.

use anyhow::Result;
use std::fmt::Write;
use tiktoken_rs::o200k_base;
use toolwarrant_spec::model::{Contract, ReadersSpec, ToolSpec};
use toolwarrant_spec::{description, input_schema, instructions_text, listed_item};

/// Returns a row for each tool, one for the whole list, and one for the instructions. Tokens are those of `o200k_base`; those of a
/// tool are of its whole item in the list.
pub(crate) fn table(contract: &Contract) -> Result<String> {
    let encoding = o200k_base()?;
    let ReadersSpec { description: of_tool, argument, list, instructions, lead, brief: _ } = &contract.readers;
    let of_tool = format!("{of_tool} characters, {argument} a property");
    let mut out = format!("{:16}{:>11}{:>18}{:>8}  limit\n", "", "characters", "longest property", "tokens");
    let mut row = |name: &str, characters: usize, property: &str, tokens: usize, limit: &str| {
        let _ = writeln!(out, "{name:16}{characters:>11}{property:>18}{tokens:>8}  {limit}");
    };
    let mut items = Vec::new();
    for tool in contract.tools() {
        let item = listed_item(contract, tool);
        let characters = description(contract, tool).chars().count();
        row(&tool.name, characters, &longest_property(tool).to_string(), encoding.count_ordinary(&item), &of_tool);
        items.push(item);
    }
    for (name, text, limit) in [
        ("tools/list", format!("{{\"tools\":[{}]}}", items.join(",")), format!("{list} characters")),
        ("instructions", instructions_text(contract), format!("{instructions} characters, {lead} in the first line")),
    ] {
        row(name, text.chars().count(), "", encoding.count_ordinary(&text), &limit);
    }
    Ok(out)
}

/// Returns the number of characters in the longest description of an argument.
fn longest_property(tool: &ToolSpec) -> usize {
    let schema = input_schema(tool);
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter_map(|(_, schema)| Some(schema["description"].as_str()?.chars().count())).max().unwrap_or(0)
}
