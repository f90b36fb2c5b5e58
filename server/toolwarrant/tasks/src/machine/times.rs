//! The times of a send, and the times of a task that another process has written.

use crate::task::{Phase, Task};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;

/// Time from the decision to send to the last moment at which a byte may leave.
pub(super) const SEND_WINDOW: Duration = Duration::from_secs(5);
/// Longest time that a send may take, counted from the last moment at which a byte may leave.
pub(crate) const SEND_PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(30);
/// The most by which the clocks of two machines differ. A machine whose clock differs by more than
/// half of it from the time of the store does not lead.
pub(crate) const CLOCKS_APART: Duration = Duration::from_secs(2);
/// Longest time after its last moment at which a send of another process may still arrive.
pub(super) const QUIESCE: Duration = SEND_PATIENCE.saturating_add(CLOCKS_APART);

/// Limits every time to the latest possible value, in case the clock was set back between two
/// processes. The start never moves before the end of the target's cool-down, which may be longer
/// than the task's own deadline.
pub(super) fn rewound(task: Task, now: Timestamp) -> Task {
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

/// Moves the times of a task that another machine drove to the safe side.
///
/// - A send in progress: the machine chose its last moment before the commit that was read for this
///   step, and no more than [`SEND_WINDOW`] ahead. By any clock, it has passed one [`SEND_WINDOW`]
///   from `now`.
/// - An earlier send, and the outcome: counted as [`CLOCKS_APART`] later, so that a reading is
///   never taken before its time. The outcome was there before `now`, by any clock.
/// - `not_before` and `deadline_at` stay. Clients know the deadline. The cool-down of a target has
///   [`CLOCKS_APART`] in it, and any other start may be early.
pub(super) fn delay_times(task: Task, now: Timestamp) -> Task {
    let is_sending = task.phase == Phase::Sending;
    let moment = is_sending.then(|| task.send_not_after.max(Some(now.plus(SEND_WINDOW)))).flatten();
    Task {
        send_not_after: moment.or(task.send_not_after.map(|at| at.plus(CLOCKS_APART))),
        last_send_at: moment.or(task.last_send_at.map(|at| at.plus(CLOCKS_APART))),
        outcome: task.outcome.map(|(upstream, at)| (upstream, at.plus(CLOCKS_APART).min(now))),
        ..task
    }
}
