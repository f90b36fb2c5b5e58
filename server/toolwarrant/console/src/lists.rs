//! Pages that are a list with filters. The filters are the flags of the command that lists, so a
//! page has them all and no other.

use crate::answer::table;
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use std::borrow::Cow;
use std::time::Duration;
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_operator::answers::{ListedApplication, OperatorAnswer, TargetRow};
use toolwarrant_operator::cli::{CommandForm, CommandInput, describe_form};

/// A page with a list.
pub(crate) struct ListPage<'a> {
    pub(crate) title: Cow<'a, str>,
    pub(crate) path: Cow<'a, str>,
    pub(crate) words: &'a [&'a str],
    /// The path of a page that belongs to the list, and its name.
    pub(crate) act: Act,
    pub(crate) is_live: bool,
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
        let asked = self.query.iter().filter(|(name, _)| name != "limit" && !drawn.contains(&name.as_str())).cloned();
        let paging = ("limit".to_owned(), rows_max.to_string());
        let words = form.fill(page.words, &asked.chain([paging]).collect::<Vec<_>>());
        let (listed, failure) = match self.ask_words(&words).await {
            Ok(answer) => (Self::show_rows(&page.title, answer, rows_max, picture), None),
            Err(error) => (ListedRows::default(), Some(error)),
        };
        let ListedRows { rows, next, searched } = listed;
        let path = format!("/{}", page.path);
        let acts = page.act.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned()));
        let list = List {
            heading: Heading {
                title: page.title.to_string(),
                acts: self.permit_acts(acts.collect()),
                error: failure.as_ref().map(|error| error.message.clone()),
            },
            above,
            shape: self.query_value("as").unwrap_or_default(),
            rows,
            next: next.map(|(name, place)| self.same_page(&path, name, &place)),
            searched,
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

    fn show_rows(name: &str, answer: OperatorAnswer, rows_max: usize, picture: Option<RowPicture<'_>>) -> ListedRows {
        let is_full = |count: usize| count >= rows_max;
        let before =
            |number: Option<u64>, count| number.filter(|_| is_full(count)).map(|number| ("before", number.to_string()));
        let (rows, count, next, examined) = match answer {
            OperatorAnswer::Tasks(page) => {
                let examined = format!(", {} examined", page.examined);
                let next = page.next.map(|next| ("before", next));
                (table(name, &page.tasks), page.tasks.len(), next, examined)
            }
            OperatorAnswer::Audit(page) => {
                let examined = page.examined_back_to.map(|time| format!(", examined back to {time}"));
                let next = page.next.map(|next| ("before", next));
                (table(name, &page.lines), page.lines.len(), next, examined.unwrap_or_default())
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
                let rows: Vec<ListedApplication> = self.ask(&["app", "list"]).await.unwrap_or_default();
                rows.into_iter().map(|row| row.application.name.name).collect()
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
