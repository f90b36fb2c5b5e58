//! The first page: how the service does, its last day, and what needs a look.

mod bars;

use crate::answer::{Cell, cells, class_of, encode, table, words};
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
    state: Vec<(String, Vec<Cell>)>,
    upstreams: Markup,
    fleets: Vec<Fleet>,
    since: Vec<Cell>,
    days: Vec<Day>,
}

struct Concern {
    count: String,
    what: String,
    path: String,
}

struct Fleet {
    resource: String,
    count: String,
    states: Vec<(String, String)>,
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
        let facts = answer.as_object().into_iter().flatten();
        let facts = facts.filter(|(_, value)| !value.is_null() && !value.is_array() && !value.is_object());
        let upstreams = answer["upstreams"].as_array().map_or(&[][..], Vec::as_slice);
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
        let page = OverviewPage {
            heading: Heading::of("overview"),
            concerns: self.concerns(&answer["needs_a_look"]),
            state: facts.map(|(name, value)| (words(name), cells(catalogue, name, value))).collect(),
            upstreams: if upstreams.is_empty() {
                Markup::default()
            } else {
                table(catalogue, "upstreams", &[], upstreams)
            },
            fleets: answer["targets"].as_array().into_iter().flatten().map(describe_fleet).collect(),
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

fn describe_fleet(fleet: &Value) -> Fleet {
    let state = |(name, count): (&String, &Value)| (name.clone(), count.to_string());
    Fleet {
        resource: fleet["resource"].as_str().unwrap_or_default().to_owned(),
        count: fleet["count"].to_string(),
        states: fleet["states"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, count)| **count != json!(0))
            .map(state)
            .collect(),
    }
}
