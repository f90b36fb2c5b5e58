//! The state machine of a task: [`step`], a pure function of the task, an event and the time.
//!
//! The caller stores the new task and its entries in one transaction before it performs the effect, and reports the result of
//! the effect as the next event. So after a crash between any two steps, the phase tells what may have left, and nothing is sent
//! twice that must not be.

mod lines;

use super::task::{Phase, Reading, Readings, Status, Task, UpstreamAnswer, Verdict};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::Remark;

/// Most sends of one task.
const ATTEMPTS_MAX: u8 = 3;
/// Wait before a retry of a send that did not leave; doubled each time.
const BACKOFF: Duration = Duration::from_secs(2);
/// Wait between two readings, and between two look-ups.
const INTERVAL: Duration = Duration::from_secs(3);
/// Time from the decision to send to the last moment at which a byte may leave.
const SEND_WINDOW: Duration = Duration::from_secs(5);
/// Longest time that a send may take, counted from the last moment at which a byte may leave.
pub(super) const SEND_PATIENCE: Duration = Duration::from_secs(10);
/// Longest time that a reading or a look-up may take.
pub(super) const READ_PATIENCE: Duration = Duration::from_secs(30);
/// Longest time that a send found at start may still arrive after its last moment: [`SEND_PATIENCE`] and the skew of clocks.
const QUIESCE: Duration = SEND_PATIENCE.saturating_add(Duration::from_secs(2));
/// Why a reading after the send shows less than it could.
const NOT_COMPARED: &str = "there is no reading from before the send to compare with";

/// An event in the life of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The task is due: `wake_at` has come.
    Due,
    /// A new process found the task. Whatever was in progress is lost.
    Found,
    /// The reading before the send; `None` if it failed.
    Baseline(Option<String>),
    /// The outcome of a send.
    Sent(Sent),
    /// The answer to a look-up: `None` if it failed, `Some(None)` if the upstream knows no such request.
    LookedUp(Option<Option<Sent>>),
    /// A reading of the target, and when it began. It says nothing about anything later than that.
    Probed(Reading, Timestamp),
}

/// The outcome of a send. Texts are for the operator, and clean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Certainly no byte has left; with the reason.
    NotSent(Remark),
    /// The upstream reported success.
    Ok,
    /// The upstream reported a failure; with its text.
    Err(Remark),
    /// The upstream is working on it; with its name of the operation, byte for byte, as it goes back to the upstream.
    Pending(String),
    /// It may have left, and no answer could be understood; with what there is.
    NoAnswer(Remark),
}

/// An effect to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Take the reading before the send.
    Baseline,
    /// Send, unless this moment has passed.
    Send(Timestamp),
    /// Ask the upstream what became of the request.
    LookUp,
    /// Read the target.
    Probe,
}

/// An entry to store in the same transaction as the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Charges one unit, before the first send.
    Charge,
    /// Takes the charge back, because nothing has left.
    ReverseCharge,
    /// Refunds the charge of a task that ended as `failed_silent`.
    Refund,
    /// Frees the target lock. The target has cooled down at this moment.
    Release(Timestamp),
}

impl Entry {
    /// Returns its kind in the ledger; `None` if it is not about money.
    #[must_use]
    pub fn kind(self) -> Option<&'static str> {
        match self {
            Self::Charge => Some("charge"),
            Self::ReverseCharge => Some("reversal"),
            Self::Refund => Some("refund"),
            Self::Release(_) => None,
        }
    }

    /// Returns whether a task in this state must have had this entry. A task has each at most once.
    #[must_use]
    pub fn is_due(self, task: &Task) -> bool {
        let Task { attempts, left, .. } = *task;
        match self {
            Self::Charge => attempts > 0,
            Self::ReverseCharge => attempts > 0 && !left && task.status().is_some(),
            Self::Refund => task.status() == Some(Status::FailedSilent),
            Self::Release(_) => task.status().is_some(),
        }
    }
}

/// What holds of one write on one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The upstream recognises a repeated request and does not carry it out again.
    pub dedupes: bool,
    /// The upstream can be asked what became of a request, by the id of its task.
    pub looks_up: bool,
    /// What the probe can show.
    pub means: Means,
    /// Why nothing will ever be sent to the target or read of it, if that is so: nobody serves it any more. A fragment, in words of ours.
    pub gone: Option<&'static str>,
}

/// What the probe of a write can show on its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Means {
    /// That the effect is there, and that it is not.
    #[default]
    Both,
    /// That the effect is there. An `Absent` counts as `Unreadable`.
    Presence,
    /// That the effect is not there. A `Present` shows nothing.
    Absence,
    /// Neither, for this reason: a fragment, in words of ours. No reading is taken, and no baseline.
    Nothing(&'static str),
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The task after the step.
    pub task: Task,
    /// Entries to store with it.
    pub entries: Vec<Entry>,
    /// What to perform once both are stored.
    pub effect: Option<Effect>,
}

/// Takes `task` through `event`. An event that does not belong to the phase changes nothing: it is a late echo. `facts` is called
/// each time that a decision rests on them: they change while a task is in flight.
#[must_use]
pub fn step(task: Task, event: Event, now: Timestamp, facts: &dyn Fn() -> Facts) -> Step {
    let task = if event == Event::Found { rewound(task, now) } else { task };
    let step = Step { task, entries: Vec::new(), effect: None };
    match (step.task.phase, event) {
        (Phase::Done(_), _) => step,
        (Phase::Ready | Phase::Baseline, Event::Due | Event::Found) => step.ready(now, facts),
        (Phase::Baseline, Event::Baseline(Some(reading))) => {
            let task = Task { baseline: Some(reading), ..step.task };
            Step { task, ..step }.send(now, facts)
        }
        (Phase::Baseline, Event::Baseline(None)) => match facts() {
            // The reading may have found that there can be none.
            known @ (Facts { means: Means::Nothing(_), .. } | Facts { gone: Some(_), .. }) => {
                step.ready(now, &|| known)
            }
            _ => step.wait(now.plus(INTERVAL)),
        },
        (Phase::Sending, Event::Found) => {
            // A send of a process that died can arrive until then.
            let until = step.task.send_not_after.unwrap_or(now).plus(QUIESCE);
            step.wait(until.max(now))
        }
        (Phase::Sending, Event::Due) => step.recover(now, facts),
        (Phase::Sending, Event::Sent(sent) | Event::LookedUp(Some(Some(sent)))) => step.sent(sent, now, facts),
        // The look-up comes after the last moment at which the send could arrive: unknown now means never arrived.
        (Phase::Sending, Event::LookedUp(Some(None))) => step.sent(Sent::NotSent("".into()), now, facts),
        (Phase::Sending, Event::LookedUp(None)) => step.ask_again(now, facts),
        (Phase::Polling, Event::LookedUp(Some(Some(sent @ (Sent::Ok | Sent::Err(_) | Sent::NoAnswer(_)))))) => {
            step.sent(sent, now, facts)
        }
        // The upstream has accepted it once. Nothing that it says later makes the request unsent.
        (Phase::Polling, Event::LookedUp(_)) => step.poll(now, facts),
        (Phase::Polling, Event::Due | Event::Found) => step.perform(Effect::LookUp),
        (Phase::Verifying, Event::Due | Event::Found) => step.verify(now, facts),
        (Phase::Verifying, Event::Probed(reading, begun)) => step.probed(reading, begun, now, facts),
        (_, Event::Baseline(_) | Event::Sent(_) | Event::LookedUp(_) | Event::Probed(..)) => step,
    }
}

/// Ends a task that was in flight in a backup. It may have been sent since, at any moment until `now`, and its target may have been
/// told other things: a reading proves nothing any more, so it ends as `timeout`, and its target cools down.
#[must_use]
pub fn abandoned(task: Task, now: Timestamp) -> Step {
    let outcome = task.outcome.or(Some((UpstreamAnswer::None, now)));
    let last_send_at = task.last_send_at.max(Some(now));
    let task = Task { left: true, unanswered: true, last_send_at, outcome, ..task };
    Step { task, entries: Vec::new(), effect: None }.done(Status::Timeout, now)
}

/// Caps every moment in a task at the latest that it can be, in case the clock was set back between two processes. The start is
/// never moved before the end of the target's cool-down, which may be longer than the task's own deadline.
fn rewound(task: Task, now: Timestamp) -> Task {
    let deadline = task.policy.deadline();
    let longest_wait = deadline.max(Duration::from_millis(task.start_delay_ms));
    let (latest_start, latest_send) = (now.plus(longest_wait), now.plus(SEND_WINDOW));
    let not_before = task.not_before.min(latest_start);
    Task {
        not_before,
        deadline_at: task.deadline_at.min(not_before.plus(deadline)),
        send_not_after: task.send_not_after.map(|at| at.min(latest_send)),
        last_send_at: task.last_send_at.map(|at| at.min(latest_send)),
        outcome: task.outcome.map(|(upstream, at)| (upstream, at.min(now))),
        ..task
    }
}

impl Step {
    /// Takes the reading before the send where one is needed and can show something, and sends. A reading is none from before the
    /// send once anything may have left.
    fn ready(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        if now < self.task.not_before {
            let due = self.task.not_before;
            return self.wait(due);
        }
        let Task { policy, baseline, left, .. } = &self.task;
        let compares = policy.probe.as_ref().is_some_and(|probe| probe.baseline) && baseline.is_none() && !left;
        match facts() {
            Facts { gone: Some(why), .. } => self.hindered(why.to_owned()).unsent(now, facts),
            Facts { means: Means::Both | Means::Presence | Means::Absence, .. } if compares => {
                if now >= self.last_useful_send() {
                    return self.unsent(now, facts);
                }
                self.enter(Phase::Baseline).perform(Effect::Baseline)
            }
            _ => self.send(now, facts),
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
        self.task.outcome = None;
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
            Facts { .. } => self.answered(UpstreamAnswer::None, now, facts),
        }
    }

    fn ask_again(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        if now >= self.task.deadline_at {
            return self.answered(UpstreamAnswer::None, now, facts);
        }
        self.again(now)
    }

    fn sent(mut self, sent: Sent, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        match sent {
            Sent::NotSent(_) => self.not_sent(now, facts),
            Sent::Pending(operation) => {
                self.task.left = true;
                self.task.operation = Some(operation);
                self.poll(now, facts)
            }
            Sent::Ok => self.answered(UpstreamAnswer::Ok, now, facts),
            Sent::Err(_) => self.answered(UpstreamAnswer::Err, now, facts),
            Sent::NoAnswer(_) => self.answered(UpstreamAnswer::None, now, facts),
        }
    }

    fn poll(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        self.enter(Phase::Polling).ask_again(now, facts)
    }

    fn answered(mut self, upstream: UpstreamAnswer, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        self.task.left = true;
        self.task.outcome = Some((upstream, now));
        self.task.unanswered |= upstream == UpstreamAnswer::None;
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

    /// Reads the target, or judges without where no reading can show anything.
    fn verify(self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        match self.means(facts) {
            Some(Means::Both | Means::Presence | Means::Absence) => self.perform(Effect::Probe),
            Some(Means::Nothing(why)) => self.unverifiable(Some(why), now),
            None => self.unverifiable(None, now),
        }
    }

    /// Returns what the probe can show of what was sent; `None` if there is no probe.
    fn means(&self, facts: &dyn Fn() -> Facts) -> Option<Means> {
        let probe = self.task.policy.probe.as_ref()?;
        let uncompared = probe.baseline && self.task.baseline.is_none();
        Some(match facts().means {
            Means::Both if uncompared => Means::Presence,
            Means::Absence if uncompared => Means::Nothing(NOT_COMPARED),
            means => means,
        })
    }

    /// The decision table for what cannot be verified: the upstream's answer decides at once, and nothing else comes before the
    /// deadline. Where an earlier send was not answered, a reported failure does not say that nothing happened.
    fn unverifiable(mut self, why: Option<&str>, now: Timestamp) -> Self {
        let Task { outcome, unanswered, deadline_at, .. } = self.task;
        if let Some(why) = why {
            self.task.reading = None;
            self = self.hindered(format!("nothing can be checked: {why}"));
        }
        match outcome.map(|(upstream, _)| upstream) {
            Some(UpstreamAnswer::Ok) => self.done(Status::SuccessUnverified, now),
            Some(UpstreamAnswer::Err) if !unanswered => self.done(Status::Failed, now),
            _ if now >= deadline_at => self.done(Status::Timeout, now),
            _ => self.wait(deadline_at),
        }
    }

    /// The decision table for tasks with a probe. What the means do not cover counts as unreadable, with one exception: where only an
    /// absence could be seen, a reading without one is all that a success can show, and two of them are enough. One that could not
    /// be read is no such reading: it may have missed the absence that is refunded. A reading that ends at or after the deadline
    /// is the last.
    fn probed(mut self, reading: Reading, begun: Timestamp, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        let Some((upstream, answered_at)) = self.task.outcome else { return self };
        let (shown, hindrance) = match (self.means(facts), reading.verdict) {
            (Some(Means::Nothing(why)), _) => return self.unverifiable(Some(why), now),
            (Some(Means::Presence), Verdict::Absent) => (Verdict::Unreadable, Some("here, that proves no absence")),
            (Some(Means::Absence), Verdict::Present) => (Verdict::Unreadable, Some("here, that proves no success")),
            (Some(_) | None, verdict) => (verdict, None),
        };
        let not_absent = reading.verdict == Verdict::Present;
        self.task.hindrance = hindrance.map(str::to_owned);
        self.task.reading = Some((reading, now));
        if begun >= answered_at.plus(self.task.policy.settle()) {
            let Readings { absent, unreadable, not_absent: unshown } = &mut self.task.settled;
            let count = match shown {
                Verdict::Present => None,
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
            (_, Verdict::Present) => self.done(Status::Success, now),
            (UpstreamAnswer::Ok, _) if answered && settled.absent >= 2 => self.done(Status::FailedSilent, now),
            (UpstreamAnswer::Ok, _) if settled.not_absent >= 2 => self.done(Status::SuccessUnverified, now),
            (UpstreamAnswer::Err, _) if answered && seen => self.done(Status::Failed, now),
            (UpstreamAnswer::None, Verdict::Absent) if self.may_repeat(begun, now) => {
                self.task.not_before = now;
                self.task.settled = Readings::default();
                self.enter(Phase::Ready).wait(now)
            }
            _ if last => self.done(Status::Timeout, now),
            _ => self.again(now),
        }
    }

    /// Returns whether another send may follow one that was not answered and had no effect in time.
    fn may_repeat(&self, begun: Timestamp, now: Timestamp) -> bool {
        let Task { policy, attempts, last_send_at, .. } = &self.task;
        let quiesced = last_send_at.is_none_or(|sent| begun >= sent.plus(QUIESCE).plus(policy.settle()));
        policy.idempotent && quiesced && *attempts < ATTEMPTS_MAX && now < self.last_useful_send()
    }

    /// The last useful moment to send: a later effect could not be read before the deadline.
    fn last_useful_send(&self) -> Timestamp {
        let Task { deadline_at, policy, .. } = &self.task;
        deadline_at.minus(policy.settle())
    }

    /// Gives up sending. If an earlier send may have left, its effect is still judged.
    fn unsent(mut self, now: Timestamp, facts: &dyn Fn() -> Facts) -> Self {
        if self.task.left {
            return self.answered(UpstreamAnswer::None, now, facts);
        }
        if self.task.attempts > 0 {
            self.entries.push(Entry::ReverseCharge);
        }
        self.task.last_send_at = None;
        self.done(Status::Failed, now)
    }

    fn done(mut self, status: Status, now: Timestamp) -> Self {
        if status == Status::FailedSilent {
            self.entries.push(Entry::Refund);
        }
        // Also after success: the target may have been in the wanted state before, with the command still on its way.
        let Task { policy, last_send_at, outcome, unanswered, .. } = &self.task;
        let settled = (*last_send_at).max(outcome.map(|(_, at)| at)).map(|at| at.plus(policy.settle()));
        let given_up = last_send_at.filter(|_| *unanswered).map(|at| at.plus(policy.deadline()));
        self.entries.push(Entry::Release(settled.max(given_up).map_or(now, |quiet| quiet.max(now))));
        self.task.wake_at = None;
        self.task.finished_at = Some(now);
        self.enter(Phase::Done(status))
    }

    /// Keeps why it could not be sent or checked, for its timeline and its evidence.
    fn hindered(mut self, why: String) -> Self {
        self.task.hindrance = Some(why);
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

    /// Waits until the next look-up or reading, which comes at the deadline at the latest.
    fn again(self, now: Timestamp) -> Self {
        let deadline = self.task.deadline_at;
        self.wait(now.plus(INTERVAL).min(deadline))
    }

    fn wait(mut self, until: Timestamp) -> Self {
        self.task.wake_at = Some(until);
        self
    }
}

#[cfg(test)]
mod tests;
