//! The page of a task: its picture, its evidence, why it ended so, and its events.

use super::{Heading, Rendered};
use crate::answer::{Cell, cells, words};
use crate::markup::Markup;
use crate::visit::ConsoleVisit;
use askama::Template;
use serde_json::Value;
use toolwarrant_operator::render;

#[derive(Template)]
#[template(path = "pages/task.html")]
struct TaskPage {
    heading: Heading,
    status: Vec<Cell>,
    summary: Vec<(String, Vec<Cell>)>,
    why: String,
    meaning: String,
    picture: Markup,
    evidence: Vec<(&'static str, String)>,
    events: Vec<(Vec<Cell>, String, String)>,
}

/// Members that the page shows in another way.
const ELSEWHERE: [&str; 7] = ["status", "why", "meaning", "timeline", "evidence", "arguments", "before"];

impl ConsoleVisit<'_> {
    pub(crate) async fn task(&self, id: &str) -> Rendered {
        let asked = ["task", "show", id];
        let task = match self.ask(&asked).await {
            Ok(task) => task,
            Err(error) => return Rendered::failure(&error),
        };
        let catalogue = self.console.catalogue;
        let text = |name: &str| task[name].as_str().unwrap_or_default().to_owned();
        let target = catalogue.tool(&text("tool")).and_then(|tool| tool.target.as_ref());
        let target = target.map_or_else(String::new, |target| text(target.arg)) + &text("target");
        let of = |name: &str, value: &Value| (words(name), cells(catalogue, name, value));
        let facts = task.as_object().into_iter().flatten();
        let facts =
            facts.filter(|(name, value)| !ELSEWHERE.contains(&name.as_str()) && !value.is_null() && !has_rows(value));
        let arguments = task["arguments"].as_object().into_iter().flatten();
        let timeline = task["timeline"].as_array().into_iter().flatten();
        let event = |event: &Value| {
            (cells(catalogue, "at", &event["at"]), render::cell(&event["phase"]), render::cell(&event["what"]))
        };
        let evidence = [
            ("before", &task["before"]),
            ("expected", &task["evidence"]["expected"]),
            ("observed", &task["evidence"]["observed"]),
        ];
        let evidence = evidence.into_iter().filter(|(_, value)| !value.is_null());
        let page = TaskPage {
            heading: Heading::of(&format!("{} on {target}", text("tool"))),
            status: cells(catalogue, "status", &task["status"]),
            summary: facts.chain(arguments).map(|(name, value)| of(name, value)).collect(),
            why: text("why"),
            meaning: text("meaning"),
            picture: Markup::default(),
            evidence: evidence.map(|(name, value)| (name, render::cell(value))).collect(),
            events: timeline.map(event).collect(),
        };
        let title = format!("{} on {target}: {}", text("tool"), text("status"));
        let is_live = task["finished_at"].is_null();
        Rendered { is_live, ..Rendered::of(&title, &page).with_words(&asked) }
    }
}

fn has_rows(value: &Value) -> bool {
    value.as_array().is_some_and(|rows| rows.iter().any(Value::is_object))
}
