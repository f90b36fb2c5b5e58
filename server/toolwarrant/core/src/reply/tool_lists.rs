//! The view of tools in `tools/list`.

use crate::catalogue::{ToolDef, ToolHints};
use crate::revision::Revision;
use bytes::Bytes;
use serde_json::{Value, json};

/// One JSON list for revisions without titles and output schemas, and one for those with.
#[derive(Clone, Debug)]
pub(crate) struct ToolLists {
    plain: Bytes,
    with_outputs: Bytes,
}

impl ToolLists {
    pub(crate) fn of(tools: &[&ToolDef]) -> Self {
        let (plain, with_outputs): (Vec<_>, Vec<_>) = tools.iter().map(|tool| describe_tool(tool)).unzip();
        let [plain, with_outputs] = [plain, with_outputs].map(|items| format!("[{}]", items.join(",")).into());
        Self { plain, with_outputs }
    }

    pub(crate) fn of_revision(&self, revision: Revision) -> &Bytes {
        if revision.features().structured { &self.with_outputs } else { &self.plain }
    }
}

fn describe_tool(tool: &ToolDef) -> (String, String) {
    let ToolHints { read_only, destructive, idempotent } = tool.hints;
    let annotations = json!({
        "title": tool.title,
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": true,
    });
    let [name, title, description] = [tool.name, tool.title, tool.description].map(Value::from);
    let ToolDef { input_schema: input, output_schema: output, .. } = tool;
    let item = |title: &str, output: &str| {
        format!(
            "{{\"name\":{name}{title},\"description\":{description},\"inputSchema\":{input}{output},\"annotations\":{annotations}}}"
        )
    };
    (item("", ""), item(&format!(",\"title\":{title}"), &format!(",\"outputSchema\":{output}")))
}
