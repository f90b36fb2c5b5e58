//! An item of `tools/list`: the compiler bounds its size, and the server sends it.

use serde_json::{Value, json};

/// The hints of `tools/list`, as MCP defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolHints {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

impl ToolHints {
    pub const READ: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: true };

    pub const ISSUE: Self = Self { read_only: false, idempotent: false, ..Self::READ };

    #[must_use]
    pub const fn act(destructive: bool, idempotent: bool, open_world: bool) -> Self {
        Self { read_only: false, destructive, idempotent, open_world }
    }

    #[must_use]
    pub const fn task(idempotent: bool) -> Self {
        Self::act(true, idempotent, true)
    }

    #[must_use]
    pub fn annotations(self, title: &str) -> Value {
        let Self { read_only, destructive, idempotent, open_world } = self;
        json!({
            "title": title,
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListForm {
    /// For revisions without titles and output schemas.
    Plain,
    WithOutputs,
}

/// A tool in `tools/list`. Its schemas are JSON.
#[derive(Clone, Copy, Debug)]
pub struct ToolItem<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub input: &'a str,
    pub output: Option<&'a str>,
    pub hints: ToolHints,
}

impl ToolItem<'_> {
    /// Returns exactly the bytes on the wire.
    #[must_use]
    pub fn item(self, form: ListForm) -> String {
        let Self { name, title, description, input, output, hints } = self;
        let annotations = hints.annotations(title);
        let [name, title, description] = [name, title, description].map(Value::from);
        let (title, output) = match form {
            ListForm::Plain => (String::new(), String::new()),
            ListForm::WithOutputs => {
                let output = output.map(|output| format!(",\"outputSchema\":{output}"));
                (format!(",\"title\":{title}"), output.unwrap_or_default())
            }
        };
        format!(
            "{{\"name\":{name}{title},\"description\":{description},\"inputSchema\":{input}{output},\"annotations\":{annotations}}}"
        )
    }
}
