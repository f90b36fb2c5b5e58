//! Pages of one thing: an application, a key, an id of any kind, and the checks that take long.

use crate::acts::{is_final, list_acts};
use crate::answer::{Cell, cells, encode, show, words};
use crate::markup::Markup;
use crate::rendered::{Heading, HeadingAct, Rendered, SinglePage};
use crate::visit::ConsoleVisit;
use askama::Template;
use toolwarrant_operator::CommandAnswer;
use toolwarrant_operator::answers::{FoundObject, OperatorAnswer};
use toolwarrant_operator::view::Show;

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
    /// Shows an application or a key.
    pub(crate) async fn object(&self, kind: &str, id: &str) -> Rendered {
        let asked = [kind, "show", "--", id];
        let answer = self.ask_any(&asked).await;
        let of = format!("{kind}={}", encode(id));
        let calls = HeadingAct::of(format!("/audit?{of}"), "its calls");
        let act = |group: &str, act: &str, text: &str| HeadingAct {
            is_final: is_final(group, act),
            ..HeadingAct::of(format!("/act/{group}/{act}?{of}"), text)
        };
        let acts = list_acts(kind).filter(|name| *name != "create").map(|name| act(kind, name, name));
        let mut acts: Vec<_> = [calls].into_iter().chain(acts).collect();
        if kind == "app" {
            acts.insert(0, HeadingAct::of(format!("/tasks?{of}"), "its tasks"));
            acts.push(act("key", "create", "create key"));
            let targets = self.console.catalogue.resource_names().into_iter();
            let targets = targets.flat_map(|resource| ["assign", "unassign"].map(|name| (resource, name)));
            acts.extend(targets.map(|(resource, name)| act(resource, name, &format!("{name} {resource}"))));
        }
        let title = format!("{} {id}", if kind == "app" { "Application" } else { "Key" });
        let heading = Heading { acts: self.permit_acts(acts), ..Heading::of(&title) };
        self.single(heading, answer, &asked)
    }

    /// Shows a task, an application or a key on its own page.
    pub(crate) async fn find(&self, id: &str) -> Result<String, Rendered> {
        let asked = ["find", "--", id];
        let answer = self.ask_any(&asked).await;
        let page = match &answer {
            Ok(OperatorAnswer::FoundObject(FoundObject::Task { .. })) => Some(format!("/tasks/{}", encode(id))),
            Ok(OperatorAnswer::FoundObject(FoundObject::Application { .. })) => {
                Some(format!("/applications/{}", encode(id)))
            }
            Ok(OperatorAnswer::FoundObject(FoundObject::Key { .. })) => Some(format!("/keys/{}", encode(id))),
            Ok(OperatorAnswer::FoundObject(FoundObject::Target { seen_by, .. })) => match &seen_by[..] {
                [one] => Some(format!("/fleet/{}/{}", encode(one.resource), encode(id))),
                _ => None,
            },
            _ => None,
        };
        page.ok_or_else(|| self.single(Heading::of(id), answer, &asked))
    }

    fn single(&self, heading: Heading, answer: CommandAnswer, asked: &[&str]) -> Rendered {
        match answer {
            Ok(answer) => {
                let body = show(&answer);
                let title = heading.title.clone();
                Rendered::of(&title, &SinglePage { heading, body }).with_words(asked)
            }
            Err(error) => Rendered::failure(&error),
        }
    }

    /// Shows the latest answer, or asks again.
    pub(crate) async fn examine(&self, path: &'static str, asked: &[&str], about: &'static str) -> Rendered {
        let examined = &self.console.examined;
        let title = words(path);
        let mut heading = Heading::of(&title);
        if self.query_value("examine").is_some() {
            let _turn = examined.turn.lock().await;
            match self.ask_any(asked).await {
                Ok(answer) => {
                    let now = self.console.clock.latest();
                    examined.keep(path, now, answer);
                }
                Err(error) => heading.error = Some(error.message),
            }
        }
        let latest = examined.latest(path);
        let at = latest.as_ref().map(|(at, _)| cells(&at.show()));
        let body = latest.map(|(_, answer)| show(&answer)).unwrap_or_default();
        Rendered::of(&title, &ExaminedPage { heading, path, about, at: at.unwrap_or_default(), body }).with_words(asked)
    }
}
