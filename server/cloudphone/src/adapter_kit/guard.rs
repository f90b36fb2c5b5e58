//! The guard of a platform decides when a call may start, so that neither side is overloaded.
//!
//! A call asks for an [`Admission`] before it starts, and reports its end with it. The line applies
//! the platform's limits. The circuit is open while the platform cannot be reached or refuses the
//! credentials. Then writes are refused, and a read tests if the platform is available again.

mod call;
mod circuit;
mod line;
#[cfg(test)]
mod tests;

pub use call::{CallEnd, Class, GuardLimits, Withheld};

use circuit::Circuit;
use line::{Line, Turn};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use toolwarrant::base::ignore_poison;
use toolwarrant::{Clock, Timestamp};

#[derive(Debug)]
pub struct Guard {
    clock: Clock,
    state: Mutex<GuardCore>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardState {
    /// `None` if calls may start. After the time in it, reads try.
    pub open: Option<Withheld>,
    pub waiting: usize,
    pub calls: CallCounts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    pub answered: u64,
    pub failed: u64,
    pub denied: u64,
    pub limited: u64,
    pub abandoned: u64,
    pub withheld: u64,
    pub retried: u64,
}

#[derive(Debug)]
struct GuardCore {
    line: Line,
    circuit: Circuit,
    /// In calls; a retry costs [`CALLS_A_RETRY`].
    retries: u32,
    counts: CallCounts,
}

const PATIENCE: Duration = Duration::from_secs(5);

/// Calls that pay for one retry, so that retries do not double the load in an outage.
const CALLS_A_RETRY: u32 = 10;

const RETRIES_MAX: u32 = 10 * CALLS_A_RETRY;

impl Guard {
    #[must_use]
    pub fn new(limits: GuardLimits, clock: Clock) -> Self {
        let (line, circuit) = (Line::new(limits), Circuit::default());
        let (retries, counts) = (RETRIES_MAX / 2, CallCounts::default());
        let state = GuardCore { line, circuit, retries, counts };
        Self { clock, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Waits until a call may start, or fails at once if it is known that it may not before
    /// `deadline`.
    pub async fn admit(&self, class: Class, deadline: Timestamp) -> Result<Admission<'_>, Withheld> {
        let admitted = self.wait(class, deadline).await;
        if admitted.is_err() {
            self.state().counts.withheld += 1;
        }
        admitted
    }

    /// Returns why a write could not start soon. Charges nothing.
    #[must_use]
    pub fn would_refuse(&self) -> Option<Withheld> {
        let now = self.clock.now();
        let state = self.state();
        let paused = state.line.pause_end().filter(|until| *until > now.plus(PATIENCE)).map(Withheld::Paused);
        let crowded = state.line.is_crowded().then_some(Withheld::Crowded);
        state.circuit.check(Class::Write, now).err().or(paused).or(crowded)
    }

    /// Lets the next read test the platform, whatever pause runs.
    pub fn urge_trial(&self) {
        self.state().circuit.urge();
    }

    /// Takes a retry out of the budget, if it suffices.
    pub fn may_retry(&self) -> bool {
        let mut state = self.state();
        let left = state.retries.checked_sub(CALLS_A_RETRY);
        if let Some(left) = left {
            state.retries = left;
            state.counts.retried += 1;
        }
        left.is_some()
    }

    #[must_use]
    pub fn observe(&self) -> GuardState {
        let GuardCore { line, circuit, counts, .. } = &*self.state();
        GuardState {
            open: circuit.check(Class::Write, self.clock.now()).err(),
            waiting: line.queue_length(),
            calls: *counts,
        }
    }

    async fn wait(&self, class: Class, deadline: Timestamp) -> Result<Admission<'_>, Withheld> {
        let number = self.state().line.join(class).ok_or(Withheld::Crowded)?;
        let place = Place { guard: self, number, class };
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on, a change is not missed.
            changed.as_mut().enable();
            let until = match self.turn(&place, deadline)? {
                Turn::Now(pass) => return Ok(pass),
                Turn::At(moment) => moment.min(deadline),
                Turn::AfterOthers => deadline,
            };
            let _ = self.clock.before(until, changed).await;
        }
    }

    fn turn<'a>(&'a self, place: &Place<'_>, deadline: Timestamp) -> Result<Turn<Admission<'a>>, Withheld> {
        let now = self.clock.now();
        let mut state = self.state();
        state.circuit.check(place.class, now)?;
        let turn = match state.line.turn(place.number, place.class, now) {
            _ if now >= deadline => return Err(Withheld::Crowded),
            Turn::At(moment) if moment >= deadline => {
                let paused = state.line.pause_end().filter(|until| *until > now);
                return Err(paused.map_or(Withheld::Crowded, Withheld::Paused));
            }
            Turn::At(moment) => Turn::At(moment),
            Turn::AfterOthers => Turn::AfterOthers,
            Turn::Now(()) => {
                state.line.start(place.class, now);
                state.retries = (state.retries + 1).min(RETRIES_MAX);
                let is_trial = state.circuit.start();
                Turn::Now(Admission { guard: self, class: place.class, is_trial, end: None })
            }
        };
        Ok(turn)
    }

    fn state(&self) -> MutexGuard<'_, GuardCore> {
        ignore_poison(self.state.lock())
    }
}

struct Place<'a> {
    guard: &'a Guard,
    number: u64,
    class: Class,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.guard.state().line.leave(self.number, self.class);
        self.guard.changed.notify_waiters();
    }
}

/// Permission for one call. One that is dropped without [`Self::end`] was given up.
#[derive(Debug)]
pub struct Admission<'a> {
    guard: &'a Guard,
    class: Class,
    is_trial: bool,
    end: Option<CallEnd>,
}

impl Admission<'_> {
    pub fn end(mut self, end: CallEnd) {
        self.end = Some(end);
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let Self { guard, class, is_trial, end } = *self;
        let now = guard.clock.now();
        let mut state = guard.state();
        state.line.end(class);
        state.circuit.end(is_trial, end, now);
        let CallCounts { answered, failed, denied, limited, abandoned, .. } = &mut state.counts;
        *match end {
            Some(CallEnd::Answered) => answered,
            Some(CallEnd::Failed) => failed,
            Some(CallEnd::Denied) => denied,
            Some(CallEnd::Limited(_)) => limited,
            None => abandoned,
        } += 1;
        if let Some(CallEnd::Limited(pause)) = end {
            state.line.pause(pause, now);
        }
        drop(state);
        guard.changed.notify_waiters();
    }
}
