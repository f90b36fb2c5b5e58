//! A problem with the lines of its file, rendered in the style of rustc.

use crate::visible::escape_line;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::borrow::Cow;
use std::ops::Range;

#[derive(Debug)]
pub struct Excerpt<'a> {
    pub path: &'a str,
    pub text: &'a str,
    pub span: Range<usize>,
    pub id: Option<&'a str>,
    pub message: &'a str,
    pub help: Option<&'a str>,
}

const SHOWN_MAX: usize = 1_000;

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

#[must_use]
pub fn shorten(message: &str) -> Cow<'_, str> {
    let end = message.floor_char_boundary(SHOWN_MAX);
    if end == message.len() { message.into() } else { format!("{}…", &message[..end]).into() }
}

/// Counts both from 1, and the column in characters.
#[must_use]
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
