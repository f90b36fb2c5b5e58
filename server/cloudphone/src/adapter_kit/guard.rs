//! The guard of a platform decides when a call may start, so that neither side is overloaded.
//!
//! A call asks for an [`Admission`] before it starts, and reports its end with it. Calls start in
//! the order in which they came, within the platform's limits. The circuit is open while the
//! platform cannot be reached or refuses the credentials. Then writes are refused, and a read tests
//! if the platform is available again.

mod call;
mod circuit;
mod pace;
#[cfg(test)]
mod tests;

pub use call::{CallEnd, Class, GuardLimits, Withheld};

use circuit::Circuit;
use pace::CallPace;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{self, Semaphore, SemaphorePermit};
use toolwarrant::base::ignore_poison;
use toolwarrant::{Clock, Timestamp};

#[derive(Debug)]
pub struct Guard {
    clock: Clock,
    places: Semaphore,
    /// Held by the call that starts next.
    next: sync::Mutex<()>,
    state: Mutex<GuardCore>,
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
    pace: CallPace,
    circuit: Circuit,
    /// Calls that have not started.
    waiting: usize,
    /// In calls; a retry costs [`CALLS_A_RETRY`].
    retries: u32,
    counts: CallCounts,
}

const PATIENCE: Duration = Duration::from_secs(5);

/// Calls that pay for one retry, so that retries do not double the load in an outage.
const CALLS_A_RETRY: u32 = 10;

const RETRIES_MAX: u32 = 10 * CALLS_A_RETRY;

const WAITING_MAX: usize = 256;

impl Guard {
    #[must_use]
    pub fn new(limits: GuardLimits, clock: Clock) -> Self {
        let (pace, circuit, waiting) = (CallPace::new(limits), Circuit::default(), 0);
        let (retries, counts) = (RETRIES_MAX / 2, CallCounts::default());
        let places = Semaphore::new(limits.concurrent.max(1) as usize);
        let state = Mutex::new(GuardCore { pace, circuit, waiting, retries, counts });
        Self { clock, places, next: sync::Mutex::new(()), state }
    }

    /// Waits until a call may start, or fails at once if it is known that it may not before
    /// `deadline`.
    pub async fn admit(&self, class: Class, deadline: Timestamp) -> Result<Admission<'_>, Withheld> {
        let waited = self.clock.before(deadline, self.wait(class, deadline)).await;
        let admitted = waited.unwrap_or(Err(Withheld::Crowded));
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
        let paused = state.pace.pause_after(now.plus(PATIENCE)).map(Withheld::Paused);
        let crowded = (state.waiting >= WAITING_MAX).then_some(Withheld::Crowded);
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
        let GuardCore { circuit, waiting, counts, .. } = &*self.state();
        GuardState { open: circuit.check(Class::Write, self.clock.now()).err(), waiting: *waiting, calls: *counts }
    }

    async fn wait(&self, class: Class, deadline: Timestamp) -> Result<Admission<'_>, Withheld> {
        let _waiting = self.join(class, deadline)?;
        let _next = self.next.lock().await;
        let place = self.places.acquire().await.ok();
        loop {
            let free = {
                let (now, mut state) = (self.clock.now(), self.state());
                state.circuit.check(class, now)?;
                let free = state.pace.free_at().max(now);
                if free >= deadline {
                    return Err(state.pace.pause_after(now).map_or(Withheld::Crowded, Withheld::Paused));
                }
                if free == now {
                    state.pace.start(now);
                    state.retries = (state.retries + 1).min(RETRIES_MAX);
                    let is_trial = state.circuit.start();
                    return Ok(Admission { guard: self, is_trial, end: None, _place: place });
                }
                free
            };
            self.clock.sleep_until(free).await;
        }
    }

    /// Counts a call that waits, unless it is known that it waits in vain.
    fn join(&self, class: Class, deadline: Timestamp) -> Result<Waiting<'_>, Withheld> {
        let mut state = self.state();
        state.circuit.check(class, self.clock.now())?;
        if let Some(until) = state.pace.pause_after(deadline) {
            return Err(Withheld::Paused(until));
        }
        if state.waiting >= WAITING_MAX {
            return Err(Withheld::Crowded);
        }
        state.waiting += 1;
        Ok(Waiting(self))
    }

    fn state(&self) -> MutexGuard<'_, GuardCore> {
        ignore_poison(self.state.lock())
    }
}

struct Waiting<'a>(&'a Guard);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

/// Permission for one call. One that is dropped without [`Self::end`] was given up.
#[derive(Debug)]
pub struct Admission<'a> {
    guard: &'a Guard,
    is_trial: bool,
    end: Option<CallEnd>,
    _place: Option<SemaphorePermit<'a>>,
}

impl Admission<'_> {
    pub fn end(mut self, end: CallEnd) {
        self.end = Some(end);
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let (now, mut state) = (self.guard.clock.now(), self.guard.state());
        state.circuit.end(self.is_trial, self.end, now);
        let CallCounts { answered, failed, denied, limited, abandoned, .. } = &mut state.counts;
        *match self.end {
            Some(CallEnd::Answered) => answered,
            Some(CallEnd::Failed) => failed,
            Some(CallEnd::Denied) => denied,
            Some(CallEnd::Limited(_)) => limited,
            None => abandoned,
        } += 1;
        if let Some(CallEnd::Limited(pause)) = self.end {
            state.pace.pause(pause, now);
        }
    }
}
