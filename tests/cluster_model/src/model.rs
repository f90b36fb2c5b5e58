//! The protocol as a model: which steps are possible, and what each of them does.
//!
//! Any step may be late by any time. This covers a process that pauses, and an answer that is lost
//! or comes late. Two times have a limit: from the store's answer to the first byte, and from there
//! to the upstream. Clocks may differ by anything, so `send_not_after` stops no send. An eviction
//! needs no silence: a replica that works may be evicted, too. One primary at a time answers.

use crate::state::{Job, Known, Member, REPLICAS, Rows, State, TASKS, TRANSIT, Write};
use Mutant::*;
use stateright::{Model, Property};

// Times in ticks, as short as possible. An adopter waits for `SEND_WINDOW + QUIESCE`, which is one
// tick more than `HOLD + PAUSE + TRANSIT`.
const HOLD: u8 = 1; // The store's answer holds; 1 s in the product.
const PAUSE: u8 = 1; // A process stands still between that answer and the first byte.
const SEND_WINDOW: u8 = 2; // 5 s in the product.
const QUIESCE: u8 = TRANSIT as u8 + 1; // 12 s in the product.
const COOL_DOWN: u8 = TRANSIT as u8 + 1;
const LAST_VERSION: u8 = 4; // A task is sent twice at most.
const LAG: u8 = 3; // A standby lacks at most this number of acknowledged writes.

/// The protocol, or a change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    Sound,
    NoGate,
    TrueClocks, // No gate, but exact clocks. Safe: then `send_not_after` is enough.
    NoOwner,    // Neither an adoption nor a step compares the owner.
    NoOwnStep,  // A step does not. Safe: the version and the rows of `writer` are enough.
    AtOnce,     // An adopter does not wait.
    OldClock,   // An adopter waits until `send_not_after + QUIESCE`, as the old owner stored it.
    KeepRows,   // An eviction leaves the rows of `writer`. Breaks no other property than theirs.
    CoolApart,  // An acceptance reads the cool-down when it begins, and the lock when it lands.
    NewNumber,  // An acceptance without an answer is repeated under another number.
    Blind,      // An adopter sends again without a look-up.
    Believe,    // A replica believes a store that has forgotten something.
    Alone,      // After a failover, a replica goes on before all others have compared.
    LateJoin,   // A limit: a replica joins that the standby does not know.
    LongPause,  // A limit: a process stands still for too long before its first byte.
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pub mutant: Mutant,
    pub replicas: usize, // At the start. One of their names may start again, once.
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Tick,
    Decide(usize, Write), // From a reading; the write lands later.
    Land(usize, Write),
    LandUnanswered(usize, Write), // The replica does nothing more before a failover.
    LandCopy(usize),
    Ask(usize, Known),
    SendFirstByte(usize, Known),
    Crash(usize),
    Evict(usize),
    Restart(usize), // Another run under this name. The earlier one may still work.
    Arrive { task: usize, left: usize, effect: Option<bool> }, // `None`: the command is lost.
    Lag,            // From here on, the standby receives nothing.
    FailOver,
}

impl Model for Cluster {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut state = State::default();
        state.jobs[..self.replicas].fill(Job::Idle);
        state.rows.members[..self.replicas].fill(Member::Stands);
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        steps.extend([Step::Tick, Step::Lag, Step::FailOver]);
        for at in (0..REPLICAS).filter(|at| state.jobs[*at] != Job::NotStarted) {
            steps.extend([Step::Evict(at), Step::Restart(at), Step::LandCopy(at)]);
            self.push_own(state, at, steps);
        }
        for (task, truth) in state.truths.iter().enumerate() {
            for left in (0..=TRANSIT).filter(|left| truth.under_way[*left] > 0) {
                steps.extend([None, Some(false), Some(true)].map(|effect| Step::Arrive { task, left, effect }));
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = *last;
        let serves = |at| self.serves(last, at);
        let stands = |at| last.rows.members[at] == Member::Stands;
        match step {
            Step::Tick => tick(&mut state)?,
            Step::Decide(at, write) => state.jobs[at] = Job::Decided(write),
            Step::Land(at, write) => {
                let is_missed = self.land(&mut state, at, write)? && last.standby.is_some();
                state.are_ahead[at] |= is_missed;
                state.missed += u8::from(is_missed);
                (state.missed <= LAG).then_some(())?;
            }
            Step::LandUnanswered(at, write) => {
                self.land(&mut state, at, write).filter(|has_landed| *has_landed && last.standby.is_some())?;
                state.jobs[at] = Job::Unanswered(write);
            }
            Step::LandCopy(at) => {
                let task = state.copies[at].take().filter(|_| stands(at) && serves(at) && last.rows.cool == 0)?;
                (state.rows.owners[task], state.rows.versions[task]) = (Some(at), 1);
                (last.rows.owners == [None; TASKS]).then_some(())?;
            }
            Step::Ask(at, known) => {
                let left = HOLD + PAUSE + u8::from(self.mutant == LongPause);
                let job = if stands(at) { Job::Cleared(known, left) } else { Job::Gone };
                serves(at).then(|| state.jobs[at] = job)?;
            }
            Step::SendFirstByte(at, known) => {
                let is_late =
                    last.truths[known.task].stamp < QUIESCE || last.rows.versions[known.task] != known.version;
                (self.mutant != TrueClocks || !is_late).then(|| state.jobs[at] = Job::Sent(known))?;
                state.truths[known.task].under_way[TRANSIT] += 1;
                state.second_was_sent |= known.task == 1;
                state.has_clash |= state.truths.iter().flat_map(|truth| truth.under_way).sum::<u8>() > 1;
            }
            Step::Crash(at) => state.jobs[at] = Job::Gone,
            Step::Evict(at) => {
                let is_able = |other| other != at && stands(other) && serves(other) && last.jobs[other] != Job::Gone;
                (stands(at) && (0..REPLICAS).any(is_able)).then(|| state.rows.members[at] = Member::Evicted)?;
            }
            Step::Restart(at) => {
                let new = Some(self.replicas).filter(|new| last.jobs[*new] == Job::NotStarted && serves(*new))?;
                (last.standby.is_none() || self.mutant == LateJoin).then(|| state.jobs[new] = Job::Idle)?;
                (state.rows.members[at], state.rows.members[new]) = (Member::Evicted, Member::Stands);
            }
            Step::Arrive { task, left, effect } => {
                let truth = &mut state.truths[task];
                truth.under_way[left] -= 1;
                truth.arrivals = (truth.arrivals + u8::from(effect.is_some())).min(2);
                truth.acted |= effect == Some(true);
                state.has_clash |= effect.is_some() && task == 0 && last.second_was_sent;
            }
            Step::Lag => {
                let fails_over = [Sound, Believe, Alone, LateJoin].contains(&self.mutant);
                (fails_over && !last.has_failed_over && last.standby.is_none())
                    .then(|| state.standby = Some(last.rows))?;
            }
            Step::FailOver => self.fail_over(&mut state)?,
        }
        // A standby begins to lag right before a write; earlier, it would make no difference.
        let is_level = |state: &State| state.standby.is_none_or(|standby| standby == state.rows);
        (last.standby.is_none() || !is_level(last) || !is_level(&state)).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let (always, sometimes) = (Property::always, Property::sometimes);
        vec![
            always("a command arrives at most once", |_, s: &State| s.truths.iter().all(|truth| truth.arrivals <= 1)),
            always("one command per target at a time", |_, s| !s.has_clash),
            always("a task ends at most once", |_, s| s.rows.ends.iter().all(|ends| *ends <= 1)),
            always("one refund, with the end", |_, s| (0..TASKS).all(|t| s.rows.refunds[t] <= s.rows.ends[t].min(1))),
            always("no refund for an effect", |_, s| (0..TASKS).all(|t| s.rows.refunds[t] == 0 || !s.truths[t].acted)),
            always("an evicted epoch writes nothing", |_, s| !s.evicted_wrote),
            sometimes("both tasks end", |_, s: &State| s.rows.ends == [1, 1]),
            sometimes("a task of a dead replica ends", |_, s| {
                (0..TASKS).any(|task| s.truths[task].was_left && s.rows.ends[task] > 0)
            }),
        ]
    }
}

impl Cluster {
    /// Returns true if the store serves this replica. A replica that compares its count of batches
    /// with one that is less in the store stops.
    fn serves(&self, state: &State, at: usize) -> bool {
        !(state.has_failed_over && state.are_ahead[at])
    }

    /// Adds the steps that a replica can take itself. A write that follows from a reading has two.
    /// For any other, the time between its decision and its landing makes no difference.
    fn push_own(&self, state: &State, at: usize, steps: &mut Vec<Step>) {
        let job = state.jobs[at];
        steps.extend((![Job::Idle, Job::Gone].contains(&job)).then_some(Step::Crash(at)));
        let (mut writes, mut decisions) = (Vec::new(), Vec::new());
        match job {
            Job::Idle => {
                let accept = (state.accepted < TASKS).then_some(Write::Accept { was_cool: state.rows.cool == 0 });
                let adopt = (0..TASKS).filter(|task| is_orphan(&state.rows, *task)).map(Write::Adopt);
                if self.mutant == CoolApart { &mut decisions } else { &mut writes }.extend(accept);
                if self.mutant == NoOwner { &mut decisions } else { &mut writes }.extend(adopt);
            }
            Job::Ready(known) => writes.push(Write::Advance(known)),
            Job::Committed(known) | Job::Cleared(known, _) => {
                let asks = job == Job::Committed(known) && ![NoGate, TrueClocks].contains(&self.mutant);
                steps.push(if asks { Step::Ask(at, known) } else { Step::SendFirstByte(at, known) });
                writes.push(Write::EndWithRefund(known));
                writes.extend((known.version < LAST_VERSION).then_some(Write::Advance(known)));
            }
            Job::Sent(known) | Job::Waiting(known, 0) => {
                let (truth, is_adopted) = (&state.truths[known.task], job != Job::Sent(known));
                writes.push(Write::End(known));
                let had_no_effect = !truth.acted && (is_adopted || truth.arrivals > 0);
                decisions.extend(had_no_effect.then_some(Write::EndWithRefund(known)));
                let repeats = is_adopted && (truth.arrivals == 0 || self.mutant == Blind);
                decisions.extend((repeats && known.version < LAST_VERSION).then_some(Write::Advance(known)));
            }
            Job::Decided(write) => writes.push(write),
            Job::NotStarted | Job::Waiting(..) | Job::Unanswered(_) | Job::Gone => {}
        }
        steps.extend(decisions.into_iter().map(|write| Step::Decide(at, write)));
        steps.extend(writes.into_iter().flat_map(|write| [Step::Land(at, write), Step::LandUnanswered(at, write)]));
    }

    /// Carries out a write that has reached the store. Returns true if it changed a row.
    fn land(&self, state: &mut State, at: usize, write: Write) -> Option<bool> {
        self.serves(state, at).then_some(())?;
        let stands = state.rows.members[at] == Member::Stands;
        let passes = stands || self.mutant == KeepRows;
        let next = if passes { self.apply(state, at, write) } else { None };
        state.evicted_wrote |= next.is_some() && !stands;
        state.jobs[at] = next.unwrap_or(if passes { Job::Idle } else { Job::Gone });
        Some(next.is_some())
    }

    /// Applies a write that has passed the fence of its epoch. Returns the next job of the replica.
    fn apply(&self, state: &mut State, at: usize, write: Write) -> Option<Job> {
        let State { rows, truths, accepted, .. } = state;
        if let Write::Advance(known) | Write::End(known) | Write::EndWithRefund(known) = write {
            let is_own = rows.owners[known.task] == Some(at) || [NoOwner, NoOwnStep].contains(&self.mutant);
            (rows.versions[known.task] == known.version && is_own).then_some(())?;
        }
        let known = match write {
            Write::Accept { was_cool } => {
                let is_cool = if self.mutant == CoolApart { was_cool } else { rows.cool == 0 };
                (is_cool && rows.owners == [None; TASKS] && *accepted < TASKS).then_some(())?;
                state.has_clash |= rows.cool > 0;
                state.copies[at] = (self.mutant == NewNumber).then_some(*accepted);
                (rows.owners[*accepted], *accepted) = (Some(at), *accepted + 1);
                Known { task: *accepted - 1, version: 1 }
            }
            Write::Adopt(task) => {
                let owner = rows.owners[task].filter(|_| is_orphan(rows, task) || self.mutant == NoOwner)?;
                truths[task].was_left |= state.jobs[owner] == Job::Gone;
                rows.owners[task] = Some(at);
                Known { task, version: rows.versions[task] }
            }
            Write::Advance(known) => {
                let uses_clocks = [OldClock, TrueClocks].contains(&self.mutant);
                truths[known.task].stamp = if uses_clocks { SEND_WINDOW + QUIESCE } else { 0 };
                Known { version: known.version + 1, ..known }
            }
            Write::End(known) | Write::EndWithRefund(known) => {
                (rows.owners[known.task], rows.versions[known.task], rows.cool) = (None, 0, COOL_DOWN);
                rows.ends[known.task] += 1;
                rows.refunds[known.task] += u8::from(write == Write::EndWithRefund(known));
                return Some(Job::Idle);
            }
        };
        rows.versions[known.task] = known.version;
        Some(match (write, self.mutant) {
            _ if known.version % 2 == 1 => Job::Ready(known),
            (Write::Adopt(_), AtOnce) => Job::Waiting(known, 0),
            (Write::Adopt(_), OldClock) => Job::Waiting(known, truths[known.task].stamp),
            (Write::Adopt(_), _) => Job::Waiting(known, SEND_WINDOW + QUIESCE),
            _ => Job::Committed(known),
        })
    }

    /// Makes the standby the store. Each replica that stands compares its count before any of them
    /// goes on. If one is ahead, the store serves no replica until an operator decides.
    fn fail_over(&self, state: &mut State) -> Option<()> {
        state.rows = state.standby.take()?;
        (state.has_failed_over, state.missed) = (true, 0);
        let is_missed = |at: usize| state.are_ahead[at] && state.rows.members[at] == Member::Stands;
        let is_lost = (0..REPLICAS).any(is_missed) && self.mutant != Alone;
        state.are_ahead = state.are_ahead.map(|is_ahead| (is_ahead || is_lost) && self.mutant != Believe);
        state.jobs = state.jobs.map(|job| if let Job::Unanswered(write) = job { Job::Decided(write) } else { job });
        Some(())
    }
}

fn is_orphan(rows: &Rows, task: usize) -> bool {
    rows.owners[task].is_some_and(|owner| rows.members[owner] == Member::Evicted)
}

/// Lets a tick pass. A command has arrived or is lost before its last tick ends.
fn tick(state: &mut State) -> Option<()> {
    for truth in &mut state.truths {
        (truth.under_way[0] == 0).then(|| truth.under_way.rotate_left(1))?;
        truth.stamp = truth.stamp.saturating_sub(1);
    }
    state.jobs = state.jobs.map(|job| match job {
        Job::Cleared(known, 0) => Job::Committed(known),
        Job::Cleared(known, left) => Job::Cleared(known, left - 1),
        Job::Waiting(known, left) => Job::Waiting(known, left.saturating_sub(1)),
        job => job,
    });
    state.rows.cool = state.rows.cool.saturating_sub(1);
    state.standby.iter_mut().for_each(|rows| rows.cool = rows.cool.saturating_sub(1));
    Some(())
}
