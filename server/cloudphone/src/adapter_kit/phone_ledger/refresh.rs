//! The schedule of lists of a platform: one list at a time, every half minute at rest, and at
//! growing intervals while lists fail.
//!
//! A [`Source`] reads the list. It also deals with limits of calls and with repeats of single
//! calls. Start at [`Refresh::run`].

use super::{PhoneLedger, Recoded, Row};
use crate::phones::port::Unreachable;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex as Lock};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use toolwarrant::base::{SplitMix, ignore_poison};
use toolwarrant::{BoxFuture, Clock, Timestamp};

/// The time from the beginning of a list to the next one at rest. Even with the time that a list
/// takes, no row that is shown is older than [`SHOWN_FOR`](super::SHOWN_FOR).
pub const EVERY: Duration = Duration::from_secs(30);

/// The time from the beginning of a list to the next one after a write.
pub const SOONEST: Duration = Duration::from_secs(10);

/// The pause after the first list that failed. It doubles up to [`EVERY`]; half of it is random.
pub const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The interval at which the end of a pause is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Lists a platform. Sets its own deadlines.
pub trait Source<R>: Send + Sync + 'static {
    /// Reads all phones.
    fn list(&self) -> BoxFuture<'_, Result<Vec<R>, Unreachable>>;

    /// Reads which phones have a new code. Returns an empty list if the platform does not store
    /// such records.
    fn code_changes(&self) -> BoxFuture<'_, Result<Vec<Recoded>, Unreachable>>;

    /// Returns the time until which the source does not read, to spare the platform, if there is
    /// such a time. After a failure, the next list begins then, so that two pauses do not add up. A
    /// pause that ends early ends for lists, too. Default: `None`, so the pauses of lists apply.
    fn pause_end(&self) -> Option<Timestamp> {
        None
    }
}

/// Keeps a ledger fresh.
pub struct Refresh<R: Row> {
    ledger: Arc<PhoneLedger<R>>,
    source: Arc<dyn Source<R>>,
    clock: Clock,
    jitter: Lock<SplitMix>,
    /// The last list. The caller that holds the lock reads; a caller that waited for it finds what
    /// was read meanwhile.
    last: Mutex<Option<Attempt>>,
    reachable: AtomicBool,
    woken: Notify,
}

/// A list that was read or failed.
struct Attempt {
    began: Timestamp,
    outcome: Result<(), Unreachable>,
    /// The number of failures in a row.
    failed: u32,
    /// The earliest time of the next list by the schedule.
    next: Timestamp,
}

impl<R: Row> Refresh<R> {
    /// Creates the refresh of `ledger` from `source`. Does not read yet.
    #[must_use]
    pub fn new(ledger: Arc<PhoneLedger<R>>, source: Arc<dyn Source<R>>, clock: Clock, jitter: SplitMix) -> Self {
        Self {
            ledger,
            source,
            clock,
            jitter: Lock::new(jitter),
            last: Mutex::new(None),
            reachable: AtomicBool::new(false),
            woken: Notify::new(),
        }
    }

    /// Returns true if this process has listed the platform, and its last attempt succeeded.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.reachable.load(Relaxed)
    }

    /// Makes the next list start sooner, because phones have changed. Does not shorten a pause
    /// after a failure.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// Returns when the ledger has a list that began at `moment` or later. That list may
    /// exist already, may be running, or is read by this call, also in the pause after a failure.
    ///
    /// # Errors
    /// The platform could not be listed.
    pub async fn at_least(&self, moment: Timestamp) -> Result<(), Unreachable> {
        let mut last = self.last.lock().await;
        let began = self.clock.now();
        if let Some(Attempt { outcome, .. }) = last.as_ref().filter(|last| last.began >= moment) {
            return outcome.clone();
        }
        let outcome = self.read(began).await;
        let before = last.as_ref().map_or(0, |last| last.failed);
        if let (None | Some(Attempt { failed: 0, .. }), Err(error)) = (&*last, &outcome) {
            tracing::warn!(platform = %self.ledger.name(), %error, "a platform cannot be listed");
        } else if let (None | Some(Attempt { failed: 1.., .. }), Ok(())) = (&*last, &outcome) {
            tracing::info!(platform = %self.ledger.name(), phones = self.ledger.count(), "a platform was listed");
        }
        self.reachable.store(outcome.is_ok(), Relaxed);
        let (failed, next) = match &outcome {
            Ok(()) => (0, began),
            Err(_) => (before.saturating_add(1), self.clock.now().plus(self.pause(before))),
        };
        *last = Some(Attempt { began, outcome: outcome.clone(), failed, next });
        outcome
    }

    /// Lists the platform for as long as it is polled. The framework runs it next to the server.
    pub async fn run(&self) {
        loop {
            if self.at_least(self.clock.now()).await.is_ok() {
                let began = self.last.lock().await.as_ref().map_or_else(|| self.clock.now(), |last| last.began);
                tokio::select! {
                    () = self.clock.sleep_until(began.plus(EVERY)) => {}
                    () = self.woken.notified() => self.clock.sleep_until(began.plus(SOONEST)).await,
                }
            } else {
                self.wait_after_failure().await;
            }
        }
    }

    /// Waits for the time of the next list. A caller may end the pause meanwhile.
    async fn wait_after_failure(&self) {
        loop {
            let (now, next) = (self.clock.now(), self.next_list().await);
            if now >= next {
                return;
            }
            self.clock.sleep_until(next.min(now.plus(LOOK_EVERY))).await;
        }
    }

    /// Returns the time of the next list after a failure.
    async fn next_list(&self) -> Timestamp {
        let next = self.last.lock().await.as_ref().map_or(Timestamp(0), |last| last.next);
        self.source.pause_end().map_or(next, |until| next.max(until))
    }

    async fn read(&self, began: Timestamp) -> Result<(), Unreachable> {
        let mut rows = self.source.list().await?;
        let mut recoded = Vec::new();
        if self.ledger.needs_code_changes(&rows).await {
            match self.source.code_changes().await {
                Ok(records) => recoded = records,
                Err(Unreachable(why)) => {
                    self.ledger.withhold_strangers(&mut rows).await;
                    let (platform, why) = (self.ledger.name(), why.as_str());
                    tracing::warn!(%platform, why, "phones with unknown codes are left out: changes of codes cannot be read");
                }
            }
        }
        self.ledger.take(rows, recoded, began).await;
        Ok(())
    }

    /// Returns the pause after a failure, given the number of failures before it.
    fn pause(&self, failed: u32) -> Duration {
        if self.source.pause_end().is_some() {
            // Its end may be in the past: then another call is testing the platform.
            return FIRST_PAUSE;
        }
        let whole = EVERY.min(FIRST_PAUSE.saturating_mul(1 << failed.min(8)));
        let half = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX) / 2;
        let drawn = ignore_poison(self.jitter.lock()).below(half + 1);
        Duration::from_millis(half + drawn)
    }
}
