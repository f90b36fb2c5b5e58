//! The schedule of lists of a platform: one at a time, every half minute at rest, and at growing
//! intervals while lists fail.
//!
//! A [`Source`] reads the list, and deals with limits and repeats of single calls. Start at
//! [`Refresh::run`].

use super::{PhoneLedger, Row};
use crate::phones::port::Unreachable;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use toolwarrant::Timestamp;

/// Between the beginnings of lists at rest. Even with the time that a list takes, no row that is
/// shown is older than [`SHOWN_FOR`](super::SHOWN_FOR).
pub const EVERY: Duration = Duration::from_secs(30);

/// Between the beginnings of lists after a write.
pub const SOONEST: Duration = Duration::from_secs(10);

/// After the first list that failed. It doubles up to [`EVERY`].
pub const FIRST_PAUSE: Duration = Duration::from_secs(2);

const LOOK_EVERY: Duration = Duration::from_secs(1);

#[async_trait]
pub trait Source<R>: Send + Sync + 'static {
    async fn list(&self) -> Result<Vec<R>, Unreachable>;

    /// Returns the end of the source's own pause. The next list after a failure begins then, so
    /// that two pauses do not add up. By default the pauses of lists apply.
    fn pause_end(&self) -> Option<Timestamp> {
        None
    }
}

pub struct Refresh<R: Row> {
    ledger: Arc<PhoneLedger<R>>,
    source: Arc<dyn Source<R>>,
    /// The caller with the lock reads. Callers that waited find what was read meanwhile.
    last: Mutex<Option<Attempt>>,
    reachable: AtomicBool,
    woken: Notify,
}

struct Attempt {
    began: Timestamp,
    outcome: Result<(), Unreachable>,
    failed: u32,
    next: Timestamp,
}

impl<R: Row> Refresh<R> {
    #[must_use]
    pub fn new(ledger: Arc<PhoneLedger<R>>, source: Arc<dyn Source<R>>) -> Self {
        Self { ledger, source, last: Mutex::new(None), reachable: AtomicBool::new(false), woken: Notify::new() }
    }

    /// Returns the end of a pause, before which the source is not asked.
    #[must_use]
    pub fn pause_end(&self) -> Option<Timestamp> {
        self.source.pause_end()
    }

    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.reachable.load(Relaxed)
    }

    /// Makes the next list start sooner. Does not shorten a pause after a failure.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// Waits for a list that began at `moment` or later. Reads it if none exists or runs, also in
    /// the pause after a failure.
    pub async fn at_least(&self, moment: Timestamp) -> Result<(), Unreachable> {
        let mut last = self.last.lock().await;
        let began = self.ledger.clock.now();
        if let Some(Attempt { outcome, .. }) = last.as_ref().filter(|last| last.began >= moment) {
            return outcome.clone();
        }
        let outcome = self.read(began).await;
        let before = last.as_ref().map_or(0, |last| last.failed);
        if let (None | Some(Attempt { failed: 0, .. }), Err(error)) = (&*last, &outcome) {
            tracing::warn!(platform = %self.ledger.name, %error, "a platform cannot be listed");
        } else if let (None | Some(Attempt { failed: 1.., .. }), Ok(())) = (&*last, &outcome) {
            tracing::info!(platform = %self.ledger.name, phones = self.ledger.count(), "a platform was listed");
        }
        self.reachable.store(outcome.is_ok(), Relaxed);
        let (failed, next) = match &outcome {
            Ok(()) => (0, began),
            Err(_) => (before.saturating_add(1), self.ledger.clock.now().plus(self.pause(before))),
        };
        *last = Some(Attempt { began, outcome: outcome.clone(), failed, next });
        outcome
    }

    pub async fn run(&self) {
        loop {
            if self.at_least(self.ledger.clock.now()).await.is_ok() {
                let began = self.last.lock().await.as_ref().map_or_else(|| self.ledger.clock.now(), |last| last.began);
                tokio::select! {
                    () = self.ledger.clock.sleep_until(began.plus(EVERY)) => {}
                    () = self.woken.notified() => self.ledger.clock.sleep_until(began.plus(SOONEST)).await,
                }
            } else {
                self.wait_after_failure().await;
            }
        }
    }

    /// Waits, unless a caller of [`Self::at_least`] ends the pause.
    async fn wait_after_failure(&self) {
        loop {
            let (now, next) = (self.ledger.clock.now(), self.next_list().await);
            if now >= next {
                return;
            }
            self.ledger.clock.sleep_until(next.min(now.plus(LOOK_EVERY))).await;
        }
    }

    async fn next_list(&self) -> Timestamp {
        let next = self.last.lock().await.as_ref().map_or(Timestamp(0), |last| last.next);
        self.source.pause_end().map_or(next, |until| next.max(until))
    }

    async fn read(&self, began: Timestamp) -> Result<(), Unreachable> {
        let rows = self.source.list().await?;
        self.ledger.take(rows, began).await;
        Ok(())
    }

    fn pause(&self, failed: u32) -> Duration {
        if self.source.pause_end().is_some() {
            // The pause may be over: then another call is testing the platform.
            return FIRST_PAUSE;
        }
        EVERY.min(FIRST_PAUSE.saturating_mul(1 << failed.min(8)))
    }
}
