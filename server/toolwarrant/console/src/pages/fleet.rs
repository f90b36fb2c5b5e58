//! The pages of targets: all of a resource as cells that keep their places, and one of them.

use crate::answer::{encode, show, table, without};
use crate::lists::{LINES, ListPage, RowPicture, id_of};
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use serde_json::{Value, json};
use std::time::Duration;
use toolwarrant_operator::render;

/// More targets than this are a table, a page at a time.
const CELLS_MAX: usize = 2_000;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// By the position of the state in the contract. The classes `c0` to `c7` have the colours.
const MARKS: [&str; 8] = ["■", "□", "▨", "◪", "◧", "▤", "▥", "◫"];

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

/// The counts above a list of targets.
#[derive(Template)]
#[template(path = "pages/fleet.html")]
struct Legend {
    count: u64,
    groups: Vec<(&'static str, Vec<Choice>)>,
    other: Option<(String, &'static str)>,
}

#[derive(Template)]
#[template(path = "pages/wall.html")]
struct Wall {
    cells: Vec<FleetCell>,
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
        let path = format!("fleet/{resource}");
        let page = ListPage {
            title: format!("{resource}s").into(),
            path: (&*path).into(),
            words: &[resource, "list"],
            columns: &[],
            act: None,
            is_live: true,
        };
        let flag = |name: &str| self.query_value(name).map(|value| format!("--{name}={value}"));
        let words =
            [resource, "states"].map(str::to_owned).into_iter().chain(["app", "prefix"].into_iter().filter_map(flag));
        // A contract without states has no counts.
        let Ok(counts) = self.ask_words(&words.collect::<Vec<_>>()).await else {
            return self.list(&page, Markup::default(), None).await;
        };
        let count = counts["count"].as_u64().unwrap_or_default();
        let is_wall = self.query_value("as") != Some("table") && count <= CELLS_MAX as u64;
        let groups = [("", "state", "states"), ("offers", "offers", "offers"), ("prefix", "prefix", "prefixes")];
        let groups = groups.map(|(label, name, counted)| (label, self.choices(resource, name, &counts[counted])));
        let (other, text) = if is_wall { ("table", "as a table") } else { ("", "as cells") };
        let legend = Legend {
            count,
            groups: groups.into_iter().filter(|(_, choices)| !choices.is_empty()).collect(),
            other: (count <= CELLS_MAX as u64).then(|| (self.same_page(&format!("/{path}"), "as", other), text)),
        };
        let draw =
            |rows: &[Value]| Markup::of(&Wall { cells: rows.iter().map(|row| self.cell(resource, row)).collect() });
        let wall = RowPicture { draw: &draw, rows_max: CELLS_MAX, filters: &["state", "offers"] };
        self.list(&page, Markup::of(&legend), is_wall.then_some(wall)).await
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

    /// Cells keep their places, so those that are not meant are only dim.
    fn cell(&self, resource: &str, row: &Value) -> FleetCell {
        let id = id_of(row).and_then(Value::as_str).unwrap_or_default().to_owned();
        let state = row["state"].as_str().unwrap_or_default();
        let (class, mark) = self.mark(resource, state);
        let is_meant = self.query_value("state").is_none_or(|meant| state == meant)
            && self.query_value("offers").is_none_or(|name| row["capabilities"][name] == true);
        let since = row["unreadable_since"].as_str().map(|since| format!(" since {since}")).unwrap_or_default();
        let text = format!("{id}: {state}{since}, offers {}", render::cell(&row["capabilities"]));
        FleetCell { path: format!("/fleet/{resource}/{}", encode(&id)), id, mark, class, is_dim: !is_meant, text }
    }

    pub(crate) async fn target(&self, resource: &str, id: &str) -> Rendered {
        let asked = [resource, "list", &format!("--prefix={id}"), "--limit=1"];
        let row = match self.ask(&asked).await {
            Ok(rows) => {
                rows.get(0).filter(|row| id_of(row).is_some_and(|found| found == id)).cloned().unwrap_or_default()
            }
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
            shown: show(catalogue, &without(row, &["applications"])),
            seen_by: show(catalogue, &seen_by),
            tasks: table(catalogue, "latest tasks", &[], &rows("tasks")),
            lines: table(catalogue, "latest calls", LINES, &rows("lines")),
        };
        let rendered = Rendered::of(&format!("{resource} {id}"), &page).with_words(&["find", id]);
        Rendered { live: Some(LOOK_EVERY), ..rendered }
    }
}
