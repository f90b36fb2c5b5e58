//! Shows the contract as an agent sees it.

use super::answer::{CommandAnswer, refusal};
use crate::answers::{ListedTool, ToolAnswer};
use serde_json::Value;
use toolwarrant_base::json;
use toolwarrant_core::catalogue::{Catalogue, ToolDef};

fn schema(json: &str) -> Value {
    json::read(json).unwrap_or_default()
}

pub(crate) fn tools(catalogue: &'static Catalogue, name: Option<&str>) -> CommandAnswer {
    let Some(name) = name else {
        let line = |tool: &ToolDef| ListedTool {
            tool: tool.name,
            permission: tool.permission.name,
            toolset: tool.toolset.map(|at| catalogue.toolsets[at].name),
            title: tool.title,
        };
        return Ok(catalogue.tools.iter().map(line).collect::<Vec<_>>().into());
    };
    let tool = catalogue.tool(name).ok_or_else(|| {
        let names: Vec<_> = catalogue.tools.iter().map(|tool| tool.name).collect();
        refusal(format!("there is no tool `{name}`; the tools are {}", names.join(", ")))
    })?;
    let shown = ToolAnswer {
        name: tool.name,
        title: tool.title,
        permission: tool.permission.name,
        description: tool.description,
        secret_arguments: tool.secrets,
        input_schema: schema(tool.input_schema),
        output_schema: schema(tool.output_schema),
    };
    Ok(Box::new(shown).into())
}
