//! The pages of targets: all of a resource as cells that keep their places, and one of them.

use crate::answer::{encode, sentence, show, table, words};
use crate::lists::{FormInput, ListPage, RowPicture, show_lines, show_tasks};
use crate::markup::Markup;
use crate::rendered::{Heading, HeadingAct, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use toolwarrant_base::json;
use toolwarrant_core::catalogue::{TargetDef, ToolDef};
use toolwarrant_operator::OperatorError;
use toolwarrant_operator::answers::{FoundObject, ListedTasks, OperatorAnswer, StateCounts, TargetRow};
use toolwarrant_operator::cli::describe_form;

/// More targets than this are a table, a page at a time.
const CELLS_MAX: usize = 2_000;

/// More targets than this are cells without names.
const TILES_MAX: usize = 120;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// By the position of the state in the contract. The classes `c0` to `c7` have the colours.
const MARKS: [&str; 8] = ["■", "□", "▨", "◪", "◧", "▤", "▥", "◫"];

struct FleetCell {
    id: String,
    name: String,
    state: String,
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
    /// True if each cell has its name.
    is_named: bool,
}

/// The fields of a target that a contract with states names.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ServiceFields {
    name: Option<String>,
    state: String,
    capabilities: BTreeMap<String, bool>,
}

#[derive(Template)]
#[template(path = "pages/target.html")]
struct TargetPage {
    heading: Heading,
    shown: Markup,
    /// The choice of an application.
    read_as: Vec<FormInput>,
    read: Markup,
    tasks: Markup,
    lines: Markup,
}

impl ConsoleVisit<'_> {
    pub(crate) async fn fleet(&self, resource: &str) -> Rendered {
        let path = format!("fleet/{resource}");
        let page = ListPage {
            title: words(&format!("{resource}s")).into(),
            path: (&*path).into(),
            words: &[resource, "list"],
            act: None,
            is_live: true,
        };
        let flag = |name: &str| self.query_value(name).map(|value| format!("--{name}={value}"));
        let words =
            [resource, "states"].map(str::to_owned).into_iter().chain(["app", "prefix"].into_iter().filter_map(flag));
        let counts = match self.query_value("text") {
            None => self.ask_words(&words.collect::<Vec<_>>()).await.ok(),
            Some(_) => None,
        };
        // A contract without states has no counts, and a text is found by a list alone.
        let Some(OperatorAnswer::States(counts)) = counts else {
            return self.list(&page, Markup::default(), None).await;
        };
        let StateCounts { count, states, offers, prefixes } = counts;
        let is_wall = self.query_value("as") != Some("table") && count <= CELLS_MAX as u64;
        let groups = [
            ("", self.choices(resource, "state", states)),
            ("Offers", self.choices(resource, "offers", offers)),
            ("Begins with", self.choices(resource, "prefix", prefixes)),
        ];
        let (other, text) = if is_wall { ("table", "As a table") } else { ("", "As tiles") };
        let legend = Legend {
            count,
            groups: groups.into_iter().filter(|(_, choices)| !choices.is_empty()).collect(),
            other: (count <= CELLS_MAX as u64).then(|| (self.same_page(&format!("/{path}"), "as", other), text)),
        };
        let draw = |rows: &[TargetRow]| {
            let cells = rows.iter().map(|row| self.cell(resource, row)).collect();
            Markup::of(&Wall { cells, is_named: rows.len() <= TILES_MAX })
        };
        let wall = RowPicture { draw: &draw, rows_max: CELLS_MAX, filters: &["state", "offers"] };
        self.list(&page, Markup::of(&legend), is_wall.then_some(wall)).await
    }

    fn choices<N: AsRef<str>>(&self, resource: &str, name: &str, counts: BTreeMap<N, u64>) -> Vec<Choice> {
        let (chosen, path) = (self.query_value(name), format!("/fleet/{resource}"));
        let choice = |(value, count): (N, u64)| {
            let value = value.as_ref();
            let is_chosen = chosen == Some(value);
            let (class, mark) = if name == "state" { self.mark(resource, value) } else { (0, "") };
            let path = self.same_page(&path, name, if is_chosen { "" } else { value });
            Choice { name: value.to_owned(), count, mark, class, path, is_chosen }
        };
        counts.into_iter().map(choice).collect()
    }

    fn mark(&self, resource: &str, state: &str) -> (usize, &'static str) {
        let states = self.console.catalogue.resource(resource).map_or(&[][..], |resource| resource.states);
        let place = states.iter().position(|known| *known == state).unwrap_or(0) % MARKS.len();
        (place, MARKS[place])
    }

    /// Cells keep their places, so those that are not meant are only dim.
    fn cell(&self, resource: &str, row: &TargetRow) -> FleetCell {
        let TargetRow { id, shown, unreadable_since, .. } = row;
        let ServiceFields { name, state, capabilities } =
            json::convert(&Value::Object(shown.clone())).unwrap_or_default();
        let offers: Vec<_> = capabilities.iter().filter(|(_, has)| **has).map(|(name, _)| &**name).collect();
        let (class, mark) = self.mark(resource, &state);
        let is_meant = self.query_value("state").is_none_or(|meant| state == meant)
            && self.query_value("offers").is_none_or(|name| offers.contains(&name));
        let since = unreadable_since.map(|since| format!(" since {since}")).unwrap_or_default();
        let (id, offers) = (id.clone(), if offers.is_empty() { "none".to_owned() } else { offers.join(", ") });
        let text = format!("{id}: {state}{since}, offers {offers}");
        let path = format!("/fleet/{resource}/{}", encode(&id));
        FleetCell { path, id, name: name.unwrap_or_default(), state, mark, class, is_dim: !is_meant, text }
    }

    pub(crate) async fn target(&self, resource: &str, id: &str) -> Rendered {
        let asked = [resource, "list", &format!("--prefix={id}"), "--limit=1"];
        let row = match self.ask::<Vec<TargetRow>>(&asked).await {
            Ok(rows) => rows.into_iter().find(|row| row.id == id),
            Err(error) => return Rendered::failure(&error),
        };
        let lines = match self.ask(&["find", "--", id]).await {
            Ok(FoundObject::Target { lines, .. }) => lines,
            Ok(_) if row.is_some() => Vec::new(),
            Ok(_) => return Rendered::failure(&OperatorError::not_found(format!("there is no {resource} `{id}`"))),
            Err(error) => return Rendered::failure(&error),
        };
        let catalogue = self.console.catalogue;
        let tools = || catalogue.tools.iter().filter_map(|tool| Some((tool, tool.target.as_ref()?)));
        let tools = || tools().filter(|(_, target)| target.resource == resource);
        let arguments = |target: &TargetDef| json!({target.arg: id}).to_string();
        let title = words(resource) + " " + id;
        let mut heading = Heading::of(&title);
        let target = catalogue.resources.len() == 1;
        let target = if target { resource } else { "target" };
        let of_several = if target == resource { String::new() } else { format!("&resource={}", encode(resource)) };
        let act = |name: &str, text| HeadingAct::of(format!("/act/{resource}/{name}?ids={}", encode(id)), text);
        heading.acts = self.permit_acts(vec![
            HeadingAct::of(format!("/tasks?{target}={}{of_several}", encode(id)), "all its tasks"),
            HeadingAct::of(format!("/audit?on={}", encode(id)), "all its calls"),
            act("assign", "assign to an application"),
            act("unassign", "take away from one"),
        ]);
        // One that reads, and whose result is data.
        let reader =
            tools().find(|(tool, target)| tool.hints.read_only && target.requires.is_none() && tool.body.is_none());
        let (mut read_as, mut read) = (Vec::new(), Markup::default());
        if let (Some((tool, target)), Some(form)) = (reader, describe_form(catalogue, &CALL)) {
            read_as = self.inputs(form, None).await;
            read_as.retain(|input| input.input.name == "app");
            if let Some(app) = self.query_value("app") {
                match self.ask_any(&[&CALL[..], &["--", app, tool.name, &arguments(target)]].concat()).await {
                    Ok(answer) => read = show(&answer),
                    Err(error) => heading.error = Some(sentence(&error.message)),
                }
            }
        }
        if self.may_act() {
            let issues = tools().filter(|(tool, _)| !tool.hints.read_only && !tool.acts && tool.task.is_none());
            let issues = issues.filter(|(tool, _)| has_url(tool)).map(|(tool, target)| {
                let path = format!("/act/app/call?tool={}&arguments={}", tool.name, encode(&arguments(target)));
                HeadingAct::of(path, tool.title)
            });
            heading.acts.splice(0..0, issues);
        }
        let (of_target, of_resource) = (format!("--{target}={id}"), format!("--resource={resource}"));
        let words = ["task", "list", "--limit=20", &of_target, &of_resource];
        let tasks = self.ask::<ListedTasks>(&words[..if catalogue.resources.len() == 1 { 4 } else { 5 }]).await;
        let page = TargetPage {
            heading,
            shown: show(&row),
            read_as,
            read,
            tasks: table("latest tasks", &show_tasks(&tasks.map(|page| page.tasks).unwrap_or_default())),
            lines: table("latest calls", &show_lines(&lines)),
        };
        let rendered = Rendered::of(&title, &page).with_words(&["find", id]);
        // A look as an application counts for its budget.
        Rendered { live: self.query_value("app").is_none().then_some(LOOK_EVERY), ..rendered }
    }
}

const CALL: [&str; 2] = ["app", "call"];

/// Returns true if the result of the tool has a `url`.
fn has_url(tool: &ToolDef) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Schema {
        properties: BTreeMap<String, IgnoredAny>,
    }
    json::read::<Schema>(tool.output_schema).is_ok_and(|schema| schema.properties.contains_key("url"))
}
