//! Pages that are a list with filters. The filters are the flags of the command that lists, so a
//! page has them all and no other.

use crate::answer::{Column, table};
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use serde_json::Value;
use std::time::Duration;
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_operator::cli::{CommandForm, CommandInput, describe_form};
use toolwarrant_operator::render;

/// A page with a list.
pub(crate) struct ListPage {
    pub(crate) path: &'static str,
    pub(crate) words: &'static [&'static str],
    /// The member of the answer that has the rows, or nothing.
    rows: &'static str,
    columns: &'static [Column],
    /// The path of a page that belongs to the list, and its name.
    act: Option<(&'static str, &'static str)>,
    is_live: bool,
}

/// The columns of lines of the audit trail.
pub(crate) const LINES: &[Column] = &[
    ("time", &["/time"]),
    ("by", &["/application_name", "/application", "/operator/name"]),
    ("did", &["/tool", "/command", "/event"]),
    ("on", &["/target", "/object"]),
    ("outcome", &["/outcome"]),
    ("task", &["/task_id"]),
    ("record", &["/request_id", "/act_id"]),
    ("with", &["/arguments", "/changes"]),
];

/// The columns of acts.
const ACTS: &[Column] = &[
    ("time", &["/time"]),
    ("by", &["/by"]),
    ("did", &["/command"]),
    ("on", &["/name", "/object"]),
    ("changes", &["/changes"]),
    ("reason", &["/reason"]),
    ("claims", &["/claims"]),
    ("over", &["/channel"]),
    ("record", &["/act_id"]),
];

pub(crate) const LISTS: [ListPage; 6] = [
    ListPage { path: "tasks", words: &["task", "list"], rows: "tasks", columns: &[], act: None, is_live: true },
    ListPage { path: "refunds", words: &["refunds"], rows: "", columns: &[], act: None, is_live: true },
    ListPage {
        path: "applications",
        words: &["app", "list"],
        rows: "",
        columns: &[],
        act: Some(("/act/app/create", "create an application")),
        is_live: false,
    },
    ListPage {
        path: "keys",
        words: &["key", "list"],
        rows: "",
        columns: &[],
        act: Some(("/act/key/create", "create a key")),
        is_live: false,
    },
    ListPage {
        path: "audit",
        words: &["audit", "list"],
        rows: "lines",
        columns: LINES,
        act: Some(("/verify", "verify its chain")),
        is_live: true,
    },
    ListPage { path: "acts", words: &["acts"], rows: "", columns: ACTS, act: None, is_live: true },
];

/// An input with the values that are known for it.
pub(crate) struct FormInput {
    pub(crate) label: String,
    pub(crate) input: CommandInput,
    pub(crate) value: String,
    /// All values that were sent, for an input that takes many.
    pub(crate) values: Vec<String>,
    /// Some values to choose from; any other is allowed as well.
    pub(crate) known: Vec<String>,
    pub(crate) is_fixed: bool,
}

#[derive(Template)]
#[template(path = "pages/list.html")]
struct List<'a> {
    heading: Heading,
    path: &'a str,
    filters: Vec<FormInput>,
    table: Markup,
    next: Option<String>,
    /// The part of the data that was searched.
    searched: String,
}

impl ConsoleVisit<'_> {
    pub(crate) async fn list(&self, page: &ListPage) -> Rendered {
        let Some(form) = describe_form(self.console.catalogue, page.words) else {
            return Rendered::missing();
        };
        let paging = ("limit".to_owned(), ROWS.to_string());
        let asked = self.query.iter().filter(|(name, _)| name != "limit").cloned();
        let words = form.fill(page.words, &asked.chain([paging]).collect::<Vec<_>>());
        let answer = self.ask_words(&words).await;
        let mut heading = Heading::of(page.path);
        let acts = page.act.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned()));
        heading.acts = self.permit_acts(acts.collect());
        let (table, next, searched) = match &answer {
            Ok(answer) => {
                let rows = if page.rows.is_empty() { answer } else { &answer[page.rows] };
                let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
                let shown = match render::for_people(Value::from(rows.to_vec())) {
                    Value::Array(rows) => rows,
                    _ => Vec::new(),
                };
                let last = rows.last().filter(|_| rows.len() >= ROWS).map(|row| &row["number"]);
                let place = answer.get("next").or(last).filter(|place| !place.is_null());
                let next =
                    place.map(|place| self.same_page(&format!("/{}", page.path), "before", &render::cell(place)));
                (
                    table(self.console.catalogue, page.path, page.columns, &shown),
                    next,
                    describe_search(answer, rows.len()),
                )
            }
            Err(error) => {
                heading.error = Some(error.message.clone());
                (Markup::default(), None, String::new())
            }
        };
        let filters = self.inputs(form, &["limit", "before"]).await;
        let list = List { heading, path: page.path, filters, table, next, searched };
        let mut rendered = Rendered::of(page.path, &list);
        let is_live = page.is_live && self.query_value("before").is_none() && answer.is_ok();
        rendered.live = is_live.then_some(LOOK_EVERY);
        rendered.status = answer.err().map_or(rendered.status, |error| Rendered::failure(&error).status);
        rendered.words = words;
        rendered
    }

    /// Returns the inputs of a form, with the values of the query.
    pub(crate) async fn inputs(&self, form: CommandForm, without: &[&str]) -> Vec<FormInput> {
        let mut inputs = Vec::new();
        for input in form.inputs.into_iter().filter(|input| !without.contains(&input.name.as_str())) {
            let known = self.list_values(&input.name).await;
            let value = self.query_value(&input.name).unwrap_or_default().to_owned();
            let sent = self.query.iter().filter(|(name, _)| *name == input.name).map(|(_, value)| value.clone());
            let (label, values) = (input.name.replace(['-', '_'], " "), sent.collect());
            inputs.push(FormInput { label, input, value, values, known, is_fixed: false });
        }
        inputs
    }

    async fn list_values(&self, name: &str) -> Vec<String> {
        let catalogue = self.console.catalogue;
        match name {
            "app" => {
                let rows = self.ask(&["app", "list"]).await.unwrap_or_default();
                let names = rows.as_array().into_iter().flatten().filter_map(|row| row["name"].as_str());
                names.map(str::to_owned).collect()
            }
            "status" => TaskStatus::ALL.iter().map(|status| status.as_str().to_owned()).collect(),
            "tool" => catalogue.tools.iter().map(|tool| tool.name.to_owned()).collect(),
            "permission" | "permissions" => catalogue.permissions.iter().map(|known| known.name.to_owned()).collect(),
            "resource" => catalogue.resource_names().into_iter().map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }
}

/// Of one page.
const ROWS: usize = 100;

const LOOK_EVERY: Duration = Duration::from_secs(2);

fn describe_search(answer: &Value, rows: usize) -> String {
    let shown = format!("{rows} shown");
    match (answer["examined"].as_u64(), answer["examined_back_to"].as_str()) {
        (Some(examined), _) => format!("{shown}, {examined} examined"),
        (_, Some(back_to)) => format!("{shown}, examined back to {back_to}"),
        _ => shown,
    }
}
