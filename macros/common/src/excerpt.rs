//! A problem with the lines of its file, rendered in the style of rustc.

use crate::visible::escape_line;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::borrow::Cow;
use std::ops::Range;

/// A problem with a place in a file, for display.
#[derive(Debug)]
pub struct Excerpt<'a> {
    /// The path of the file as it is displayed.
    pub path: &'a str,
    /// The text of the file.
    pub text: &'a str,
    /// The place, in bytes within the text.
    pub span: Range<usize>,
    /// The id of the rule that is broken, if there is one.
    pub id: Option<&'a str>,
    /// The mistake.
    pub message: &'a str,
    /// The allowed values.
    pub help: Option<&'a str>,
}

/// The most bytes of a line that is shown, and of a message.
const SHOWN_MAX: usize = 1_000;

/// Renders message, place, the lines of the file and help in the style of rustc, without colour.
/// Leaves out lines that are too long to be read, and the end of such a message.
#[must_use]
pub fn excerpt(Excerpt { path, text, span, id, message, help }: &Excerpt<'_>) -> String {
    let title = Level::ERROR.primary_title(escape_line(&shorten(message)));
    let title = match *id {
        Some(id) => title.id(id),
        None => title,
    };
    let (before, path) = (&text[..span.start], escape_line(path));
    let from = before.rfind('\n').map_or(0, |at| at + 1);
    let to = text[span.end..].find('\n').map_or(text.len(), |at| span.end + at);
    let mut groups = if text[from..to].lines().all(|line| line.len() <= SHOWN_MAX) {
        vec![title.element(Snippet::source(*text).path(path).annotation(AnnotationKind::Primary.span(span.clone())))]
    } else {
        let (line, column) = line_column(text, span.start);
        vec![title.element(Origin::path(path).line(line).char_column(column))]
    };
    groups.extend(help.map(|help| Group::with_title(Level::HELP.secondary_title(escape_line(help)))));
    Renderer::plain().render(&groups)
}

/// Returns the beginning of a message that repeats very long text from outside.
#[must_use]
pub fn shorten(message: &str) -> Cow<'_, str> {
    let end = message.floor_char_boundary(SHOWN_MAX);
    if end == message.len() { message.into() } else { format!("{}…", &message[..end]).into() }
}

/// Returns the line and the column of a byte offset, both from 1; the column is in characters.
#[must_use]
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
