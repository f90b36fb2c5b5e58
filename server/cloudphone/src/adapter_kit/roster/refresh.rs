//! When a platform is listed: at rest each half minute, one list at a time, and more and more seldom while that fails.
//!
//! What a list is made of is its [`Source`]'s to say. Limits of calls and repeats of single calls are not its concern. Start at
//! [`Refresh::run`].

use super::{Recoded, Roster, Row};
use crate::phones::port::Unreachable;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex as Lock};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use toolwarrant::{BoxFuture, Clock, SplitMix, Timestamp, unpoisoned};

/// From the beginning of a list to the next one at rest. With the time that a list takes, no row is shown that is older than
/// [`SHOWN_FOR`](super::SHOWN_FOR).
pub const EVERY: Duration = Duration::from_secs(30);

/// From the beginning of a list to the next one after a write.
pub const SOONEST: Duration = Duration::from_secs(10);

/// The pause after the first list that failed. It doubles up to [`EVERY`]; half of it is drawn.
pub const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// Lists a platform. Sets its own deadlines.
pub trait Source<R>: Send + Sync + 'static {
    /// Reads all phones.
    fn list(&self) -> BoxFuture<'_, Result<Vec<R>, Unreachable>>;

    /// Reads which phones have another code than before. A platform that keeps no such records has none.
    fn recoded(&self) -> BoxFuture<'_, Result<Vec<Recoded>, Unreachable>>;

    /// Returns until when it reads nothing, to spare the platform, if it says so. After a failure the next list begins then, so that
    /// two pauses do not add up. Default: it leaves that to the pauses of lists.
    fn paused_until(&self) -> Option<Timestamp> {
        None
    }
}

/// Keeps a roster fresh.
pub struct Refresh<R: Row> {
    roster: Arc<Roster<R>>,
    source: Arc<dyn Source<R>>,
    clock: Clock,
    jitter: Lock<SplitMix>,
    /// The last list. Whoever holds it reads; who waits for it finds what was read meanwhile.
    last: Mutex<Option<Attempt>>,
    reachable: AtomicBool,
    woken: Notify,
}

/// A list that was read or could not be.
struct Attempt {
    began: Timestamp,
    outcome: Result<(), Unreachable>,
    /// How many have failed in a row.
    failed: u32,
    /// No other begins before.
    next: Timestamp,
}

impl<R: Row> Refresh<R> {
    /// Creates what keeps `roster` as `source` says. Reads nothing yet.
    #[must_use]
    pub fn new(roster: Arc<Roster<R>>, source: Arc<dyn Source<R>>, clock: Clock, jitter: SplitMix) -> Self {
        Self {
            roster,
            source,
            clock,
            jitter: Lock::new(jitter),
            last: Mutex::new(None),
            reachable: AtomicBool::new(false),
            woken: Notify::new(),
        }
    }

    /// Whether this process has listed the platform, and could do so the last time that it tried.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.reachable.load(Relaxed)
    }

    /// Has the next list read sooner, as phones have changed. Does not shorten a pause after a failure.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// Returns once the roster has a list that began at `moment` or later: at once, with the list that is being read, or with one of its
    /// own. In the pause after a failure nothing is read.
    ///
    /// # Errors
    /// The platform could not be listed.
    pub async fn at_least(&self, moment: Timestamp) -> Result<(), Unreachable> {
        let mut last = self.last.lock().await;
        let began = self.clock.now();
        if let Some(Attempt { outcome, .. }) = last.as_ref().filter(|last| last.began >= moment || began < last.next) {
            return outcome.clone();
        }
        let outcome = self.read(began).await;
        let before = last.as_ref().map_or(0, |last| last.failed);
        if let (None | Some(Attempt { failed: 0, .. }), Err(error)) = (&*last, &outcome) {
            tracing::warn!(platform = %self.roster.name(), %error, "a platform cannot be listed");
        } else if let (None | Some(Attempt { failed: 1.., .. }), Ok(())) = (&*last, &outcome) {
            tracing::info!(platform = %self.roster.name(), phones = self.roster.count(), "a platform was listed");
        }
        self.reachable.store(outcome.is_ok(), Relaxed);
        let (failed, next) = match &outcome {
            Ok(()) => (0, began),
            Err(_) => (before.saturating_add(1), self.again(before)),
        };
        *last = Some(Attempt { began, outcome: outcome.clone(), failed, next });
        outcome
    }

    /// Lists the platform for as long as it is polled. The framework runs it beside the server.
    pub async fn run(&self) {
        loop {
            if self.at_least(self.clock.now()).await.is_ok() {
                let began = self.last.lock().await.as_ref().map_or_else(|| self.clock.now(), |last| last.began);
                tokio::select! {
                    () = self.clock.sleep_until(began.plus(EVERY)) => {}
                    () = self.woken.notified() => self.clock.sleep_until(began.plus(SOONEST)).await,
                }
            } else {
                let next = self.last.lock().await.as_ref().map_or_else(|| self.clock.now(), |last| last.next);
                self.clock.sleep_until(next).await;
            }
        }
    }

    async fn read(&self, began: Timestamp) -> Result<(), Unreachable> {
        let mut rows = self.source.list().await?;
        let mut recoded = Vec::new();
        if self.roster.is_puzzled_by(&rows).await {
            match self.source.recoded().await {
                Ok(records) => recoded = records,
                Err(Unreachable(why)) => {
                    self.roster.withhold_strangers(&mut rows).await;
                    let (platform, why) = (self.roster.name(), why.as_str());
                    tracing::warn!(%platform, why, "phones with unknown codes are left out: changes of codes cannot be read");
                }
            }
        }
        self.roster.take(rows, recoded, began).await;
        Ok(())
    }

    /// When to list again after a failure before which so many have failed.
    fn again(&self, failed: u32) -> Timestamp {
        let now = self.clock.now();
        match self.source.paused_until() {
            // Past: somebody else is finding out.
            Some(until) => until.max(now.plus(FIRST_PAUSE)),
            None => now.plus(self.pause(failed)),
        }
    }

    /// The pause after a failure before which so many have failed.
    fn pause(&self, failed: u32) -> Duration {
        let whole = EVERY.min(FIRST_PAUSE.saturating_mul(1 << failed.min(8)));
        let half = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX) / 2;
        let drawn = unpoisoned(self.jitter.lock()).below(half + 1);
        Duration::from_millis(half + drawn)
    }
}
