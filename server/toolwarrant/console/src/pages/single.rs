//! Pages of one thing: an application, a key, an id of any kind, and the checks that take long.

use crate::answer::{Cell, cells, encode, show};
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered, SinglePage};
use crate::visit::ConsoleVisit;
use askama::Template;
use serde_json::Value;
use toolwarrant_operator::{OperatorError, render};

#[derive(Template)]
#[template(path = "pages/examined.html")]
struct ExaminedPage {
    heading: Heading,
    path: &'static str,
    about: &'static str,
    at: Vec<Cell>,
    body: Markup,
}

impl ConsoleVisit<'_> {
    pub(crate) async fn application(&self, name: &str) -> Rendered {
        let asked = ["app", "show", "--", name];
        let answer = self.ask(&asked).await;
        let of = format!("app={}", encode(name));
        let targets = self.console.catalogue.resource_names();
        let targets = targets.iter().flat_map(|resource| ["assign", "unassign"].map(|act| (*resource, act)));
        let acts =
            ["grant", "revoke", "suspend", "resume", "rename", "rate", "label", "delete"].map(|act| ("app", act));
        let acts = acts.into_iter().chain([("key", "create")]).chain(targets);
        let act = |(group, act): (&str, &str)| {
            let text = if group == "app" { act.to_owned() } else { format!("{act} {group}") };
            (format!("/act/{group}/{act}?{of}"), text)
        };
        let mut heading = Heading::of(&format!("application {name}"));
        heading.acts =
            vec![(format!("/tasks?{of}"), "its tasks".to_owned()), (format!("/audit?{of}"), "its calls".to_owned())];
        heading.acts.extend(acts.map(act));
        heading.acts = self.permit_acts(heading.acts);
        self.single(heading, answer, &asked)
    }

    pub(crate) async fn key(&self, id: &str) -> Rendered {
        let asked = ["key", "show", "--", id];
        let answer = self.ask(&asked).await;
        let mut heading = Heading::of(&format!("key {id}"));
        let key = encode(id);
        let acts = ["rotate", "end-old", "expire", "suspend", "resume", "label", "revoke"];
        heading.acts = acts.map(|act| (format!("/act/key/{act}?key={key}"), act.to_owned())).into();
        heading.acts.insert(0, (format!("/audit?key={key}"), "its calls".to_owned()));
        heading.acts = self.permit_acts(heading.acts);
        self.single(heading, answer, &asked)
    }

    /// Shows a task, an application or a key on its own page.
    pub(crate) async fn find(&self, id: &str) -> Result<String, Rendered> {
        let asked = ["find", "--", id];
        let answer = self.ask(&asked).await;
        let page = answer.as_ref().ok().and_then(|answer| match answer["kind"].as_str()? {
            "task" => Some(format!("/tasks/{}", encode(id))),
            "application" => Some(format!("/applications/{}", encode(id))),
            "key" => Some(format!("/keys/{}", encode(id))),
            "target" => match answer["seen_by"].as_array()?.as_slice() {
                [one] => Some(format!("/fleet/{}/{}", encode(one["resource"].as_str()?), encode(id))),
                _ => None,
            },
            _ => None,
        });
        page.ok_or_else(|| self.single(Heading::of(id), answer, &asked))
    }

    fn single(&self, heading: Heading, answer: Result<Value, OperatorError>, asked: &[&str]) -> Rendered {
        match answer {
            Ok(answer) => {
                let body = show(self.console.catalogue, &render::for_people(answer));
                let title = heading.title.clone();
                Rendered::of(&title, &SinglePage { heading, body }).with_words(asked)
            }
            Err(error) => Rendered::failure(&error),
        }
    }

    /// Shows the latest answer, or asks again.
    pub(crate) async fn examine(&self, path: &'static str, asked: &[&str], about: &'static str) -> Rendered {
        let examined = &self.console.examined;
        let mut heading = Heading::of(path);
        if self.query_value("examine").is_some() {
            let _turn = examined.turn.lock().await;
            match self.ask(asked).await {
                Ok(answer) => {
                    let now = self.console.clock.latest();
                    examined.keep(path, now, answer);
                }
                Err(error) => heading.error = Some(error.message),
            }
        }
        let latest = examined.latest(path);
        let at = latest.as_ref().map(|(at, _)| cells(self.console.catalogue, "at", &Value::from(at.to_string())));
        let body = latest.map(|(_, answer)| show(self.console.catalogue, &answer)).unwrap_or_default();
        Rendered::of(path, &ExaminedPage { heading, path, about, at: at.unwrap_or_default(), body }).with_words(asked)
    }
}
