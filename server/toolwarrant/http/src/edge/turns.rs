//! Polls a connection, and beside it as little as can be.
//!
//! Two wakers stand between a connection and its task. A [`Bell`] notes that it was rung, so that what hardly ever happens is polled only
//! once it has. A [`Hushed`] waker stays silent within [`hushed`]: hyper's bodies wake their own task for each piece that is taken, also
//! for the last one, and the task would find nothing to do. A [`HeadTimer`] stands in the runtime's wheel once for many requests.

use super::connection::{Connection, HeadWait};
use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

thread_local! {
    /// Whether wakers stay silent on this thread.
    static HUSH: Cell<Hush> = const { Cell::new(Hush::No) };
}

#[derive(Clone, Copy)]
enum Hush {
    No,
    Silent,
    /// Somebody would have been woken.
    Kept,
}

/// Does something, and says whether that would have woken a task of this thread.
pub(super) fn hushed<T>(act: impl FnOnce() -> T) -> (T, bool) {
    /// Ends the silence also where `act` panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            HUSH.set(Hush::No);
        }
    }
    let _end = End;
    HUSH.set(Hush::Silent);
    let done = act();
    (done, matches!(HUSH.get(), Hush::Kept))
}

/// Wakes a task, but not for what happens within [`hushed`].
struct Hushed(Waker);

impl Wake for Hushed {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match HUSH.get() {
            Hush::No => self.0.wake_by_ref(),
            Hush::Silent | Hush::Kept => HUSH.set(Hush::Kept),
        }
    }
}

/// Wakes a task, and notes that it did.
struct Bell {
    rung: AtomicBool,
    task: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Release);
        self.task.wake_by_ref();
    }
}

/// The wakers of one task.
pub(super) struct Wakers {
    hushed: Waker,
    bell: Arc<Bell>,
    ring: Waker,
}

impl Wakers {
    /// The bell is rung at first, for what is to be polled to hear it.
    pub(super) fn of(task: &Waker) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: task.clone() });
        let hushed = Arc::new(Hushed(task.clone()));
        Self { hushed: hushed.into(), ring: Arc::clone(&bell).into(), bell }
    }

    /// Whether they wake this task.
    pub(super) fn are_of(&self, task: &Waker) -> bool {
        self.bell.task.will_wake(task)
    }

    /// For what is polled at each turn.
    pub(super) fn hushed(&self) -> Context<'_> {
        Context::from_waker(&self.hushed)
    }

    /// For what is polled only after it has rung the bell. `None` if it has not.
    pub(super) fn rung(&self) -> Option<Context<'_>> {
        // A swap costs more than to look.
        let rung = self.bell.rung.load(Acquire) && self.bell.rung.swap(false, AcqRel);
        rung.then(|| Context::from_waker(&self.ring))
    }
}

/// The time for the whole head of a request, counted from the end of the request before.
///
/// It looks at the clock once a request and leaves the runtime's timer where it is. That fires at some time after the moment for which it was
/// set, and is set again for what is left.
pub(super) struct HeadTimer {
    patience: Duration,
    since: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl HeadTimer {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, since: Instant::now(), timer: None }
    }

    /// Ready once the head is late. Looked at after each turn.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, connection: &Connection) -> Poll<()> {
        match connection.head_wait() {
            HeadWait::Over => return Poll::Pending,
            HeadWait::Begins => self.since = Instant::now(),
            HeadWait::Lasts => {}
        }
        let late = self.since + self.patience;
        let timer = match &mut self.timer {
            Some(timer) if !timer.is_elapsed() => return Poll::Pending,
            Some(timer) => {
                timer.as_mut().reset(late);
                timer
            }
            none => none.insert(Box::pin(sleep_until(late))),
        };
        // A timer that is not polled for want of the task's budget would be in no wheel.
        pin!(unconstrained(timer)).poll(context)
    }
}
