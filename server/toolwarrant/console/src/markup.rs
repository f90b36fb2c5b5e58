//! HTML that a template has made. Templates escape every other value.

use askama::Template;
use std::fmt;

/// HTML from a template.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup(String);

impl Markup {
    pub(crate) fn of(template: &impl Template) -> Self {
        Self(template.render().unwrap_or_else(|error| {
            tracing::error!(%error, "a template of the console failed");
            String::new()
        }))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Markup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Markup {}
