//! A page without the shell around it, which all pages share.

use crate::answer::words;
use crate::markup::Markup;
use askama::Template;
use std::time::Duration;
use toolwarrant_operator::{FailureCode, OperatorError};

/// A page without its shell.
pub(crate) struct Rendered {
    pub(crate) status: u16,
    pub(crate) title: String,
    pub(crate) main: Markup,
    /// The time after which a window that shows it looks for a change.
    pub(crate) live: Option<Duration>,
    /// The words of the command with the same answer.
    pub(crate) words: Vec<String>,
}

/// A link to an act on what a page shows, or to a list of what belongs to it.
pub(crate) struct HeadingAct {
    pub(crate) path: String,
    pub(crate) text: String,
    /// True if the act cannot be undone.
    pub(crate) is_final: bool,
}

impl HeadingAct {
    pub(crate) fn of(path: String, text: &str) -> Self {
        Self { path, text: words(text), is_final: false }
    }
}

/// The head of a page.
#[derive(Default)]
pub(crate) struct Heading {
    pub(crate) title: String,
    pub(crate) acts: Vec<HeadingAct>,
    pub(crate) error: Option<String>,
}

/// A page with one body.
#[derive(Template)]
#[template(path = "pages/single.html")]
pub(crate) struct SinglePage {
    pub(crate) heading: Heading,
    pub(crate) body: Markup,
}

impl Heading {
    pub(crate) fn of(title: &str) -> Self {
        Self { title: title.to_owned(), ..Self::default() }
    }
}

impl Rendered {
    pub(crate) fn of(title: &str, template: &impl Template) -> Self {
        let main = Markup::of(template);
        Self { status: 200, title: title.to_owned(), main, live: None, words: Vec::new() }
    }

    pub(crate) fn with_words(mut self, words: &[&str]) -> Self {
        self.words = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub(crate) fn missing() -> Self {
        Self::failure(&OperatorError::not_found("the console has no such page"))
    }

    pub(crate) fn failure(error: &OperatorError) -> Self {
        let (status, title) = match error.code {
            FailureCode::NotFound => (404, "Not found"),
            FailureCode::NotAllowed => (403, "Not allowed"),
            FailureCode::Usage | FailureCode::Refused => (400, "Refused"),
            FailureCode::Unavailable => (503, "Not available"),
        };
        let heading = Heading { error: Some(error.message.clone()), ..Heading::of(title) };
        Self { status, ..Self::of(title, &SinglePage { heading, body: Markup::default() }) }
    }
}
