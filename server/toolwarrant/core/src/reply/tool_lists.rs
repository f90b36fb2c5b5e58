//! The view of tools in `tools/list`.

use crate::catalogue::{ToolDef, ToolHints};
use crate::revision::Revision;
use bytes::Bytes;
use serde_json::{Value, json};

/// JSON lists.
#[derive(Clone, Debug)]
pub(crate) struct ToolLists {
    /// For revisions without titles and output schemas.
    plain: Bytes,
    with_outputs: Bytes,
    /// For hosts that follow tasks. A result of theirs is the end of a task, which does not fit the
    /// output schema of the tool that made it, so such tools have none.
    followed: Bytes,
}

impl ToolLists {
    pub(crate) fn of(tools: &[&ToolDef]) -> Self {
        let list = |describe: &dyn Fn(&ToolDef) -> String| {
            let items: Vec<_> = tools.iter().map(|tool| describe(tool)).collect();
            format!("[{}]", items.join(",")).into()
        };
        Self {
            plain: list(&|tool| describe_tool(tool, false, false)),
            with_outputs: list(&|tool| describe_tool(tool, true, true)),
            followed: list(&|tool| describe_tool(tool, true, tool.task.is_none())),
        }
    }

    pub(crate) fn of_revision(&self, revision: Revision, follows: bool) -> &Bytes {
        match (revision.features().structured, follows) {
            (false, _) => &self.plain,
            (true, false) => &self.with_outputs,
            (true, true) => &self.followed,
        }
    }
}

fn describe_tool(tool: &ToolDef, titled: bool, with_output: bool) -> String {
    let ToolHints { read_only, destructive, idempotent, open_world } = tool.hints;
    let annotations = json!({
        "title": tool.title,
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": open_world,
    });
    let [name, title, description] = [tool.name, tool.title, tool.description].map(Value::from);
    let ToolDef { input_schema: input, output_schema: output, .. } = tool;
    let title = if titled { format!(",\"title\":{title}") } else { String::new() };
    let output = if with_output && tool.body.is_none() { format!(",\"outputSchema\":{output}") } else { String::new() };
    format!(
        "{{\"name\":{name}{title},\"description\":{description},\"inputSchema\":{input}{output},\"annotations\":{annotations}}}"
    )
}
