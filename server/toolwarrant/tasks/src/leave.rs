//! The permission to send a write, asked for right before its first byte leaves.
//!
//! A process that stood still may have missed that another replica has taken over its tasks. So the
//! store is asked, late: once the connection stands. Start at [`Leave::confirm`].

use crate::store::TaskStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::text::Remark;
use toolwarrant_core::store::Stored;

/// The permission to send a write. It does not hold until [`Self::confirm`] says so.
#[derive(Clone, Debug)]
#[must_use = "no byte may leave before `confirm` allows it"]
pub struct Leave {
    not_after: Timestamp,
    clock: Clock,
    /// `None` if no other process can take over the task.
    shared: Option<Arc<SharedLeave>>,
}

/// The part of a leave that its clones share.
#[derive(Debug)]
struct SharedLeave {
    store: Arc<dyn TaskStore>,
    asked: AtomicBool,
}

/// Time for which an answer of the store holds, counted from the question.
const HOLDS: Duration = Duration::from_secs(1);

/// Pause before the store is asked again after it failed.
const PAUSE: Duration = Duration::from_millis(200);

impl Leave {
    /// Makes a leave that only time ends: for a request that no other replica can repeat.
    pub fn until(not_after: Timestamp, clock: &Clock) -> Self {
        Self { not_after, clock: clock.clone(), shared: None }
    }

    /// Makes the leave of a task that `store` has.
    pub(crate) fn for_task(not_after: Timestamp, clock: &Clock, store: &Arc<dyn TaskStore>) -> Self {
        let shared = || Arc::new(SharedLeave { store: Arc::clone(store), asked: AtomicBool::new(false) });
        Self { shared: store.is_shared().then(shared), ..Self::until(not_after, clock) }
    }

    /// Returns the last moment at which the first byte may leave.
    #[must_use]
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Returns true if [`Self::confirm`] was called, or if there was no need to.
    pub(crate) fn is_asked(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.asked.load(Relaxed))
    }

    /// Waits until the write may leave. Call it after everything that takes time, such as a
    /// connection, and send at once: the permission lasts for a second. It ends at
    /// [`Self::not_after`].
    ///
    /// # Errors
    /// The write must not leave any more, for this reason. The outcome is [`Sent::NotSent`].
    ///
    /// [`Sent::NotSent`]: crate::machine::Sent::NotSent
    pub async fn confirm(self) -> Result<(), Remark> {
        let Self { not_after, clock, shared } = self;
        if let Some(shared) = shared {
            shared.asked.store(true, Relaxed);
            match clock.before(not_after, ask(&clock, || shared.store.may_send())).await {
                Some(true) => {}
                Some(false) => return Err("another replica has taken over".into()),
                None => return Err("the store did not confirm in time that it may leave".into()),
            }
        }
        if clock.now() > not_after { Err("it is too late".into()) } else { Ok(()) }
    }
}

/// Asks the store until it gives an answer that is young enough. A refusal never gets too old.
async fn ask<'a>(clock: &Clock, may_send: impl Fn() -> Stored<'a, bool>) -> bool {
    loop {
        let asked_at = clock.now();
        match may_send().await {
            Ok(false) => return false,
            Ok(true) if clock.now() <= asked_at.plus(HOLDS) => return true,
            Ok(true) => {}
            Err(_) => clock.sleep_until(clock.now().plus(PAUSE)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use toolwarrant_core::store::StoreError;

    /// Returns the decision, and the time that it took, if the store answers each question with one
    /// of `answers` after that many milliseconds.
    async fn decide(answers: &[(u64, Result<bool, StoreError>)]) -> (bool, Duration) {
        let (clock, asked) = (Clock::start_at(Timestamp(0)), AtomicUsize::new(0));
        let may_send = || -> Stored<'_, bool> {
            let (millis, answer) = answers[asked.fetch_add(1, Relaxed)].clone();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                answer
            })
        };
        let may_leave = ask(&clock, may_send).await;
        assert_eq!(asked.into_inner(), answers.len());
        (may_leave, clock.now().since(Timestamp(0)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_permission_that_is_older_than_a_second_is_asked_for_again_and_a_refusal_holds() {
        let broken = || Err(StoreError::Unavailable("the connection broke".to_owned()));
        assert_eq!(decide(&[(1_000, Ok(true))]).await, (true, Duration::from_millis(1_000)));
        assert_eq!(decide(&[(1_001, Ok(true)), (5, Ok(true))]).await, (true, Duration::from_millis(1_006)));
        assert_eq!(decide(&[(1_001, Ok(true)), (5, Ok(false))]).await, (false, Duration::from_millis(1_006)));
        assert_eq!(decide(&[(3_000, Ok(false))]).await, (false, Duration::from_millis(3_000)));
        assert_eq!(decide(&[(5, broken()), (5, Ok(true))]).await, (true, Duration::from_millis(10) + PAUSE));
    }
}
