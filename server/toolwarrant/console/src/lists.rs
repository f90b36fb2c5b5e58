//! Pages that are a list with filters. The filters are the flags of the command that lists, so a
//! page has them all and no other.

use crate::answer::{Column, table};
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_operator::cli::{CommandForm, CommandInput, describe_form};
use toolwarrant_operator::render;

/// A page with a list.
pub(crate) struct ListPage<'a> {
    pub(crate) title: Cow<'a, str>,
    pub(crate) path: Cow<'a, str>,
    pub(crate) words: &'a [&'a str],
    pub(crate) columns: &'static [Column],
    /// The path of a page that belongs to the list, and its name.
    pub(crate) act: Act,
    pub(crate) is_live: bool,
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

type Act = Option<(&'static str, &'static str)>;

const fn list(
    path: &'static str,
    words: &'static [&'static str],
    columns: &'static [Column],
    act: Act,
    is_live: bool,
) -> ListPage<'static> {
    ListPage { title: Cow::Borrowed(path), path: Cow::Borrowed(path), words, columns, act, is_live }
}

pub(crate) static LISTS: [ListPage<'static>; 6] = [
    list("tasks", &["task", "list"], &[], None, true),
    list("refunds", &["refunds"], &[], None, true),
    list("applications", &["app", "list"], &[], Some(("/act/app/create", "create an application")), false),
    list("keys", &["key", "list"], &[], Some(("/act/key/create", "create a key")), false),
    list("audit", &["audit", "list"], LINES, Some(("/verify", "verify its chain")), true),
    list("acts", &["acts"], ACTS, None, true),
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
    above: Markup,
    /// The shape of the page, which its form keeps.
    shape: &'a str,
    filters: Vec<FormInput>,
    rows: Markup,
    next: Option<String>,
    /// The part of the data that was searched.
    searched: String,
}

/// A picture of rows instead of a table.
pub(crate) struct RowPicture<'a> {
    pub(crate) draw: &'a (dyn Fn(&[Value]) -> Markup + Sync),
    pub(crate) rows_max: usize,
    /// The filters that change the picture, and not its rows.
    pub(crate) filters: &'a [&'a str],
}

impl ConsoleVisit<'_> {
    pub(crate) async fn list(&self, page: &ListPage<'_>, above: Markup, picture: Option<RowPicture<'_>>) -> Rendered {
        let Some(form) = describe_form(self.console.catalogue, page.words) else {
            return Rendered::missing();
        };
        let (rows_max, drawn) = picture.as_ref().map_or((ROWS, &[][..]), |picture| (picture.rows_max, picture.filters));
        let asked = self.query.iter().filter(|(name, _)| name != "limit" && !drawn.contains(&name.as_str())).cloned();
        let paging = ("limit".to_owned(), rows_max.to_string());
        let words = form.fill(page.words, &asked.chain([paging]).collect::<Vec<_>>());
        let (answer, failure) = match self.ask_words(&words).await {
            Ok(answer) => (answer, None),
            Err(error) => (Value::Null, Some(error)),
        };
        let members = answer.as_object().into_iter().flat_map(|members| members.values());
        let rows = answer.as_array().or(members.filter_map(Value::as_array).next()).map_or(&[][..], Vec::as_slice);
        let last = rows.last().filter(|_| rows.len() >= rows_max);
        let (name, place) = match form.inputs.iter().any(|input| input.name == "after") {
            true => ("after", last.and_then(id_of)),
            false => ("before", answer.get("next").or(last.map(|row| &row["number"]))),
        };
        let path = format!("/{}", page.path);
        let place = place.filter(|place| !place.is_null() && failure.is_none());
        let acts = page.act.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned()));
        let list = List {
            heading: Heading {
                title: page.title.to_string(),
                acts: self.permit_acts(acts.collect()),
                error: failure.as_ref().map(|error| error.message.clone()),
            },
            above,
            shape: self.query_value("as").unwrap_or_default(),
            rows: match picture {
                Some(picture) => (picture.draw)(rows),
                None => {
                    let shown = render::for_people(rows.into());
                    table(
                        self.console.catalogue,
                        &page.title,
                        page.columns,
                        shown.as_array().map_or(&[], Vec::as_slice),
                    )
                }
            },
            next: place.map(|place| self.same_page(&path, name, &render::cell(place))),
            searched: describe_search(&answer, rows.len()),
            filters: self.inputs(form, &["limit", "before", "after"]).await,
            path: &path,
        };
        let mut rendered = Rendered::of(&page.title, &list);
        let is_first = self.query_value("before").or(self.query_value("after")).is_none();
        rendered.live = (page.is_live && is_first && failure.is_none()).then_some(LOOK_EVERY);
        rendered.status = failure.map_or(rendered.status, |error| Rendered::failure(&error).status);
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
            "state" => catalogue.resources.iter().flat_map(|def| def.states).map(|&state| state.to_owned()).collect(),
            "offers" => {
                catalogue.resources.iter().flat_map(|def| def.capabilities).map(|&name| name.to_owned()).collect()
            }
            "resource" => catalogue.resource_names().into_iter().map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }
}

/// Of one page.
const ROWS: usize = 100;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The first member of a target is its id.
pub(crate) fn id_of(row: &Value) -> Option<&Value> {
    row.as_object()?.values().next()
}

fn describe_search(answer: &Value, rows: usize) -> String {
    let shown = format!("{rows} shown");
    match (answer["examined"].as_u64(), answer["examined_back_to"].as_str()) {
        (Some(examined), _) => format!("{shown}, {examined} examined"),
        (_, Some(back_to)) => format!("{shown}, examined back to {back_to}"),
        _ => shown,
    }
}
