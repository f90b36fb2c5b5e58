//! The view of an answer as tables and facts, with ids as links: the twin of the text that the
//! command line shows.

use crate::markup::Markup;
use askama::Template;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use toolwarrant_operator::render;
use toolwarrant_operator::view::{AnswerView, Fact, PageOf, Show, Table as Rows, Tone};

/// A value as it is shown.
#[derive(Clone, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) link: Option<String>,
    /// The exact time, for a machine.
    pub(crate) time: Option<String>,
    pub(crate) class: &'static str,
}

#[derive(Template)]
#[template(path = "pages/table.html")]
struct Table<'a> {
    name: &'a str,
    head: Vec<String>,
    rows: Vec<Vec<Vec<Cell>>>,
}

#[derive(Template)]
#[template(path = "pages/facts.html")]
struct Facts {
    facts: Vec<(String, Vec<Cell>)>,
    parts: Vec<(String, Markup)>,
}

const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Writes the text as a part of a path or a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, &PLAIN).to_string()
}

/// Returns the words of a name, as a sentence begins.
pub(crate) fn words(name: &str) -> String {
    sentence(&name.replace(['_', '-'], " "))
}

/// Returns the text with a capital letter.
pub(crate) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn path_of(page: &PageOf) -> String {
    match page {
        PageOf::Task(id) => format!("/tasks/{}", encode(id)),
        PageOf::Application(name) => format!("/applications/{}", encode(name)),
        PageOf::Key(id) => format!("/keys/{}", encode(id)),
        PageOf::Resource(name) => format!("/fleet/{}", encode(name)),
        PageOf::Target { resource, id } => format!("/fleet/{}/{}", encode(resource), encode(id)),
        PageOf::Id(id) => format!("/find?id={}", encode(id)),
    }
}

/// Returns the class of a tone, which also has a mark in the stylesheet.
pub(crate) fn class_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Doubtful => "doubtful",
        Tone::Silent => "silent",
        Tone::Going => "going",
        Tone::Off => "off",
        Tone::Bad => "bad",
    }
}

/// Returns the cells of a value: several for a list.
pub(crate) fn cells(view: &AnswerView) -> Vec<Cell> {
    let cell = Cell { text: render::cell(view), ..Cell::default() };
    vec![match view {
        AnswerView::Absent => Cell::default(),
        AnswerView::List(items) if !items.is_empty() => return items.iter().flat_map(cells).collect(),
        AnswerView::Number(_) => Cell { class: "number", ..cell },
        AnswerView::Word(_, tone) => Cell { class: class_of(*tone), ..cell },
        AnswerView::Link(_, page) => Cell { link: Some(path_of(page)), ..cell },
        AnswerView::Time(time) => {
            let time = time.to_string();
            Cell { text: format!("{} {}", &time[5..10], &time[11..19]), time: Some(time), ..cell }
        }
        _ => cell,
    }]
}

/// Makes a table. Its name is for those who do not see it.
pub(crate) fn table(name: &str, rows: &impl Show) -> Markup {
    show_named(name, &rows.show())
}

/// Shows an answer whole.
pub(crate) fn show(answer: &impl Show) -> Markup {
    show_named("list", &answer.show())
}

fn show_named(name: &str, view: &AnswerView) -> Markup {
    match view {
        AnswerView::Table(Rows { head, rows }) => {
            // Rows in a row are for its own page.
            let has_rows = |n: usize| rows.iter().any(|row| matches!(row[n], AnswerView::Table(_)));
            let shown: Vec<_> = (0..head.len()).filter(|n| !has_rows(*n)).collect();
            let rows = rows.iter().map(|row| shown.iter().map(|n| cells(&row[*n])).collect()).collect();
            Markup::of(&Table { name, head: shown.iter().map(|n| words(&head[*n])).collect(), rows })
        }
        AnswerView::List(items) if items.is_empty() => Markup::of(&Table { name, head: Vec::new(), rows: Vec::new() }),
        AnswerView::Facts(facts) | AnswerView::Line(facts) => show_facts(facts),
        other => Markup::of(&Facts { facts: vec![(String::new(), cells(other))], parts: Vec::new() }),
    }
}

fn show_facts(members: &[Fact]) -> Markup {
    let (mut facts, mut parts) = (Vec::new(), Vec::new());
    for (name, view) in members.iter().filter(|(_, view)| *view != AnswerView::Absent) {
        match view {
            AnswerView::Table(_) => parts.push((words(name), show_named(name, view))),
            AnswerView::Facts(inner) if inner.iter().any(|(_, view)| matches!(view, AnswerView::Link(..))) => {
                parts.push((words(name), show_facts(inner)));
            }
            _ => facts.push((words(name), cells(view))),
        }
    }
    Markup::of(&Facts { facts, parts })
}
