//! Polls that come too early, or that want to wait: held until the task ends, the poll is due, or the server stops.
//!
//! Owns when each key may ask about each task again, and how many answers of an application are held. Knows no store: who
//! holds reads the task before and after. Start at [`Polls::hold`].

use super::task::TaskId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use toolwarrant_core::clock::{Clock, Timestamp};
use toolwarrant_core::tasks::{Hold, Poll};

/// Answers of one application that are held at a time; one more is given at once.
pub const HELD_MAX: usize = 64;

/// Polls whose due times are kept before those that are over are swept out.
const SWEEP_AT: usize = 1_024;

/// Who is held, and until when each may ask again.
#[derive(Debug)]
pub(super) struct Polls {
    clock: Clock,
    closed: watch::Sender<bool>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By application: answers that are held.
    held: HashMap<Box<str>, usize>,
    /// By task: told when it ends. Gone when nobody waits.
    ends: HashMap<TaskId, watch::Sender<()>>,
    /// By key and task: when the next poll is due.
    due: HashMap<(Box<str>, TaskId), Timestamp>,
    sweep_at: usize,
}

impl Polls {
    pub(super) fn new(clock: Clock) -> Self {
        let state = State { sweep_at: SWEEP_AT, ..State::default() };
        Self { clock, closed: watch::Sender::new(false), state: Mutex::new(state) }
    }

    /// A place to wait in, if this poll is to wait and may.
    pub(super) fn hold(&self, poll: &Poll<'_>, id: TaskId) -> Option<Held<'_>> {
        let Poll { caller, id: _, wait, hold, interval: _ } = poll;
        let now = self.clock.now();
        let mut state = self.lock();
        let due = || state.due.get(&(caller.key_id.as_ref().into(), id)).copied().unwrap_or(now);
        let until = wait.map_or_else(due, |wait| now.plus(wait));
        let application = &caller.application.id;
        let held = state.held.get(application).copied().unwrap_or(0);
        if until <= now || *hold == Hold::Never || held >= HELD_MAX {
            return None;
        }
        *state.held.entry(application.clone()).or_default() += 1;
        let end = state.ends.entry(id).or_insert_with(|| watch::Sender::new(())).subscribe();
        Some(Held { polls: self, application: application.clone(), id, until, end: Some(end) })
    }

    /// Notes that a poll is answered; in how many seconds the next one is due. An answer ahead of its time does not move it.
    pub(super) fn answered(&self, key_id: &str, id: TaskId, interval: Duration) -> u64 {
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

    /// How many are held.
    pub(super) fn held(&self) -> usize {
        self.lock().held.values().sum()
    }

    /// Answers everybody who waits for the end of that task.
    pub(super) fn ended(&self, id: TaskId) {
        self.lock().ends.remove(&id);
    }

    /// Answers everybody, and from now on at once.
    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One answer that is held. Dropped, it makes room for another. A client that goes away is noticed only when it is answered:
/// one that has sent all that it will cannot be told from one that is gone.
#[derive(Debug)]
pub(super) struct Held<'a> {
    polls: &'a Polls,
    application: Box<str>,
    id: TaskId,
    until: Timestamp,
    /// Fails when the task has ended.
    end: Option<watch::Receiver<()>>,
}

impl Held<'_> {
    /// Waits for the end of the task, for the time to be over, or for the server to stop.
    pub(super) async fn wait(mut self) {
        let mut closed = self.polls.closed.subscribe();
        let Some(mut end) = self.end.take() else { return };
        tokio::select! {
            _ = end.changed() => {}
            _ = closed.wait_for(|closed| *closed) => {}
            () = self.polls.clock.sleep_until(self.until) => {}
        }
    }
}

impl Drop for Held<'_> {
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
