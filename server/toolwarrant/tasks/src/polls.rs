//! Long polls. A poll that asks to wait is held until the task ends, its wait is over, or the
//! server stops. A poll that does not ask and comes too early is held until it is due, if that is
//! soon, because clients give up on slow answers. The module does not use the store: the caller
//! reads the task before and after. Start at `Polls::hold`.

use super::task::TaskId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_core::tasks::{LongPoll, Poll};

/// Per application. Further polls are answered at once.
pub const HELD_MAX: usize = 64;

const SWEEP_AT: usize = 1_024;

#[derive(Debug)]
pub(super) struct Polls {
    clock: Clock,
    closed: watch::Sender<bool>,
    state: Mutex<PollState>,
}

#[derive(Debug, Default)]
struct PollState {
    /// By application.
    held: HashMap<Box<str>, usize>,
    /// A channel closes when its task ends. Removed when no poll waits.
    ends: HashMap<TaskId, watch::Sender<()>>,
    due: HashMap<(Box<str>, TaskId), Timestamp>,
    sweep_at: usize,
}

impl Polls {
    pub(super) fn new(clock: Clock) -> Self {
        let state = PollState { sweep_at: SWEEP_AT, ..PollState::default() };
        Self { clock, closed: watch::Sender::new(false), state: Mutex::new(state) }
    }

    pub(super) fn hold<'a>(&'a self, poll: &Poll<'a>, id: TaskId) -> Option<HeldPoll<'a>> {
        let Poll { caller, id: _, wait, hold_at_most, hold, interval: _ } = poll;
        let now = self.clock.now();
        let mut state = self.lock();
        let due = || state.due.get(&(caller.key_id.as_ref().into(), id)).copied().unwrap_or(now);
        let until = wait.map_or_else(|| due().min(now.plus(*hold_at_most)), |wait| now.plus(wait));
        let application = &caller.application.id;
        let held = state.held.get(application).copied().unwrap_or(0);
        if until <= now || matches!(hold, LongPoll::Never) || held >= HELD_MAX {
            return None;
        }
        *state.held.entry(application.clone()).or_default() += 1;
        let end = state.ends.entry(id).or_insert_with(|| watch::Sender::new(())).subscribe();
        Some(HeldPoll { polls: self, application: application.clone(), id, until, end: Some(end), hold: *hold })
    }

    /// Returns the number of seconds until the next poll is due. An early poll does not move that
    /// time.
    pub(super) fn record_answer(&self, key_id: &str, id: TaskId, interval: Duration) -> u64 {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.due.len() >= state.sweep_at {
            state.due.retain(|_, due| *due > now);
            state.sweep_at = SWEEP_AT.max(2 * state.due.len());
        }
        let due = state.due.entry((key_id.into(), id)).or_insert(now);
        if *due <= now {
            *due = now.plus(interval);
        }
        due.seconds_from(now)
    }

    pub(super) fn count(&self) -> usize {
        self.lock().held.values().sum()
    }

    pub(super) fn release(&self, id: TaskId) {
        self.lock().ends.remove(&id);
    }

    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }

    fn lock(&self) -> MutexGuard<'_, PollState> {
        ignore_poison(self.state.lock())
    }
}

/// Dropping it makes room for another.
#[derive(Debug)]
pub(super) struct HeldPoll<'a> {
    polls: &'a Polls,
    application: Box<str>,
    id: TaskId,
    until: Timestamp,
    end: Option<watch::Receiver<()>>,
    hold: LongPoll<'a>,
}

impl HeldPoll<'_> {
    pub(super) async fn wait(mut self) {
        let mut closed = self.polls.closed.subscribe();
        let Some(mut end) = self.end.take() else { return };
        tokio::select! {
            _ = end.changed() => {}
            _ = closed.wait_for(|closed| *closed) => {}
            () = self.hold.wait_for_hangup() => {}
            () = self.polls.clock.sleep_until(self.until) => {}
        }
    }
}

impl Drop for HeldPoll<'_> {
    fn drop(&mut self) {
        drop(self.end.take());
        let mut state = self.polls.lock();
        if let Some(held) = state.held.get_mut(&self.application) {
            *held -= 1;
            if *held == 0 {
                state.held.remove(&self.application);
            }
        }
        if state.ends.get(&self.id).is_some_and(|end| end.receiver_count() == 0) {
            state.ends.remove(&self.id);
        }
    }
}
