//! The page of a task: its picture, its evidence, why it ended so, and its events.

use crate::answer::{Cell, cells, has_rows, words};
use crate::markup::Markup;
use crate::pictures::timeline::{Timeline, TimelineStep};
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use serde_json::Value;
use std::time::Duration;
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
    steps: Vec<(String, Vec<Cell>, String, String)>,
}

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Members that the page shows in another way.
const ELSEWHERE: [&str; 7] = ["status", "why", "meaning", "timeline", "evidence", "arguments", "before"];

impl ConsoleVisit<'_> {
    pub(crate) async fn task(&self, id: &str) -> Rendered {
        let asked = ["task", "show", "--", id];
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
        let picture = Timeline::of(&task, self.console.clock.now());
        let step = |TimelineStep { number, at, lane, what, .. }: &TimelineStep| {
            let number = number.map(|number| number.to_string()).unwrap_or_default();
            (number, cells(catalogue, "at", &Value::from(at.to_string())), lane.clone(), what.clone())
        };
        let steps = picture.iter().flat_map(|picture| &picture.steps).map(step).collect();
        let page = TaskPage {
            heading: Heading::of(&format!("{} on {target}", text("tool"))),
            status: cells(catalogue, "status", &task["status"]),
            summary: facts
                .chain(arguments.filter(|(name, _)| task[name.as_str()].is_null()))
                .map(|(name, value)| of(name, value))
                .collect(),
            why: text("why"),
            meaning: text("meaning"),
            picture: picture.map(|picture| Markup::of(&picture)).unwrap_or_default(),
            evidence: list_evidence(&task),
            steps,
        };
        let title = format!("{} on {target}: {}", text("tool"), text("status"));
        let live = task["finished_at"].is_null().then_some(LOOK_EVERY);
        Rendered { live, ..Rendered::of(&title, &page).with_words(&asked) }
    }
}

/// Returns the reading before the send, what a success would be, and what the latest reading found.
fn list_evidence(task: &Value) -> Vec<(&'static str, String)> {
    let timeline = task["timeline"].as_array().into_iter().flatten().rev();
    let latest = timeline.map(|event| &event["event"]["event"]["probed"][0]).find(|probed| !probed.is_null());
    let of_latest = |name: &str| task["evidence"].get(name).or_else(|| latest.map(|latest| &latest[name]));
    let found =
        [("before", task.get("before")), ("expected", of_latest("expected")), ("observed", of_latest("observed"))];
    let found = found.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_null())?)));
    found.map(|(name, value)| (name, render::cell(value))).collect()
}
