//! Drives one connection, and polls everything else only when it was woken.
//!
//! Two wakers stand between a connection and its task. A [`Bell`] records that it was rung, so that
//! rare events are polled only then. A [`SuppressedWaker`] does not wake its task within
//! [`without_wakeups`]. Otherwise a body of hyper would wake its own task after each piece, even
//! after the last one.

use super::connection::{Connection, HeadWait};
use super::limits::Limits;
use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep};

thread_local! {
    static HUSH: Cell<Hush> = const { Cell::new(Hush::No) };
}

#[derive(Clone, Copy)]
enum Hush {
    No,
    Silent,
    /// The wakers are silent, and one of them was called.
    Kept,
}

/// Returns true if `act` would have woken a task of this thread.
pub(super) fn without_wakeups<T>(act: impl FnOnce() -> T) -> (T, bool) {
    /// Ends the silence even if `act` panics.
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

struct SuppressedWaker(Waker);

impl Wake for SuppressedWaker {
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

pub(super) struct Wakers {
    hushed: Waker,
    bell: Arc<Bell>,
    ring: Waker,
}

impl Wakers {
    /// Rings the bell at first, because everything must be polled once before it can ring.
    pub(super) fn of(task: &Waker) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: task.clone() });
        let hushed = Arc::new(SuppressedWaker(task.clone()));
        Self { hushed: hushed.into(), ring: Arc::clone(&bell).into(), bell }
    }

    pub(super) fn are_of(&self, task: &Waker) -> bool {
        self.bell.task.will_wake(task)
    }

    pub(super) fn quiet_context(&self) -> Context<'_> {
        Context::from_waker(&self.hushed)
    }

    pub(super) fn rung(&self) -> Option<Context<'_>> {
        // A load costs less than a swap.
        let rung = self.bell.rung.load(Acquire) && self.bell.rung.swap(false, AcqRel);
        rung.then(|| Context::from_waker(&self.ring))
    }
}

pub(super) struct HeadTimer {
    idle: Duration,
    head: Duration,
    timer: Pin<Box<Sleep>>,
}

impl HeadTimer {
    pub(super) fn new(&Limits { idle, head, .. }: &Limits) -> Self {
        Self { idle, head, timer: Box::pin(sleep(head)) }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>, connection: &Connection) -> Poll<()> {
        match connection.head_wait() {
            HeadWait::Over => return Poll::Pending,
            HeadWait::IdleBegins => self.timer.as_mut().reset(Instant::now() + self.idle),
            HeadWait::HeadBegins => self.timer.as_mut().reset(Instant::now() + self.head),
            HeadWait::Lasts => {}
        }
        // Otherwise the timer would not be in the wheel once the task's budget is used up.
        pin!(unconstrained(self.timer.as_mut())).poll(context)
    }
}
