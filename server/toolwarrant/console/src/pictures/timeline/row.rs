//! A row of a stored timeline: its place among the lanes, and its words.

use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::clean;
use toolwarrant_tasks::history::TimelineRow;
use toolwarrant_tasks::machine::{Event, Refusal, Sent};
use toolwarrant_tasks::task::{Phase, Reading, TaskStatus, Verdict};

/// From top to bottom. The contract names the target.
pub(super) const LANES: [&str; 5] = ["caller", "server", "platform", "target", "ledger"];
const CALLER: usize = 0;
pub(super) const SERVER: usize = 1;
const PLATFORM: usize = 2;
pub(super) const TARGET: usize = 3;
pub(super) const LEDGER: usize = 4;

pub(super) struct StoredRow<'a>(pub(super) &'a TimelineRow);

/// Lane, kind and text.
type LaneMark = (usize, &'static str, String);

impl<'a> StoredRow<'a> {
    /// Returns the phase after the event.
    pub(super) fn phase(&self) -> Option<Phase> {
        Phase::parse(self.0.phase)
    }

    /// Returns `None` for the acceptance, and for an event of another version.
    fn event(&self) -> Option<&'a Event> {
        self.0.event.as_ref().map(|noted| &noted.event)
    }

    pub(super) fn is_verifying(&self) -> bool {
        self.phase() == Some(Phase::Verifying)
    }

    pub(super) fn reading_begun(&self) -> Option<Timestamp> {
        match self.event() {
            Some(Event::Probed(_, begun)) => Some(*begun),
            _ => None,
        }
    }

    /// Returns lane and kind of the work that goes on until the next row.
    pub(super) fn work(&self) -> Option<(usize, &'static str)> {
        match (self.phase()?, self.event()) {
            (Phase::Baseline, Some(Event::Baseline(_))) => None,
            (Phase::Baseline, _) => Some((SERVER, "read")),
            (Phase::Sending, _) => Some((SERVER, "send")),
            (Phase::Polling, _) => Some((PLATFORM, "work")),
            (Phase::Ready | Phase::Verifying | Phase::Done(_), _) => None,
        }
    }

    pub(super) fn end_mark(&self) -> Option<LaneMark> {
        let Phase::Done(status) = self.phase()? else { return None };
        let kind = match status {
            TaskStatus::Success => "good",
            TaskStatus::Failed => "bad",
            TaskStatus::FailedSilent => "silent",
            TaskStatus::SuccessUnverified | TaskStatus::Timeout | TaskStatus::Dispatched => "open",
        };
        Some((SERVER, kind, format!("◆ {}", status.as_str())))
    }

    pub(super) fn mark(&self, is_first: bool) -> Option<LaneMark> {
        let (lane, kind, text) = match self.event() {
            None if is_first => (CALLER, "plain", "● asked"),
            None => (SERVER, "plain", "│ note"),
            Some(Event::Due) if self.is_verifying() => (PLATFORM, "open", "○ no answer"),
            Some(Event::Due) => return None,
            Some(Event::Found) => (SERVER, "plain", "│ restart"),
            Some(Event::TakenOver) => (SERVER, "plain", "│ takeover"),
            Some(Event::Baseline(Some(_))) => (TARGET, "plain", "● before"),
            Some(Event::Baseline(None)) => (TARGET, "open", "○ unreadable"),
            Some(Event::Sent(sent) | Event::LookedUp(Some(Some(sent)))) => return Some(answer_mark(sent)),
            Some(Event::LookedUp(Some(None))) => (PLATFORM, "open", "○ not known"),
            Some(Event::LookedUp(None)) => (PLATFORM, "open", "○ no answer"),
            Some(Event::Probed(reading, _)) => match reading.verdict {
                Verdict::Present => (TARGET, "good", "◆ present"),
                Verdict::Absent => (TARGET, "bad", "◇ absent"),
                Verdict::Unreadable => (TARGET, "open", "○ unreadable"),
                Verdict::Undecidable => (TARGET, "open", "○ undecidable"),
            },
        };
        Some((lane, kind, text.to_owned()))
    }

    /// Says what happened. Additions to the stored text of the event stay.
    pub(super) fn describe(&self) -> String {
        let stored = self.event().map(|event| clean(&event.to_string()).into_owned());
        match stored.and_then(|stored| self.0.what.strip_prefix(&*stored)).zip(self.event()) {
            Some((rest, event)) => self.describe_event(event) + rest,
            None => self.0.what.clone(),
        }
    }

    fn describe_event(&self, event: &Event) -> String {
        let what = match (event, self.phase()) {
            (Event::Due, Some(Phase::Baseline)) => "the server reads before the send",
            (Event::Due, Some(Phase::Sending)) => "the server sends",
            (Event::Due, Some(Phase::Done(_))) => "the server ends the task",
            (Event::Due, Some(Phase::Verifying)) => "the server counts the send as not answered",
            (Event::Due, Some(Phase::Ready | Phase::Polling) | None) => "the server goes on",
            (Event::Probed(Reading { verdict, expected, observed }, _), _) => {
                let (expected, observed) = (expected.as_str(), observed.as_str());
                return match verdict {
                    Verdict::Present => format!("a reading shows the effect: {observed}"),
                    Verdict::Absent => format!("a reading does not show the effect: {observed}, and not {expected}"),
                    Verdict::Unreadable => format!("nothing could be read: {observed}"),
                    Verdict::Undecidable => format!("a reading cannot decide: {observed}, and wanted is {expected}"),
                };
            }
            (event, _) => return clean(&event.to_string()).into_owned(),
        };
        what.to_owned()
    }
}

fn answer_mark(sent: &Sent) -> LaneMark {
    let (lane, kind, text) = match sent {
        Sent::Ok => (PLATFORM, "good", "● done".to_owned()),
        Sent::Err(_) => (PLATFORM, "bad", "× failed".to_owned()),
        Sent::Refused(Refusal { code, is_busy: true, .. }) => (PLATFORM, "bad", format!("× busy {code}")),
        Sent::Refused(Refusal { code, .. }) => (PLATFORM, "bad", format!("× refused {code}")),
        Sent::Pending(_) => (PLATFORM, "open", "○ accepted".to_owned()),
        Sent::NoAnswer(_) => (PLATFORM, "open", "○ no answer".to_owned()),
        Sent::Unsure(_) => (PLATFORM, "open", "○ unknown".to_owned()),
        Sent::NotSent(_) => (SERVER, "bad", "× not sent".to_owned()),
    };
    (lane, kind, text)
}
