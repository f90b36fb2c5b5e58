//! The picture of a task: lanes for those who acted, over one axis of time. Start at
//! [`Timeline::of`].
//!
//! Events keep the order of the store, and each has a place of its own. So a clock that was set
//! back gives no negative length. A long time between two events is folded.

mod axis;
mod row;

use askama::Template;
use axis::Axis;
pub use axis::TimelineFold;
pub(crate) use axis::describe_length;
use row::{LANES, LEDGER, SERVER, StoredRow, TARGET};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_tasks::history::{LedgerEntry, TaskHistory};
use toolwarrant_tasks::task::Phase;

const CHARACTER_WIDTH: usize = 6;

/// The picture as numbers. It displays as an SVG with classes for its colours. The
/// steps are a list for those who do not see it.
#[derive(Debug, Default, Template)]
#[template(path = "pictures/timeline.svg")]
pub struct Timeline {
    title: String,
    pub lanes: Vec<String>,
    pub width: usize,
    /// The place of each event, in the order of the store.
    pub events: Vec<usize>,
    pub bars: Vec<TimelineBar>,
    pub marks: Vec<TimelineMark>,
    pub folds: Vec<TimelineFold>,
    pub moments: Vec<TimelineMoment>,
    /// Places with their time since the acceptance, where there is room.
    pub ticks: Vec<(usize, String)>,
    pub steps: Vec<TimelineStep>,
}

/// A stretch of time on a lane: `read`, `send`, `work` or `settle`.
#[derive(Debug)]
pub struct TimelineBar {
    pub lane: usize,
    pub begin: usize,
    pub end: usize,
    pub kind: &'static str,
}

#[derive(Debug)]
pub struct TimelineMark {
    pub lane: usize,
    pub place: usize,
    /// `good`, `bad`, `open` or `plain`.
    pub kind: &'static str,
    /// Begins with a sign, so that it can be read without colour.
    pub text: String,
}

/// A line across the lanes: `end`, `now`, `next` or `deadline`.
#[derive(Debug)]
pub struct TimelineMoment {
    pub place: usize,
    pub kind: &'static str,
    /// Since the acceptance.
    pub after: String,
}

#[derive(Debug)]
pub struct TimelineStep {
    /// The number of an event, from 1.
    pub number: Option<usize>,
    pub at: Timestamp,
    pub lane: String,
    pub what: String,
    /// The point on the axis.
    point: usize,
}

impl Timeline {
    /// Draws a history. Returns `None` if that has no timeline. `resource` names the target.
    #[must_use]
    pub fn of(title: &str, resource: Option<&str>, history: &TaskHistory, now: Timestamp) -> Option<Self> {
        let rows: Vec<_> = history.timeline.iter().map(StoredRow).collect();
        let mut drawing = Drawing { accepted_at: rows.first()?.0.at, ..Drawing::default() };
        drawing.picture.lanes = LANES.map(str::to_owned).to_vec();
        drawing.picture.lanes[TARGET] = resource.unwrap_or(LANES[TARGET]).to_owned();
        drawing.picture.title = title.to_owned();
        for (index, row) in rows.iter().enumerate() {
            drawing.add_row(row, index.checked_sub(1).and_then(|before| rows.get(before)));
        }
        drawing.add_settling(&rows, history.settle_seconds);
        drawing.add_ledger(&rows, &history.ledger);
        drawing.add_moments(history, now, rows.last()?);
        Some(drawing.place())
    }

    /// Returns a place, or a length, as a share of the width, so that the picture fills its page
    /// and its texts keep their size.
    fn share(&self, place: &usize) -> String {
        format!("{:.2}%", *place as f64 * 100.0 / self.width.max(1) as f64)
    }

    /// Returns the middle of a lane.
    fn y(&self, lane: &usize) -> usize {
        lane * 40 + 48
    }

    fn bottom(&self) -> usize {
        self.y(&self.lanes.len()) - 24
    }

    fn height(&self) -> usize {
        self.bottom() + 20 + self.moments.len() * 14
    }
}

impl TimelineBar {
    fn middle(&self) -> usize {
        usize::midpoint(self.begin, self.end)
    }

    fn width(&self) -> usize {
        self.end.saturating_sub(self.begin)
    }
}

impl TimelineMark {
    fn sign(&self) -> &str {
        self.text.split_once(' ').map_or(&self.text, |(sign, _)| sign)
    }

    fn label(&self) -> &str {
        self.text.split_once(' ').map_or("", |(_, label)| label)
    }
}

/// Until [`Self::place`], each place in the picture is the number of a point on the axis.
#[derive(Default)]
struct Drawing {
    axis: Axis,
    picture: Timeline,
    accepted_at: Timestamp,
}

impl Drawing {
    fn add_row(&mut self, row: &StoredRow<'_>, before: Option<&StoredRow<'_>>) {
        let begun = row.reading_begun().map(|begun| self.axis.add_before(begun, row.0.at));
        let point = self.axis.add_event(row.0.at);
        self.add_work(before, point);
        if let Some(begin) = begun {
            self.add_bar(SERVER, begin, point, "read");
        }
        let (end, mark) = (row.end_mark(), row.mark(before.is_none()));
        let lane = mark.as_ref().map_or(SERVER, |(lane, ..)| *lane);
        let is_hidden = |lane| end.is_some() && lane == SERVER;
        for (lane, kind, text) in mark.filter(|(lane, ..)| !is_hidden(*lane)).into_iter().chain(end.clone()) {
            self.add_mark(lane, point, kind, text);
        }
        self.picture.events.push(point);
        self.add_step(Some(self.picture.events.len()), (row.0.at, point), lane, row.describe());
    }

    /// Draws the work that the row before has begun.
    fn add_work(&mut self, before: Option<&StoredRow<'_>>, end: usize) {
        let begin = self.picture.events.last().copied();
        if let (Some(begin), Some((lane, kind))) = (begin, before.and_then(|row| row.work())) {
            self.add_bar(lane, begin, end, kind);
        }
    }

    /// Draws the time that each answer had to take effect, until the engine decided otherwise.
    fn add_settling(&mut self, rows: &[StoredRow<'_>], seconds: Option<u32>) {
        let Some(seconds) = seconds else { return };
        for answer in 1..rows.len() {
            if !rows[answer].is_verifying() || rows[answer - 1].is_verifying() {
                continue;
            }
            let begin = self.picture.events[answer];
            let settled = Timestamp(self.axis.time(begin).0.saturating_add(u64::from(seconds) * 1_000));
            let decided = (answer..rows.len()).find(|row| !rows[*row].is_verifying());
            let decided = decided.map(|row| self.picture.events[row]);
            let end = match decided.filter(|point| self.axis.time(*point) < settled) {
                Some(point) => point,
                None => {
                    let point = self.axis.add(settled);
                    self.add_step(None, (settled, point), TARGET, "the settling time ends".to_owned());
                    point
                }
            };
            self.add_bar(TARGET, begin, end, "settle");
        }
    }

    fn add_ledger(&mut self, rows: &[StoredRow<'_>], ledger: &[LedgerEntry]) {
        for LedgerEntry { kind, at } in ledger {
            let (kind, at) = (*kind, *at);
            let sent = rows.iter().position(|row| row.phase() == Some(Phase::Sending)).filter(|_| kind == "charge");
            let point = self.picture.events[sent.unwrap_or(rows.len() - 1)];
            let (sign, style) = if kind == "charge" { ("−", "plain") } else { ("+", "silent") };
            self.add_mark(LEDGER, point, style, format!("{sign}1 {kind}"));
            self.add_step(None, (at, point), LEDGER, format!("{kind} of one unit"));
        }
    }

    fn add_moments(&mut self, history: &TaskHistory, now: Timestamp, last: &StoredRow<'_>) {
        match (last.end_mark(), self.picture.events.last().copied()) {
            (Some(_), Some(point)) => self.add_moment("end", point),
            _ => {
                let point = self.axis.add(now);
                self.add_work(Some(last), point);
                self.add_moment("now", point);
                if let Some(due) = history.due_at.filter(|due| *due > now) {
                    let point = self.axis.add(due);
                    self.add_moment("next", point);
                    self.add_step(None, (due, point), SERVER, "the server goes on".to_owned());
                }
            }
        }
        let deadline = history.deadline_at;
        // A task that ended before has none.
        if last.end_mark().is_none() || deadline <= last.0.at {
            let point = self.axis.add(deadline);
            self.add_moment("deadline", point);
            self.add_step(None, (deadline, point), SERVER, "the deadline".to_owned());
        }
    }

    fn add_bar(&mut self, lane: usize, begin: usize, end: usize, kind: &'static str) {
        let width = if kind == "settle" { 0 } else { kind.len() * CHARACTER_WIDTH + 10 };
        self.axis.reserve(begin, lane, width);
        self.axis.reserve(end, lane, 0);
        self.picture.bars.push(TimelineBar { lane, begin, end, kind });
    }

    fn add_mark(&mut self, lane: usize, place: usize, kind: &'static str, text: String) {
        self.axis.reserve(place, lane, text.chars().count() * CHARACTER_WIDTH + 10);
        self.picture.marks.push(TimelineMark { lane, place, kind, text });
    }

    fn add_moment(&mut self, kind: &'static str, place: usize) {
        let after = format!("+{}", describe_length(self.axis.time(place).since(self.accepted_at)));
        self.picture.moments.push(TimelineMoment { place, kind, after });
    }

    fn add_step(&mut self, number: Option<usize>, (at, point): (Timestamp, usize), lane: usize, what: String) {
        let lane = self.picture.lanes[lane].clone();
        self.picture.steps.push(TimelineStep { number, at, lane, what, point });
    }

    fn place(self) -> Timeline {
        let Self { axis, mut picture, accepted_at } = self;
        let times: Vec<_> = picture.events.iter().map(|point| axis.time(*point)).collect();
        let (places, folds, width) = axis.place();
        let bars = picture.bars.iter_mut().flat_map(|bar| [&mut bar.begin, &mut bar.end]);
        let points = bars.chain(&mut picture.events).chain(picture.marks.iter_mut().map(|mark| &mut mark.place));
        points.chain(picture.moments.iter_mut().map(|moment| &mut moment.place)).for_each(|at| *at = places[*at]);
        picture.steps.sort_by_key(|step| (axis.time(step.point), step.point));
        let mut free = 0;
        for (place, time) in picture.events.iter().zip(&times) {
            if *place >= free {
                let text = format!("+{}", describe_length(time.since(accepted_at)));
                free = place + text.len() * CHARACTER_WIDTH + 16;
                picture.ticks.push((*place, text));
            }
        }
        Timeline { folds, width, ..picture }
    }
}

#[cfg(test)]
mod tests;
