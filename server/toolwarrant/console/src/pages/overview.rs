//! The first page: how the service does, its last day, and what needs a look.

mod bars;

use crate::answer::{Cell, cells, class_of, encode, show, without, words};
use crate::lists::LISTS;
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use bars::Bars;
use serde_json::{Value, json};
use std::time::Duration;

/// The readiness is a test write.
const LOOK_EVERY: Duration = Duration::from_secs(5);

#[derive(Template)]
#[template(path = "pages/overview.html")]
struct OverviewPage {
    heading: Heading,
    concerns: Vec<Concern>,
    state: Markup,
    since: Vec<Cell>,
    days: Vec<Day>,
}

struct Concern {
    count: String,
    what: String,
    path: String,
}

/// The counts of one kind.
struct Day {
    name: &'static str,
    counts: Vec<(String, String, &'static str)>,
    picture: Markup,
}

impl ConsoleVisit<'_> {
    pub(crate) async fn overview(&self) -> Rendered {
        let asked = ["overview"];
        let answer = match self.ask(&asked).await {
            Ok(answer) => answer,
            Err(error) => return Rendered::failure(&error),
        };
        let catalogue = self.console.catalogue;
        let days = [("calls", "calls by outcome"), ("tasks", "ended tasks")];
        let day = |(member, name): (&'static str, &'static str)| {
            let counts = answer["last_day"][member].as_object().into_iter().flatten();
            let counts = counts.map(|(outcome, count)| {
                let class = class_of("status", &Value::from(outcome.as_str()));
                (words(outcome), count.to_string(), class)
            });
            let picture = Bars::of(&answer["last_day"]["periods"], member, name);
            Day { name, counts: counts.collect(), picture: Markup::of(&picture) }
        };
        let empty = answer.as_object().into_iter().flatten().filter(|(_, value)| *value == &json!([]));
        let elsewhere: Vec<_> =
            ["last_day", "needs_a_look"].into_iter().chain(empty.map(|(name, _)| &**name)).collect();
        let page = OverviewPage {
            heading: Heading::of("overview"),
            concerns: self.concerns(&answer["needs_a_look"]),
            state: show(catalogue, &without(answer.clone(), &elsewhere)),
            since: cells(catalogue, "since", &answer["last_day"]["since"]),
            days: days.map(day).into(),
        };
        Rendered { live: Some(LOOK_EVERY), ..Rendered::of("overview", &page).with_words(&asked) }
    }

    /// Adds what the console itself knows: the latest result of the doctor and of the verification.
    fn concerns(&self, found: &Value) -> Vec<Concern> {
        let examined =
            [("doctor", "healthy", "the doctor found faults"), ("verify", "sound", "the audit trail has faults")];
        let examined = examined.into_iter().filter_map(|(path, member, what)| {
            let (_, answer) = self.console.examined.latest(path)?;
            let faulty = answer[member] == false;
            faulty.then(|| Concern { count: String::new(), what: what.to_owned(), path: format!("/{path}") })
        });
        let concern = |concern: &Value| Concern {
            count: concern["count"].to_string(),
            what: concern["what"].as_str().unwrap_or_default().to_owned(),
            path: path_of(concern["see"].as_str().unwrap_or_default()),
        };
        found.as_array().into_iter().flatten().map(concern).chain(examined).collect()
    }
}

/// Returns the page of a command that lists.
fn path_of(command: &str) -> String {
    let list = LISTS.iter().find(|list| command.starts_with(&list.words.join(" ")));
    let list = list.map(|list| format!("/{}?", list.path));
    let fleet = command.split_once(" list").map(|(resource, _)| format!("/fleet/{resource}?as=table&"));
    let flags = command.split(" --").skip(1).filter_map(|flag| flag.split_once('='));
    let query: Vec<_> = flags.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    list.or(fleet).unwrap_or_else(|| "/".to_owned()) + &query.join("&")
}
