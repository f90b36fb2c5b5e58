//! The first page: how the service does, its last day, and what needs a look.

mod bars;

use crate::answer::{class_of, encode, sentence, show, table, words};
use crate::lists::{LATEST, LISTS};
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use bars::{BarPeriod, Bars};
use std::borrow::Cow;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_operator::answers::{
    Concern as FoundConcern, Counts, LastDay, ListCommand, ListedApplication, OperatorAnswer, OverviewAnswer,
    StateCounts, TaskCounts, TaskPeriod,
};
use toolwarrant_operator::render::cell;
use toolwarrant_operator::view::{AnswerView, Show, Table, Tone};

/// In milliseconds.
const HOUR: u64 = 3_600_000;

/// More applications or upstreams are not counted.
const SHARES_MAX: usize = 20;

/// The readiness is a test write.
const LOOK_EVERY: Duration = Duration::from_secs(5);

#[derive(Template)]
#[template(path = "pages/overview.html")]
struct OverviewPage {
    heading: Heading,
    concerns: Vec<Concern>,
    state: Markup,
    days: Vec<Day>,
    /// The same, by application and by upstream.
    shares: [(&'static str, Markup); 2],
}

struct Concern {
    count: String,
    what: String,
    path: String,
}

/// The counts of one kind.
struct Day {
    name: String,
    counts: Vec<(String, String, &'static str)>,
    picture: Markup,
}

impl ConsoleVisit<'_> {
    pub(crate) async fn overview(&self) -> Rendered {
        let asked = ["overview"];
        let answer = match self.ask::<Box<OverviewAnswer>>(&asked).await {
            Ok(answer) => *answer,
            Err(error) => return Rendered::failure(&error),
        };
        let OverviewAnswer { mut server, targets, needs_a_look } = answer;
        let mut days = vec![self.tasks_of_day().await];
        if let Some(LastDay { calls, since, periods, .. }) = server.last_day.take() {
            let begins = [since].into_iter().chain(periods.iter().map(|period| period.until));
            let periods = begins.zip(&periods);
            let periods = periods.map(|(since, period)| BarPeriod { since, counts: &period.calls, path: None });
            let since = since.to_string();
            let name =
                format!("Calls since {} {}, when the server started or a day ago", &since[5..10], &since[11..16]);
            days.push(Day::of(name, &calls, periods.collect()));
        }
        let page = OverviewPage {
            heading: Heading::of("Overview"),
            concerns: self.concerns(needs_a_look),
            days,
            shares: self.shares_of_day().await,
            state: show(&AnswerView::Facts([server.facts(), vec![("targets".into(), targets.show())]].concat())),
        };
        Rendered { live: Some(LOOK_EVERY), ..Rendered::of("Overview", &page).with_words(&asked) }
    }

    /// Counts in the store, which knows the time before the start.
    async fn tasks_of_day(&self) -> Day {
        // Whole hours, so that links and their places stay while the page is looked at.
        let begin = Timestamp((self.console.clock.now().0 / HOUR).saturating_sub(23) * HOUR);
        let since = format!("--since={begin}");
        let counted = self.ask::<TaskCounts>(&["task", "count", &since, "--every=1h"]).await;
        let TaskCounts { tasks, every, .. } = counted.unwrap_or_default();
        let ends = every.iter().skip(1).map(|period| Some(period.since)).chain([None]);
        let periods = every.iter().zip(ends).map(|(TaskPeriod { since, tasks }, end)| {
            let until = end.map(|end| format!("&until={end}")).unwrap_or_default();
            BarPeriod { since: *since, counts: tasks, path: Some(format!("/tasks?since={since}{until}")) }
        });
        Day::of("Tasks that were accepted in the last 24 hours".to_owned(), &tasks, periods.collect())
    }

    async fn shares_of_day(&self) -> [(&'static str, Markup); 2] {
        let applications: Vec<ListedApplication> = self.ask(&["app", "list"]).await.unwrap_or_default();
        let share = |row: ListedApplication| (row.application.name.show(), format!("--app={}", row.application.id));
        let applications = applications.into_iter().map(share).collect();
        let mut upstreams = Vec::new();
        for resource in self.console.catalogue.resource_names() {
            let counts = self.ask::<StateCounts>(&[resource, "states"]).await;
            let prefixes = counts.into_iter().flat_map(|counts| counts.prefixes.into_keys());
            upstreams.extend(prefixes.map(|prefix| (format!("{prefix}*").show(), format!("--prefix={prefix}"))));
        }
        let applications = self.share_day("application", applications).await;
        [("application", applications), ("upstream", self.share_day("upstream", upstreams).await)]
    }

    /// Counts for each of these names with its flag.
    async fn share_day(&self, of: &'static str, shares: Vec<(AnswerView, String)>) -> Markup {
        let mut rows = Vec::new();
        for (name, flag) in shares.into_iter().take(SHARES_MAX) {
            let counted = self.ask::<TaskCounts>(&["task", "count", "--since=24h", LATEST, &flag]).await;
            let TaskCounts { tasks, more, .. } = counted.unwrap_or_default();
            let at_least = if more.is_empty() { "" } else { "at least " };
            let counted = format!("{at_least}{}", cell(&tasks.show()));
            rows.extend((!tasks.0.is_empty() || !more.is_empty()).then(|| vec![name, counted.show()]));
        }
        let head = [of, "tasks"].map(Cow::Borrowed).to_vec();
        table(of, &AnswerView::Table(Table { head, rows }))
    }

    /// Adds what the console itself knows: the latest result of the doctor and of the verification.
    fn concerns(&self, found: Vec<FoundConcern>) -> Vec<Concern> {
        let latest = |path| self.console.examined.latest(path).map(|(_, answer)| answer);
        let doctor = matches!(latest("doctor"), Some(OperatorAnswer::Doctor(found)) if !found.healthy);
        let verify = matches!(latest("verify"), Some(OperatorAnswer::Verification(found)) if !found.sound);
        let examined =
            [(doctor, "the doctor found faults", "/doctor"), (verify, "the audit trail has faults", "/verify")];
        let examined = examined.into_iter().filter(|(is_faulty, ..)| *is_faulty);
        let examined = examined.map(|(_, what, path)| (String::new(), what.to_owned(), path.to_owned()));
        let found = found.into_iter().map(|concern| (concern.count.to_string(), concern.what, path_of(&concern.see)));
        found.chain(examined).map(|(count, what, path)| Concern { count, what: sentence(&what), path }).collect()
    }
}

impl Day {
    fn of(name: String, total: &Counts, periods: Vec<BarPeriod<'_>>) -> Self {
        let class = |outcome: &str| class_of(Tone::of_outcome(outcome));
        let counts = total.0.iter().map(|(outcome, count)| (words(outcome), count.to_string(), class(outcome)));
        let (counts, picture) = (counts.collect(), Markup::of(&Bars::of(&name, periods)));
        Self { name, counts, picture }
    }
}

/// Returns the page of a command that lists.
fn path_of(ListCommand { words, flags }: &ListCommand) -> String {
    let list = LISTS.iter().find(|list| list.words == words).map(|list| format!("/{}?", list.path));
    let fleet = match words[..] {
        [resource, "list"] => Some(format!("/fleet/{resource}?as=table&")),
        _ => None,
    };
    let query: Vec<_> = flags.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    list.or(fleet).unwrap_or_else(|| "/".to_owned()) + &query.join("&")
}
