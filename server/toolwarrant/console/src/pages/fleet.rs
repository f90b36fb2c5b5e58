//! The pages of targets: all of a resource as cells that keep their places, and one of them.

use crate::answer::{encode, show, table};
use crate::lists::LINES;
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use serde_json::{Value, json};
use std::time::Duration;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_operator::render;

/// More targets than this are a table, a page at a time.
const CELLS_MAX: u64 = 2_000;
const ROWS: u64 = 200;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// By the position of the state in the contract. The classes `c0` to `c7` have the colours.
const MARKS: [&str; 8] = ["■", "□", "▨", "◪", "◧", "▤", "▥", "◫"];

pub(crate) fn is_fleet(catalogue: &Catalogue, resource: &str) -> bool {
    catalogue.resource(resource).is_some()
}

struct FleetCell {
    id: String,
    path: String,
    mark: &'static str,
    class: usize,
    is_dim: bool,
    text: String,
}

/// A value to filter by: its name, its count, its mark, and the path of the page with it.
struct Choice {
    name: String,
    count: u64,
    mark: &'static str,
    class: usize,
    path: String,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "pages/fleet.html")]
struct FleetPage<'a> {
    heading: Heading,
    path: String,
    app: &'a str,
    prefix: &'a str,
    count: u64,
    groups: Vec<(&'static str, Vec<Choice>)>,
    cells: Vec<FleetCell>,
    table: Markup,
    other: (String, &'static str),
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "pages/target.html")]
struct TargetPage {
    heading: Heading,
    shown: Markup,
    seen_by: Markup,
    tasks: Markup,
    lines: Markup,
}

impl ConsoleVisit<'_> {
    pub(crate) async fn fleet(&self, resource: &str) -> Rendered {
        let words = |name: &str, flags: &[(&str, Option<&str>)]| {
            let flags = flags.iter().filter_map(|(name, value)| Some(format!("--{name}={}", (*value)?)));
            [resource.to_owned(), name.to_owned()].into_iter().chain(flags).collect::<Vec<_>>()
        };
        let [app, prefix, state, offers, after] =
            ["app", "prefix", "state", "offers", "after"].map(|name| self.query_value(name));
        let filters = [("app", app), ("prefix", prefix)];
        let path = format!("/fleet/{resource}");
        let mut heading = Heading::of(&format!("{resource}s"));
        // A contract without states has no counts.
        let counts = self.ask_words(&words("states", &filters)).await.unwrap_or_default();
        let count = counts["count"].as_u64().unwrap_or_default();
        let is_table = self.query_value("as") == Some("table") || count > CELLS_MAX;
        let limit = if is_table { ROWS } else { CELLS_MAX };
        let shown = limit.to_string();
        // Cells keep their places, so those that are not meant are only dim.
        let [chosen, offered] = [state, offers].map(|value| value.filter(|_| is_table));
        let paging = [("state", chosen), ("offers", offered), ("after", after), ("limit", Some(&*shown))];
        let asked = words("list", &[&filters[..], &paging].concat());
        let rows = match self.ask_words(&asked).await {
            Ok(rows) => rows.as_array().cloned().unwrap_or_default(),
            Err(error) => {
                heading.error = Some(error.message);
                Vec::new()
            }
        };
        let is_meant = |row: &Value| {
            state.is_none_or(|state| row["state"] == state)
                && offers.is_none_or(|name| row["capabilities"][name] == true)
        };
        let shown = rows.len() as u64;
        let next = rows.last().filter(|_| shown == limit).map(id_of);
        let (cells, listed) = if is_table { (&[][..], &rows[..]) } else { (&rows[..], &[][..]) };
        let groups = [("", "state", "states"), ("offers", "offers", "offers"), ("prefix", "prefix", "prefixes")];
        let groups = groups.map(|(label, name, counted)| (label, self.choices(resource, name, &counts[counted])));
        let page = FleetPage {
            heading,
            path: path.clone(),
            app: app.unwrap_or_default(),
            prefix: prefix.unwrap_or_default(),
            count: count.max(shown),
            groups: groups.into_iter().filter(|(_, choices)| !choices.is_empty()).collect(),
            cells: cells.iter().map(|row| self.cell(resource, row, is_meant(row))).collect(),
            table: match listed {
                [] => Markup::default(),
                rows => table(self.console.catalogue, resource, &[], rows),
            },
            other: match is_table {
                true => (self.same_page(&path, "as", ""), "as cells"),
                false => (self.same_page(&path, "as", "table"), "as a table"),
            },
            next: next.map(|id| self.same_page(&path, "after", &id)),
        };
        let mut rendered = Rendered { live: Some(LOOK_EVERY), ..Rendered::of(&format!("{resource}s"), &page) };
        rendered.words = asked;
        rendered
    }

    fn choices(&self, resource: &str, name: &str, counts: &Value) -> Vec<Choice> {
        let (chosen, path) = (self.query_value(name), format!("/fleet/{resource}"));
        let choice = |(value, count): (&String, &Value)| {
            let is_chosen = chosen == Some(value);
            let (class, mark) = if name == "state" { self.mark(resource, value) } else { (0, "") };
            let path = self.same_page(&path, name, if is_chosen { "" } else { value });
            Choice { name: value.clone(), count: count.as_u64().unwrap_or_default(), mark, class, path, is_chosen }
        };
        counts.as_object().into_iter().flatten().map(choice).collect()
    }

    fn mark(&self, resource: &str, state: &str) -> (usize, &'static str) {
        let states = self.console.catalogue.resource(resource).map_or(&[][..], |resource| resource.states);
        let place = states.iter().position(|known| *known == state).unwrap_or(0) % MARKS.len();
        (place, MARKS[place])
    }

    fn cell(&self, resource: &str, row: &Value, is_meant: bool) -> FleetCell {
        let id = id_of(row);
        let state = row["state"].as_str().unwrap_or_default();
        let (class, mark) = self.mark(resource, state);
        let offers = render::cell(&row["capabilities"]);
        let text = format!("{id}: {state}, offers {offers}");
        FleetCell { path: format!("/fleet/{resource}/{}", encode(&id)), id, mark, class, is_dim: !is_meant, text }
    }

    pub(crate) async fn target(&self, resource: &str, id: &str) -> Rendered {
        let asked = [resource, "list", &format!("--prefix={id}"), "--limit=1"];
        let row = match self.ask(&asked).await {
            Ok(rows) => rows.get(0).filter(|row| id_of(row) == id).cloned().unwrap_or_default(),
            Err(error) => return Rendered::failure(&error),
        };
        let found = ["find", "--", id];
        let found = match self.ask(&found).await {
            Ok(found) => found,
            Err(error) => return Rendered::failure(&error),
        };
        let catalogue = self.console.catalogue;
        let rows = |name: &str| render::for_people(found[name].clone()).as_array().cloned().unwrap_or_default();
        let mut heading = Heading::of(&format!("{resource} {id}"));
        let target = catalogue.resources.len() == 1;
        let target = if target { resource } else { "target" };
        heading.acts = vec![
            (format!("/tasks?{target}={}", encode(id)), "all its tasks".to_owned()),
            (format!("/audit?on={}", encode(id)), "all its calls".to_owned()),
        ];
        let seen_by = json!({"applications": row["applications"]});
        let page = TargetPage {
            heading,
            shown: show(catalogue, &without(row, "applications")),
            seen_by: show(catalogue, &seen_by),
            tasks: table(catalogue, "latest tasks", &[], &rows("tasks")),
            lines: table(catalogue, "latest calls", LINES, &rows("lines")),
        };
        let rendered = Rendered::of(&format!("{resource} {id}"), &page).with_words(&["find", id]);
        Rendered { live: Some(LOOK_EVERY), ..rendered }
    }
}

/// The first member of a row is the id.
fn id_of(row: &Value) -> String {
    let first = row.as_object().and_then(|members| members.values().next());
    first.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn without(mut row: Value, name: &str) -> Value {
    if let Some(members) = row.as_object_mut() {
        members.shift_remove(name);
    }
    row
}
