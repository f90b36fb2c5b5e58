//! The state machine of a task: [`step`], a pure function of the task, an event and the time.
//!
//! The caller stores the new task and its entries in one transaction, then performs the effect, and
//! reports its result as the next event. So after a crash between any two steps, the phase shows
//! whether a request may have been sent. The machine never sends a request again unless that is
//! safe.

mod end;
mod entry;
mod facts;
mod happening;
mod sent;
mod times;

pub use end::explain_end;
pub use entry::Entry;
pub use facts::{Facts, Provability};
pub use happening::{RecordedEvent, Resend, TimelineEntry};
pub use sent::{Refusal, Sent};
pub(crate) use times::{READ_PATIENCE, SEND_PATIENCE};

use super::task::{Phase, Reading, Readings, Task, TaskStatus, UpstreamAnswer, Verdict};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use times::{QUIESCE, SEND_WINDOW, delay_times, rewound};
use toolwarrant_base::clock::Timestamp;

const ATTEMPTS_MAX: u8 = 3;
/// Doubled each time.
const BACKOFF: Duration = Duration::from_secs(2);
/// Shortest wait between two readings, and between two look-ups.
const INTERVAL: Duration = Duration::from_secs(3);
/// If all readings fail, the task is sent without one.
const BASELINES_MAX: u8 = 2;
const NOT_COMPARED: &str = "there is no reading from before the send to compare with";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Due,
    /// The effect that was in progress, if any, is lost.
    Found,
    /// Like `Found`, but the former process may have run on another machine.
    TakenOver,
    /// `None` if the reading failed.
    Baseline(Option<String>),
    Sent(Sent),
    /// `None` if the look-up failed, `Some(None)` if the upstream knows no such request.
    LookedUp(
        #[serde(serialize_with = "sent::write_answer", deserialize_with = "sent::read_answer")] Option<Option<Sent>>,
    ),
    /// A reading, and the time at which it began. It proves nothing about any later moment.
    Probed(Reading, Timestamp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Baseline,
    /// Send, unless this moment has passed.
    Send(Timestamp),
    LookUp,
    Probe,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub task: Task,
    pub entries: Vec<Entry>,
    pub effect: Option<Effect>,
}

/// Applies `event` to `task`. An event that does not belong to the phase is late, and changes
/// nothing. Calls `facts` for each decision, because they change while a task is in flight.
#[must_use]
pub fn step(task: Task, event: Event, now: Timestamp, facts: &dyn Fn() -> Facts) -> Step {
    let task = match event {
        _ if task.status().is_some() => task,
        Event::Found => rewound(task, now),
        Event::TakenOver => delay_times(task, now),
        _ => task,
    };
    let step = Step { task, entries: Vec::new(), effect: None };
    match (step.task.phase, event) {
        (Phase::Done(_), _) => step,
        (Phase::Ready | Phase::Baseline, Event::Due | Event::Found | Event::TakenOver) => step.ready(now, facts),
        (Phase::Baseline, Event::Baseline(Some(reading))) => {
            let task = Task { baseline: Some(reading), ..step.task };
            Step { task, ..step }.send(now, facts)
        }
        (Phase::Baseline, Event::Baseline(None)) => match facts() {
            // The reading may have found out that no reading is possible.
            known @ (Facts { provability: Provability::Nothing(_), .. } | Facts { gone: Some(_), .. }) => {
                step.ready(now, &|| known)
            }
            _ => step.on_failed_baseline(now, facts),
        },
        (Phase::Sending, Event::Found | Event::TakenOver) => {
            // A send of another process can arrive until then.
            let until = step.task.send_not_after.unwrap_or(now).plus(QUIESCE);
            step.wait(until.max(now))
        }
        (Phase::Sending, Event::Due) => step.recover(now, facts),
        (Phase::Sending, Event::Sent(sent)) => {
            // No byte leaves after the answer.
            let send_not_after = step.task.send_not_after.map(|at| at.min(now));
            let task = Task { send_not_after, ..step.task };
            Step { task, ..step }.on_sent(sent, now, facts)
        }
        (Phase::Sending, Event::LookedUp(Some(Some(sent)))) => step.on_sent(sent, now, facts),
        // The look-up comes after the last moment at which the send could arrive. A request that is
        // unknown now never arrived.
        (Phase::Sending, Event::LookedUp(Some(None))) => step.on_sent(Sent::NotSent("".into()), now, facts),
        (Phase::Sending, Event::LookedUp(None)) => step.ask_again(now, facts),
        (
            Phase::Polling,
            Event::LookedUp(Some(Some(sent @ (Sent::Ok | Sent::Err(_) | Sent::NoAnswer(_) | Sent::Unsure(_))))),
        ) => step.on_sent(sent, now, facts),
        // The upstream has accepted the request once. No later answer makes it unsent.
        (Phase::Polling, Event::LookedUp(_)) => step.poll(now, facts),
        (Phase::Polling, Event::Due | Event::Found | Event::TakenOver) => step.perform(Effect::LookUp),
        (Phase::Verifying, Event::Due | Event::Found | Event::TakenOver) => step.verify(now, facts),
        (Phase::Verifying, Event::Probed(reading, begun)) => step.on_reading(reading, begun, now, facts),
        (_, Event::Baseline(_) | Event::Sent(_) | Event::LookedUp(_) | Event::Probed(..)) => step,
    }
}

/// Ends a task that was in flight in a backup. Its request may have been sent at any moment until
/// `now`, and other writes may have reached its target since. So no reading can prove anything: the
/// task ends as `timeout` and its target cools down.
#[must_use]
pub fn abandon(task: Task, now: Timestamp) -> Step {
    let outcome = task.outcome.filter(|_| task.left).or(Some((UpstreamAnswer::None, now)));
    let last_send_at = task.last_send_at.max(Some(now));
    let task = Task { left: true, unanswered: true, last_send_at, outcome, ..task };
    Step { task, entries: Vec::new(), effect: None }.end(TaskStatus::Timeout, now)
}

impl Step {
    /// Takes the reading before the send if it can prove something, then sends. Once anything may
    /// have been sent, a reading no longer counts as a baseline. A target that cannot be read does
    /// not prevent the send, which may be what puts it right.
    fn ready(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        if now < self.task.not_before {
            let due = self.task.not_before;
            return self.wait(due);
        }
        let Task { policy, baseline, failed_baselines, left, .. } = &self.task;
        let is_missing = baseline.is_none() && *failed_baselines < BASELINES_MAX;
        let compares = policy.probe.as_ref().is_some_and(|probe| probe.baseline) && is_missing && !left;
        match facts() {
            Facts { gone: Some(why), .. } => self.note_obstacle(why.to_owned()).unsent(now, facts),
            Facts { provability: Provability::Both | Provability::Presence | Provability::Absence, .. } if compares => {
                if now >= self.last_useful_send() {
                    return self.unsent(now, facts);
                }
                self.enter(Phase::Baseline).perform(Effect::Baseline)
            }
            _ => self.send(now, facts),
        }
    }

    fn on_failed_baseline(mut self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        self.task.failed_baselines += 1;
        match self.task.failed_baselines {
            BASELINES_MAX.. => self.send(now, facts),
            _ => self.wait(now.plus(INTERVAL)),
        }
    }

    fn send(mut self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        if now >= self.last_useful_send() {
            return self.unsent(now, facts);
        }
        let not_after = now.plus(SEND_WINDOW);
        if self.task.attempts == 0 {
            self.entries.push(Entry::Charge);
        }
        self.task.attempts += 1;
        self.task.send_not_after = Some(not_after);
        self.task.last_send_at = Some(not_after);
        self.task.operation = None;
        // A refusal of an earlier send is evidence as long as nothing has left.
        self.task.outcome = self.task.outcome.filter(|_| !self.task.left);
        self.enter(Phase::Sending).perform(Effect::Send(not_after))
    }

    fn recover(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        match facts() {
            Facts { looks_up: true, .. } => self.perform(Effect::LookUp),
            Facts { dedupes: true, .. } if now < self.last_useful_send() => {
                let not_after = now.plus(SEND_WINDOW);
                let mut step = self;
                step.task.left = true;
                step.task.send_not_after = Some(not_after);
                step.task.last_send_at = Some(not_after);
                step.perform(Effect::Send(not_after))
            }
            Facts { .. } => self.on_answer(UpstreamAnswer::None, now, facts),
        }
    }

    fn ask_again(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        if now >= self.task.deadline_at {
            return self.on_answer(UpstreamAnswer::None, now, facts);
        }
        let elapsed = self.task.last_send_at.map_or(Duration::ZERO, |sent| now.since(sent));
        self.again(now, elapsed)
    }

    fn on_sent(mut self, sent: Sent, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        match sent {
            Sent::NotSent(_) => self.not_sent(now, facts),
            Sent::Refused(Refusal { code, why: _, precedes_act, is_busy }) => {
                let answer = if is_busy { UpstreamAnswer::Busy(code) } else { UpstreamAnswer::Refused(code) };
                if !precedes_act {
                    return self.on_answer(answer, now, facts);
                }
                self.task.outcome = Some((answer, now));
                self.not_sent(now, facts)
            }
            Sent::Pending(operation) => {
                self.task.left = true;
                self.task.outcome = None;
                self.task.operation = Some(operation);
                self.poll(now, facts)
            }
            Sent::Ok => self.on_answer(UpstreamAnswer::Ok, now, facts),
            Sent::Err(how) => {
                self.task.remark = Some(how).filter(|how| !how.as_str().is_empty());
                self.on_answer(UpstreamAnswer::Err, now, facts)
            }
            Sent::NoAnswer(_) => self.on_answer(UpstreamAnswer::None, now, facts),
            Sent::Unsure(_) => self.on_answer(UpstreamAnswer::Unsure, now, facts),
        }
    }

    fn poll(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        self.enter(Phase::Polling).ask_again(now, facts)
    }

    fn on_answer(mut self, upstream: UpstreamAnswer, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        self.task.left = true;
        self.task.outcome = Some((upstream, now));
        self.task.unanswered |= matches!(upstream, UpstreamAnswer::None | UpstreamAnswer::Unsure);
        self.enter(Phase::Verifying).verify(now, facts)
    }

    fn not_sent(mut self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        let due = now.plus(BACKOFF * 2_u32.pow(u32::from(self.task.attempts.saturating_sub(1))));
        if self.task.attempts >= ATTEMPTS_MAX || due >= self.last_useful_send() {
            return self.unsent(now, facts);
        }
        self.task.not_before = due;
        self.enter(Phase::Ready).wait(due)
    }

    fn verify(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        match self.provability(facts) {
            Some(Provability::Both | Provability::Presence | Provability::Absence) => self.perform(Effect::Probe),
            Some(Provability::Nothing(why)) => self.unverifiable(Some(why), now),
            None => self.unverifiable(None, now),
        }
    }

    fn provability(&self, facts: &dyn Fn() -> Facts) -> Option<Provability> {
        let probe = self.task.policy.probe.as_ref()?;
        let uncompared = probe.baseline && self.task.baseline.is_none();
        Some(match facts().provability {
            Provability::Both if uncompared => Provability::Presence,
            Provability::Absence if uncompared => Provability::Nothing(NOT_COMPARED),
            provability => provability,
        })
    }

    fn unverifiable(mut self, why: Option<&str>, now: Timestamp) -> Self {
        if let Some(why) = why {
            self.task.reading = None;
            self = self.note_obstacle(format!("nothing can be checked: {why}"));
        }
        self.decide_by_answer(now)
    }

    /// Waits for the deadline if there is no answer. A reported failure does not count while an
    /// earlier send is unanswered, because that send may have worked.
    fn decide_by_answer(self, now: Timestamp) -> Self {
        let Task { outcome, unanswered, deadline_at, .. } = self.task;
        match outcome.map(|(upstream, _)| upstream) {
            Some(UpstreamAnswer::Ok) => self.end(TaskStatus::SuccessUnverified, now),
            Some(upstream) if upstream.is_failure() && !unanswered => self.end(TaskStatus::Failed, now),
            _ if now >= deadline_at => self.end(TaskStatus::Timeout, now),
            _ => self.wait(deadline_at),
        }
    }

    /// Counts a verdict that the probe cannot prove on this target as unreadable, with one
    /// exception. If the probe can prove only an absence, two readings without an absence show a
    /// success. A failed reading does not count among them, because it may have missed the absence
    /// that leads to a refund.
    ///
    /// A reading that ends at or after the deadline is the last.
    fn on_reading(mut self, reading: Reading, begun: Timestamp, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        let Some((upstream, answered_at)) = self.task.outcome else { return self };
        let (shown, obstacle) = match (self.provability(facts), reading.verdict) {
            (Some(Provability::Nothing(why)), _) => return self.unverifiable(Some(why), now),
            (Some(Provability::Presence), Verdict::Absent) => {
                (Verdict::Unreadable, Some("here, that proves no absence"))
            }
            (Some(Provability::Absence), Verdict::Present) => {
                (Verdict::Unreadable, Some("here, that proves no success"))
            }
            (Some(_) | None, verdict) => (verdict, None),
        };
        let not_absent = reading.verdict == Verdict::Present;
        self.task.obstacle = obstacle.map(str::to_owned);
        self.task.reading = Some((reading, now));
        if shown == Verdict::Undecidable {
            return self.decide_by_answer(now);
        }
        if begun >= answered_at.plus(self.task.policy.settle()) {
            let Readings { absent, unreadable, not_absent: unshown } = &mut self.task.settled;
            let count = match shown {
                Verdict::Present | Verdict::Undecidable => None,
                Verdict::Absent => Some(absent),
                Verdict::Unreadable if not_absent => Some(unshown),
                Verdict::Unreadable => Some(unreadable),
            };
            if let Some(count) = count {
                *count = count.saturating_add(1);
            }
        }
        let settled = self.task.settled;
        let last = now >= self.task.deadline_at;
        let seen = settled.absent >= 1 || settled.unreadable.saturating_add(settled.not_absent) >= 2 || last;
        // An unanswered earlier send may still take effect, so an absence proves nothing.
        let answered = !self.task.unanswered;
        match (upstream, shown) {
            (_, Verdict::Present) => self.end(TaskStatus::Success, now),
            (UpstreamAnswer::Ok, _) if answered && settled.absent >= 2 => self.end(TaskStatus::FailedSilent, now),
            (UpstreamAnswer::Ok, _) if settled.not_absent >= 2 => self.end(TaskStatus::SuccessUnverified, now),
            _ if upstream.is_failure() && answered && seen => self.end(TaskStatus::Failed, now),
            (UpstreamAnswer::None, Verdict::Absent) if facts().gone.is_none() && self.may_repeat(begun, now) => {
                self.task.not_before = now;
                self.task.settled = Readings::default();
                self.enter(Phase::Ready).wait(now)
            }
            _ if last => self.end(TaskStatus::Timeout, now),
            _ => self.read_again(answered_at, now),
        }
    }

    /// Lets two readings follow each other closely once the effect has settled, because they can
    /// decide. So can a reading at the moment from which an unanswered request may be repeated.
    fn read_again(self, answered_at: Timestamp, now: Timestamp) -> Self {
        let Task { policy, settled, obstacle, outcome, .. } = &self.task;
        let settled_at = answered_at.plus(policy.settle());
        let Readings { absent, unreadable, not_absent } = *settled;
        let is_read_twice = absent.saturating_add(unreadable).saturating_add(not_absent) >= 2;
        // A reported failure ends with the second reading, whatever that proves.
        let is_failure = outcome.is_some_and(|(upstream, _)| upstream.is_failure());
        let elapsed = match obstacle.is_some() && unreadable >= 1 && !is_failure {
            // Such a reading proves nothing here, and a later one will hardly prove more.
            true => policy.deadline(),
            false if now >= settled_at && !is_read_twice => Duration::ZERO,
            false => now.since(answered_at),
        };
        let deciding = [Some(settled_at), self.repeatable_at()].into_iter().flatten().filter(|at| now < *at).min();
        let mut step = self.again(now, elapsed);
        step.task.wake_at = step.task.wake_at.map(|due| deciding.map_or(due, |at| due.min(at)));
        step
    }

    fn repeatable_at(&self) -> Option<Timestamp> {
        let Task { policy, outcome, last_send_at, .. } = &self.task;
        let is_repeatable = policy.idempotent && matches!(outcome, Some((UpstreamAnswer::None, _)));
        last_send_at.filter(|_| is_repeatable).map(|sent| sent.plus(QUIESCE).plus(policy.settle()))
    }

    fn may_repeat(&self, begun: Timestamp, now: Timestamp) -> bool {
        let quiesced = self.repeatable_at().is_some_and(|at| begun >= at);
        quiesced && self.task.attempts < ATTEMPTS_MAX && now < self.last_useful_send()
    }

    /// Returns the time after which the effect of a send could not be read before the deadline.
    fn last_useful_send(&self) -> Timestamp {
        let Task { deadline_at, policy, .. } = &self.task;
        deadline_at.minus(policy.settle())
    }

    /// Evaluates the effect of an earlier send that may have left.
    fn unsent(mut self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        if self.task.left {
            return self.on_answer(UpstreamAnswer::None, now, facts);
        }
        self.task.last_send_at = None;
        self.end(TaskStatus::Failed, now)
    }

    fn end(mut self, status: TaskStatus, now: Timestamp) -> Self {
        self.task.phase = Phase::Done(status);
        let due = [Entry::ReverseCharge, Entry::Refund].into_iter().filter(|entry| entry.is_due(&self.task));
        self.entries.extend(due);
        let Task { policy, baseline, last_send_at, outcome, left, unanswered, .. } = &self.task;
        // Without a reading from before, the target may have been in the wanted state already,
        // while the command is still on its way.
        let is_over = status == TaskStatus::Success && baseline.is_some() && !unanswered;
        let quiet = (*last_send_at).max(outcome.filter(|_| *left).map(|(_, at)| at));
        let settled = quiet.filter(|_| !is_over).map(|at| at.plus(policy.settle()));
        let given_up = last_send_at.filter(|_| *unanswered).map(|at| at.plus(policy.deadline()));
        self.entries.push(Entry::Release(settled.max(given_up).map_or(now, |quiet| quiet.max(now))));
        self.task.wake_at = None;
        self.task.finished_at = Some(now);
        self.enter(Phase::Done(status))
    }

    fn note_obstacle(mut self, why: String) -> Self {
        self.task.obstacle = Some(why);
        self
    }

    fn enter(mut self, phase: Phase) -> Self {
        self.task.phase = phase;
        self
    }

    fn perform(mut self, effect: Effect) -> Self {
        self.task.wake_at = None;
        self.effect = Some(effect);
        self
    }

    /// Waits as long again as it has taken so far, and until the deadline at most.
    fn again(self, now: Timestamp, elapsed: Duration) -> Self {
        let deadline = self.task.deadline_at;
        self.wait(now.plus(elapsed.max(INTERVAL)).min(deadline))
    }

    fn wait(mut self, until: Timestamp) -> Self {
        self.task.wake_at = Some(until);
        self
    }
}

#[cfg(test)]
mod tests;
