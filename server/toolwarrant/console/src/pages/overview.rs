//! The first page: how the service does, its last day, and what needs a look.

mod bars;

use crate::answer::{Cell, cells, class_of, encode, show};
use crate::lists::LISTS;
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use bars::Bars;
use std::time::Duration;
use toolwarrant_operator::answers::{
    Concern as FoundConcern, Counts, LastDay, ListCommand, OperatorAnswer, OverviewAnswer, Period,
};
use toolwarrant_operator::view::{AnswerView, Show, Tone};

/// The readiness is a test write.
const LOOK_EVERY: Duration = Duration::from_secs(5);

#[derive(Template)]
#[template(path = "pages/overview.html")]
struct OverviewPage {
    heading: Heading,
    concerns: Vec<Concern>,
    state: Markup,
    since: Vec<Cell>,
    days: Vec<Day>,
}

struct Concern {
    count: String,
    what: String,
    path: String,
}

/// The counts of one kind.
struct Day {
    name: &'static str,
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
        let last_day = server.last_day.take();
        let day = |name, total: &Counts, counts: fn(&Period) -> &Counts, periods: &[Period]| {
            let class = |outcome: &str| class_of(Tone::of_outcome(outcome));
            let total =
                total.0.iter().map(|(outcome, count)| (outcome.replace('_', " "), count.to_string(), class(outcome)));
            Day { name, counts: total.collect(), picture: Markup::of(&Bars::of(periods, counts, name)) }
        };
        let days = last_day.as_ref().map(|LastDay { calls, tasks, periods, .. }| {
            vec![
                day("calls by outcome", calls, |period| &period.calls, periods),
                day("ended tasks", tasks, |period| &period.tasks, periods),
            ]
        });
        let since = last_day.as_ref().map(|day| cells(&day.since.show()));
        let page = OverviewPage {
            heading: Heading::of("overview"),
            concerns: self.concerns(needs_a_look),
            since: since.unwrap_or_default(),
            days: days.unwrap_or_default(),
            state: show(&AnswerView::Facts([server.facts(), vec![("targets".into(), targets.show())]].concat())),
        };
        Rendered { live: Some(LOOK_EVERY), ..Rendered::of("overview", &page).with_words(&asked) }
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
        found.chain(examined).map(|(count, what, path)| Concern { count, what, path }).collect()
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
