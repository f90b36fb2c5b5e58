//! The page of a task: its picture, its evidence, why it ended so, and its events.

use crate::answer::{Cell, cells, sentence, show, words};
use crate::markup::Markup;
use crate::pictures::timeline::{Timeline, TimelineStep};
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use std::time::Duration;
use toolwarrant_base::text::Remark;
use toolwarrant_operator::answers::TaskAnswer;
use toolwarrant_operator::view::Show;
use toolwarrant_tasks::history::{TaskHistory, TimelineRow};
use toolwarrant_tasks::machine::Event;

#[derive(Template)]
#[template(path = "pages/task.html")]
struct TaskPage {
    heading: Heading,
    status: Vec<Cell>,
    summary: Markup,
    why: String,
    meaning: &'static str,
    picture: Markup,
    /// The least width of the picture.
    width: usize,
    evidence: Vec<(&'static str, String)>,
    steps: [(&'static str, Vec<Step>); 2],
}

/// A row of the lists of a task.
struct Step {
    number: String,
    at: Vec<Cell>,
    lane: String,
    what: String,
}

const LOOK_EVERY: Duration = Duration::from_secs(1);

impl ConsoleVisit<'_> {
    pub(crate) async fn task(&self, id: &str) -> Rendered {
        let asked = ["task", "show", "--", id];
        let answer = match self.ask::<Box<TaskAnswer>>(&asked).await {
            Ok(answer) => *answer,
            Err(error) => return Rendered::failure(&error),
        };
        let TaskAnswer { task, resource, refunded_at, meaning, call, history } = answer;
        let title = format!("{} {}", task.task_id, task.status.as_str());
        let now = self.console.clock.now();
        let mut picture = Timeline::of(&title, Some(&task.target.resource), &history, now);
        let step = |TimelineStep { number, at, lane, what, .. }: TimelineStep| Step {
            number: number.map(|number| number.to_string()).unwrap_or_default(),
            at: cells(&at.show()),
            lane: words(&lane),
            what: sentence(&what),
        };
        let steps = picture.as_mut().map(|picture| std::mem::take(&mut picture.steps)).unwrap_or_default();
        let is_past = |step: &TimelineStep| step.number.is_some() || step.at <= now;
        let (past, to_come): (Vec<_>, Vec<_>) = steps.into_iter().partition(is_past);
        let steps = [("What happened", past), ("What is to come", to_come)]
            .map(|(name, steps)| (name, steps.into_iter().map(step).collect()));
        let heading = format!("{} on {}", task.tool, task.target.id);
        let title = format!("{heading}: {}", task.status.as_str());
        let live = task.finished_at.is_none().then_some(LOOK_EVERY);
        let status = cells(&task.status.show());
        let evidence = list_evidence(&history);
        let why = history.why.clone();
        // The page shows the history in other ways.
        let history = TaskHistory {
            before: None,
            why: None,
            evidence: None,
            ledger: Vec::new(),
            timeline: Vec::new(),
            ..history
        };
        let facts = TaskAnswer { task, resource, refunded_at, meaning: None, call, history };
        let page = TaskPage {
            heading: Heading::of(&heading),
            status,
            summary: show(&facts),
            why: why.as_deref().map(sentence).unwrap_or_default(),
            width: picture.as_ref().map_or(0, |picture| picture.width),
            meaning: meaning.unwrap_or_default(),
            picture: picture.map(|picture| Markup::of(&picture)).unwrap_or_default(),
            evidence,
            steps,
        };
        Rendered { live, ..Rendered::of(&title, &page).with_words(&asked) }
    }
}

/// Returns the reading before the send, what a success would be, and what the latest reading found.
fn list_evidence(history: &TaskHistory) -> Vec<(&'static str, String)> {
    let ended = history.evidence.as_ref();
    let ended = ended.map(|evidence| (&evidence.expected, &evidence.observed));
    let (expected, observed) = ended.or_else(|| history.timeline.iter().rev().find_map(read_probe)).unzip();
    let [expected, observed] = [expected, observed].map(|reading| reading.map(Remark::as_str));
    let found = [("Before", history.before.as_deref()), ("Expected", expected), ("Observed", observed)];
    found.into_iter().filter_map(|(name, text)| Some((name, text?.to_owned()))).collect()
}

fn read_probe(row: &TimelineRow) -> Option<(&Remark, &Remark)> {
    match &row.event.as_ref()?.event {
        Event::Probed(reading, _) => Some((&reading.expected, &reading.observed)),
        _ => None,
    }
}
