//! Shows the contract as an agent sees it.

use super::{Answer, answer, refused};
use serde::Serialize;
use serde_json::Value;
use toolwarrant_core::catalogue::Catalogue;

/// A tool in a list.
#[derive(Serialize)]
struct ToolLine {
    tool: &'static str,
    permission: &'static str,
    title: &'static str,
}

/// A tool in detail.
#[derive(Serialize)]
struct ToolAnswer {
    name: &'static str,
    title: &'static str,
    permission: &'static str,
    description: &'static str,
    input_schema: Value,
    output_schema: Value,
}

/// Returns a schema as a value. The generator has written it as JSON.
fn schema(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// Lists all tools, or shows the tool of that name.
pub(crate) fn tools(catalogue: &'static Catalogue, name: Option<&str>) -> Answer {
    let Some(name) = name else {
        let tools = catalogue.tools.iter();
        let line = tools.map(|tool| ToolLine { tool: tool.name, permission: tool.permission.name, title: tool.title });
        return answer(line.collect::<Vec<_>>());
    };
    let tool = catalogue.tool(name).ok_or_else(|| {
        let names: Vec<_> = catalogue.tools.iter().map(|tool| tool.name).collect();
        refused(format!("there is no tool `{name}`; there are {}", names.join(", ")))
    })?;
    answer(ToolAnswer {
        name: tool.name,
        title: tool.title,
        permission: tool.permission.name,
        description: tool.description,
        input_schema: schema(tool.input_schema),
        output_schema: schema(tool.output_schema),
    })
}
