//! The view of tools in `tools/list`.

use crate::catalogue::ToolDef;
use crate::revision::Revision;
use bytes::Bytes;
use toolwarrant_common::{ListForm, ToolItem};

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
            plain: list(&|tool| tool.list_item().item(ListForm::Plain)),
            with_outputs: list(&|tool| tool.list_item().item(ListForm::WithOutputs)),
            followed: list(&|tool| {
                let item = tool.list_item();
                let output = item.output.filter(|_| tool.task.is_none());
                ToolItem { output, ..item }.item(ListForm::WithOutputs)
            }),
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
