//! Pages that are a list with filters. The filters are the flags of the command that lists, so a
//! page has them all and no other.

use crate::answer::{sentence, table, words};
use crate::markup::Markup;
use crate::pictures::timeline::describe_length;
use crate::rendered::{Heading, HeadingAct, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use std::borrow::Cow;
use std::time::Duration;
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_operator::answers::{
    ListedApplication, OperatorAnswer, StateCounts, TargetRow, TaskCounts, TaskRow, TaskTarget, TrailLine,
};
use toolwarrant_operator::cli::{CommandForm, CommandInput, describe_form};
use toolwarrant_operator::view::{AnswerView, PageOf, Show, Table};

/// A page with a list.
pub(crate) struct ListPage<'a> {
    pub(crate) title: Cow<'a, str>,
    pub(crate) path: Cow<'a, str>,
    pub(crate) words: &'a [&'a str],
    /// The path of a page that belongs to the list, and its name.
    pub(crate) act: Act,
    pub(crate) is_live: bool,
}

/// Shows tasks for a quick look. Their own pages and the command line have all columns.
pub(crate) fn show_tasks(rows: &[TaskRow]) -> AnswerView {
    let head = ["task", "on", "status", "application", "accepted", "took", "why"].map(Cow::Borrowed).to_vec();
    let row = |task: &TaskRow| {
        let TaskTarget { resource, id, .. } = task.target.clone();
        let took = task.finished_at.map(|end| describe_length(end.since(task.created_at)));
        vec![
            AnswerView::Link(task.tool.clone(), PageOf::Task(task.task_id.clone())),
            AnswerView::Link(id.clone(), PageOf::Target { resource, id }),
            task.status.show(),
            task.application.show(),
            task.created_at.show(),
            took.show(),
            task.why.as_deref().map(sentence).show(),
        ]
    };
    AnswerView::Table(Table { head, rows: rows.iter().map(row).collect() })
}

/// Shows lines of the audit trail so that they fit a window. The page of a record has all columns.
pub(crate) fn show_lines(lines: &[TrailLine]) -> AnswerView {
    let AnswerView::Table(Table { head, rows }) = lines.show() else { return AnswerView::List(Vec::new()) };
    let is_shown: Vec<_> = head.iter().map(|name| !["key", "from", "task"].contains(&&**name)).collect();
    let keep = |row: Vec<AnswerView>| row.into_iter().zip(&is_shown).filter_map(|(cell, keep)| keep.then_some(cell));
    let rows = rows.into_iter().map(|row| keep(row).collect()).collect();
    let head = head.into_iter().zip(&is_shown).filter_map(|(name, keep)| keep.then_some(name)).collect();
    AnswerView::Table(Table { head, rows })
}

type Act = Option<(&'static str, &'static str)>;

const fn list(path: &'static str, words: &'static [&'static str], act: Act, is_live: bool) -> ListPage<'static> {
    ListPage { title: Cow::Borrowed(path), path: Cow::Borrowed(path), words, act, is_live }
}

pub(crate) static LISTS: [ListPage<'static>; 6] = [
    list("tasks", &["task", "list"], None, true),
    list("refunds", &["refunds"], None, true),
    list("applications", &["app", "list"], Some(("/act/app/create", "create an application")), false),
    list("keys", &["key", "list"], Some(("/act/key/create", "create a key")), false),
    list("audit", &["audit", "list"], Some(("/verify", "verify its chain")), true),
    list("acts", &["acts"], None, true),
];

/// An input with the values that are known for it.
pub(crate) struct FormInput {
    pub(crate) label: String,
    pub(crate) input: CommandInput,
    pub(crate) value: String,
    /// All values that were sent, for an input that takes many.
    pub(crate) values: Vec<String>,
    /// The values to choose from.
    pub(crate) known: Vec<String>,
    pub(crate) is_fixed: bool,
    /// The reason why the value cannot be taken.
    pub(crate) refused: Option<String>,
}

#[derive(Template)]
#[template(path = "pages/list.html")]
struct List<'a> {
    heading: Heading,
    path: &'a str,
    above: Markup,
    /// The values of the query that the form keeps.
    kept: Vec<(&'a str, &'a str)>,
    filters: Vec<FormInput>,
    rows: Markup,
    next: Option<String>,
    /// The part of the data that was searched.
    searched: String,
}

/// The states of tasks, and the refunds, with their sums.
#[derive(Template)]
#[template(path = "pages/tabs.html")]
struct Tabs {
    tabs: Vec<Tab>,
    sums: Markup,
}

struct Tab {
    text: String,
    count: Option<String>,
    path: String,
    is_here: bool,
}

/// A picture of rows instead of a table.
pub(crate) struct RowPicture<'a> {
    pub(crate) draw: &'a (dyn Fn(&[TargetRow]) -> Markup + Sync),
    pub(crate) rows_max: usize,
    /// The filters that change the picture, and not its rows.
    pub(crate) filters: &'a [&'a str],
}

/// The rows of a page.
#[derive(Default)]
struct ListedRows {
    rows: Markup,
    /// The name of the flag of the next page, and its value.
    next: Option<(&'static str, String)>,
    /// The part of the data that was searched.
    searched: String,
}

impl ConsoleVisit<'_> {
    pub(crate) async fn list(&self, page: &ListPage<'_>, above: Markup, picture: Option<RowPicture<'_>>) -> Rendered {
        let Some(form) = describe_form(self.console.catalogue, page.words) else {
            return Rendered::missing();
        };
        let (rows_max, drawn) = picture.as_ref().map_or((ROWS, &[][..]), |picture| (picture.rows_max, picture.filters));
        let fields = self.query.iter().filter(|(name, _)| name != "limit" && !drawn.contains(&name.as_str())).cloned();
        let paging = ("limit".to_owned(), rows_max.to_string());
        let asked = form.fill(page.words, &fields.chain([paging]).collect::<Vec<_>>());
        let (listed, failure) = match self.ask_words(&asked).await {
            Ok(answer) => (Self::show_rows(&page.title, answer, rows_max, picture), None),
            Err(error) => (ListedRows::default(), Some(error)),
        };
        let above = match page.words {
            ["task", "list"] | ["refunds"] => self.tabs(page.words == ["refunds"]).await,
            _ => above,
        };
        let ListedRows { rows, next, searched } = listed;
        let path = format!("/{}", page.path);
        let acts = page.act.into_iter().map(|(path, text)| HeadingAct::of(path.to_owned(), text));
        let title = words(&page.title);
        let list = List {
            heading: Heading {
                title: title.clone(),
                acts: self.permit_acts(acts.collect()),
                error: failure.as_ref().map(|error| error.message.clone()),
            },
            above,
            kept: KEPT.into_iter().filter_map(|name| Some((name, self.query_value(name)?))).collect(),
            rows,
            next: next.map(|(name, place)| self.same_page(&path, name, &place)),
            searched,
            filters: self.filters(form).await,
            path: &path,
        };
        let mut rendered = Rendered::of(&title, &list);
        let is_first = self.query_value("before").or(self.query_value("after")).is_none();
        rendered.live = (page.is_live && is_first && failure.is_none()).then_some(LOOK_EVERY);
        rendered.status = failure.map_or(rendered.status, |error| Rendered::failure(&error).status);
        rendered.words = asked;
        rendered
    }

    /// Returns terms that say what an application sees.
    async fn list_terms(&self) -> Vec<String> {
        let resources = self.console.catalogue.resource_names();
        let mut terms = Vec::new();
        for resource in &resources {
            let lead = if resources.len() == 1 { String::new() } else { format!("{resource}:") };
            let counts = self.ask::<StateCounts>(&[resource, "states"]).await;
            let begins =
                [String::new()].into_iter().chain(counts.into_iter().flat_map(|counts| counts.prefixes.into_keys()));
            terms.extend(begins.map(|begin| format!("{lead}{begin}*")));
            let limit = format!("--limit={}", KNOWN_MAX + 1);
            let rows: Vec<TargetRow> = self.ask(&[resource, "list", &limit]).await.unwrap_or_default();
            // A form without all terms takes them as text.
            if rows.len() > KNOWN_MAX {
                return Vec::new();
            }
            terms.extend(rows.into_iter().map(|row| format!("{lead}{}", row.id)));
        }
        terms
    }

    /// Counts what the filters select, if an index does.
    async fn tabs(&self, is_refunds: bool) -> Markup {
        let flag = |name: &str| self.query_value(name).map(|value| format!("--{name}={value}"));
        let flags = |names: &[&str]| names.iter().filter_map(|name| flag(name)).collect::<Vec<_>>();
        let ask = |words: &[&str], flags| [words.iter().map(|word| (*word).to_owned()).collect(), flags].concat();
        let counted = ["app", "tool", "since", "until", "status", "before"];
        let is_counted = self.query.iter().all(|(name, value)| value.is_empty() || counted.contains(&name.as_str()));
        let counts = match self.ask_words(&ask(&["task", "count", LATEST], flags(&counted[..4]))).await {
            Ok(OperatorAnswer::TaskCounts(counts)) if is_counted => Some(counts),
            _ => None,
        };
        let chosen = self.query_value("status").unwrap_or_default();
        let tab = |text: &str, status: &'static str| {
            let is_it = |name: &str| status.is_empty() || name == status;
            let sum = |TaskCounts { tasks, more, .. }: &TaskCounts| {
                let count: u64 = tasks.0.iter().filter(|(name, _)| is_it(name)).map(|of| of.1).sum();
                format!("{count}{}", if more.iter().any(|name| is_it(name)) { "+" } else { "" })
            };
            let (count, path) = (counts.as_ref().map(sum), self.same_page("/tasks", "status", status));
            Tab { text: words(text), count, path, is_here: !is_refunds && chosen == status }
        };
        let names = TaskStatus::ALL.iter().map(|status| status.as_str());
        let states =
            names.map(|name| tab(if name == TaskStatus::Dispatched.as_str() { "in flight" } else { name }, name));
        let path = self.same_page("/refunds", "status", "");
        let refunds = Tab { text: "Refunds".to_owned(), count: None, path, is_here: is_refunds };
        let tabs = [tab("all", "")].into_iter().chain(states).chain([refunds]).collect();
        let mut sums = Markup::default();
        let (lately, name) = match flag("since").or(flag("until")) {
            Some(_) => (&[][..], "sums"),
            None => (&["--since=30d"][..], "sums of 30 days"),
        };
        let words = [&["refunds", "--sums"][..], lately].concat();
        if is_refunds
            && let Ok(OperatorAnswer::RefundSums(rows)) =
                self.ask_words(&ask(&words, flags(&["app", "since", "until"]))).await
        {
            sums = table(name, &&rows[..rows.len().min(ROWS)]);
        }
        Markup::of(&Tabs { tabs, sums })
    }

    fn show_rows(name: &str, answer: OperatorAnswer, rows_max: usize, picture: Option<RowPicture<'_>>) -> ListedRows {
        let is_full = |count: usize| count >= rows_max;
        let before =
            |number: Option<u64>, count| number.filter(|_| is_full(count)).map(|number| ("before", number.to_string()));
        let (rows, count, next, examined) = match answer {
            OperatorAnswer::Tasks(page) => {
                let examined = format!(" of {} examined", page.examined);
                let next = page.next.map(|next| ("before", next));
                (table(name, &show_tasks(&page.tasks)), page.tasks.len(), next, examined)
            }
            OperatorAnswer::Audit(page) => {
                let examined = page.examined_back_to.map(|time| format!(", examined back to {time}"));
                let next = page.next.map(|next| ("before", next));
                (table(name, &show_lines(&page.lines)), page.lines.len(), next, examined.unwrap_or_default())
            }
            OperatorAnswer::Acts(acts) => {
                let next = before(acts.last().map(|act| act.number), acts.len());
                (table(name, &acts), acts.len(), next, String::new())
            }
            OperatorAnswer::Refunds(refunds) => {
                let next = before(refunds.last().map(|refund| refund.number), refunds.len());
                (table(name, &refunds), refunds.len(), next, String::new())
            }
            OperatorAnswer::Targets(targets) => {
                let last = targets.last().filter(|_| is_full(targets.len()));
                let next = last.map(|target| ("after", target.id.clone()));
                let drawn = picture.map(|picture| (picture.draw)(&targets));
                let rows = drawn.unwrap_or_else(|| table(name, &targets));
                (rows, targets.len(), next, String::new())
            }
            OperatorAnswer::Applications(rows) => (table(name, &rows), rows.len(), None, String::new()),
            OperatorAnswer::Keys(rows) => (table(name, &rows), rows.len(), None, String::new()),
            _ => return ListedRows::default(),
        };
        ListedRows { rows, next, searched: format!("{count} shown{examined}") }
    }

    /// Returns the inputs of a list: those that most people need, and those that have a value.
    async fn filters(&self, form: CommandForm) -> Vec<FormInput> {
        let mut filters = self.inputs(form, None).await;
        filters.retain(|filter| {
            let name = filter.input.name.as_str();
            let is_usual = !RARE.contains(&name) || !filter.value.is_empty();
            is_usual && !KEPT.contains(&name) && !["limit", "before", "after", "sums"].contains(&name)
        });
        for filter in filters.iter_mut().filter(|filter| filter.input.name == "since") {
            filter.known = SINCE.map(str::to_owned).to_vec();
            // A bar of the overview names an hour.
            if !filter.value.is_empty() && !filter.known.contains(&filter.value) {
                filter.known.push(filter.value.clone());
            }
        }
        filters
    }

    /// Returns the inputs of a form, with the values of the query. `resource` is that of its
    /// targets.
    pub(crate) async fn inputs(&self, form: CommandForm, resource: Option<&str>) -> Vec<FormInput> {
        let mut inputs = Vec::new();
        for input in form.inputs {
            let mut known = input.choices.clone();
            if known.is_empty() {
                known = self.list_values(&input.name, resource).await;
                known.truncate(if known.len() > 2 * KNOWN_MAX { 0 } else { 2 * KNOWN_MAX });
            }
            let value = self.query_value(&input.name).unwrap_or_default().to_owned();
            let sent = self.query.iter().filter(|(name, _)| *name == input.name).map(|(_, value)| value.clone());
            let label = if input.name == "app" { "Application".to_owned() } else { words(&input.name) };
            let values: Vec<_> = sent.collect();
            // A value that is not known is shown, too.
            for value in values.iter().filter(|value| !value.is_empty()) {
                if !known.is_empty() && !known.contains(value) {
                    known.push(value.clone());
                }
            }
            inputs.push(FormInput { label, input, value, values, known, is_fixed: false, refused: None });
        }
        inputs
    }

    async fn list_values(&self, name: &str, resource: Option<&str>) -> Vec<String> {
        let catalogue = self.console.catalogue;
        match name {
            "ids" => {
                let Some(resource) = resource else { return Vec::new() };
                let limit = format!("--limit={}", 2 * KNOWN_MAX + 1);
                let rows: Vec<TargetRow> = self.ask(&[resource, "list", &limit]).await.unwrap_or_default();
                rows.into_iter().map(|row| row.id).collect()
            }
            "app" => {
                let rows: Vec<ListedApplication> = self.ask(&["app", "list"]).await.unwrap_or_default();
                rows.into_iter().map(|row| row.application.name.name).collect()
            }
            "assign" => self.list_terms().await,
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

/// More are not counted at each look.
pub(crate) const LATEST: &str = "--latest=10000";

/// With more, a value is typed.
const KNOWN_MAX: usize = 200;

/// The parts of a query that links set, and the form of the filters keeps.
const KEPT: [&str; 2] = ["as", "status"];

/// The filters that a page shows only once they have a value.
const RARE: [&str; 7] = ["until", "resource", "request", "task", "operator", "unused-for", "older-than"];

/// The times to choose from.
const SINCE: [&str; 5] = ["1h", "24h", "7d", "30d", "90d"];

const LOOK_EVERY: Duration = Duration::from_secs(2);
