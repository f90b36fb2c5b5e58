//! The schedule of lists of a platform: one list at a time, every half minute at rest, and at
//! growing intervals while lists fail.
//!
//! A [`Source`] reads the list. It also deals with limits of calls and with repeats of single
//! calls. Of several replicas, only the one that has the [`Duty`] reads; the others take over its
//! lists. Start at [`Refresh::run`].

use super::{DeviceRegistry, Recoded, Row};
use crate::adapter_kit::duty::{Duty, ListReport, to_unreachable};
use crate::adapter_kit::shared::{FOLLOWED_EVERY, FollowedDocument};
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

/// Keeps a device registry fresh.
pub struct Refresh<R: Row> {
    registry: Arc<DeviceRegistry<R>>,
    source: Arc<dyn Source<R>>,
    clock: Clock,
    jitter: Lock<SplitMix>,
    /// The last list. The caller that holds the lock reads; a caller that waited for it finds what
    /// was read meanwhile.
    last: Mutex<Option<Attempt>>,
    reachable: AtomicBool,
    woken: Notify,
    duty: Option<Arc<Duty>>,
    /// The number of the latest list of another replica that this one knows, and its beginning.
    heard: Lock<(u64, Option<Timestamp>)>,
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
    /// Creates the refresh of `registry` from `source`. Does not read yet.
    #[must_use]
    pub fn new(registry: Arc<DeviceRegistry<R>>, source: Arc<dyn Source<R>>, clock: Clock, jitter: SplitMix) -> Self {
        Self {
            registry,
            source,
            clock,
            jitter: Lock::new(jitter),
            last: Mutex::new(None),
            reachable: AtomicBool::new(false),
            woken: Notify::new(),
            duty: None,
            heard: Lock::default(),
        }
    }

    /// Shares the lists with other replicas.
    #[must_use]
    pub fn with_duty(self, duty: Option<Arc<Duty>>) -> Self {
        Self { duty, ..self }
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

    /// Returns when the device registry has a list that began at `moment` or later. That list may
    /// exist already, may be running, or is read by this call, also in the pause after a failure.
    /// If another replica has the duty to list, the call waits for its list, at most a minute.
    ///
    /// # Errors
    /// The platform could not be listed.
    pub async fn at_least(&self, moment: Timestamp) -> Result<(), Unreachable> {
        let Some(duty) = &self.duty else { return self.list(moment).await };
        let heard = self.clock.before(self.clock.now().plus(2 * EVERY), self.hear_of(duty, moment)).await;
        heard.unwrap_or_else(|| Err(Unreachable("the replica that lists the platform did not answer".into())))
    }

    /// Does the same as [`Self::at_least`] with the duty to list.
    async fn list(&self, moment: Timestamp) -> Result<(), Unreachable> {
        let mut last = self.last.lock().await;
        let began = self.clock.now();
        if let Some(Attempt { outcome, .. }) = last.as_ref().filter(|last| last.began >= moment) {
            return outcome.clone();
        }
        let outcome = self.read(began).await;
        if let (Some(duty), Some(version)) = (&self.duty, self.registry.version())
            && let Err(error) = duty.tell(self.clock.now().since(began), &outcome, version).await
        {
            tracing::debug!(%error, "the other replicas could not be told of a list");
        }
        let before = last.as_ref().map_or(0, |last| last.failed);
        if let (None | Some(Attempt { failed: 0, .. }), Err(error)) = (&*last, &outcome) {
            tracing::warn!(platform = %self.registry.name(), %error, "a platform cannot be listed");
        } else if let (None | Some(Attempt { failed: 1.., .. }), Ok(())) = (&*last, &outcome) {
            tracing::info!(platform = %self.registry.name(), phones = self.registry.count(), "a platform was listed");
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
        match &self.duty {
            None => loop {
                self.list_next(std::future::pending()).await;
            },
            Some(duty) => self.share(duty).await,
        }
    }

    /// Lists the platform, and waits for the time of the next list, which a write or `wished` makes
    /// come sooner.
    async fn list_next(&self, wished: impl Future<Output = ()>) {
        if self.list(self.clock.now()).await.is_ok() {
            let began = self.last.lock().await.as_ref().map_or_else(|| self.clock.now(), |last| last.began);
            tokio::select! {
                () = self.clock.sleep_until(began.plus(EVERY)) => {}
                () = self.woken.notified() => self.clock.sleep_until(began.plus(SOONEST)).await,
                () = wished => self.clock.sleep_until(began.plus(SOONEST)).await,
            }
        } else {
            // A caller or another replica may have ended the pause.
            loop {
                let (now, next) = (self.clock.now(), self.next_list().await);
                if now >= next {
                    return;
                }
                self.clock.sleep_until(next.min(now.plus(FOLLOWED_EVERY))).await;
            }
        }
    }

    /// Returns the time of the next list after a failure.
    async fn next_list(&self) -> Timestamp {
        let next = self.last.lock().await.as_ref().map_or(Timestamp(0), |last| last.next);
        self.source.pause_end().map_or(next, |until| next.max(until))
    }

    /// Lists while this replica has the duty, and takes over the lists of others meanwhile.
    async fn share(&self, duty: &Duty) {
        let (mut head, mut wish_at, mut is_woken) = (duty.head(), self.clock.now(), false);
        loop {
            if duty.is_open() && matches!(duty.hold().await, Ok(true)) {
                self.list_next(duty.wait_for_wish()).await;
                continue;
            }
            if let Err(error) = self.hear(&mut head).await {
                tracing::warn!(platform = %self.registry.name(), %error, "the list of another replica cannot be read");
            }
            let now = self.clock.now();
            if is_woken && now >= wish_at && duty.wish().await.is_ok() {
                (is_woken, wish_at) = (false, now.plus(SOONEST));
            }
            tokio::select! {
                () = head.wait_for_change() => {}
                () = self.woken.notified() => is_woken = true,
                () = self.clock.sleep_until(now.plus(FOLLOWED_EVERY)) => {}
            }
        }
    }

    /// Returns when this replica has a list that began at `moment` or later, from itself or another
    /// replica.
    async fn hear_of(&self, duty: &Duty, moment: Timestamp) -> Result<(), Unreachable> {
        let (mut head, mut has_wished) = (duty.head(), false);
        loop {
            if duty.hold().await? {
                return self.list(moment).await;
            }
            if self.hear(&mut head).await?.is_some_and(|began| began >= moment) {
                return duty.report().outcome();
            }
            if !has_wished {
                duty.wish().await?;
                has_wished = true;
            }
            let _ = self.clock.before(self.clock.now().plus(FOLLOWED_EVERY), head.wait_for_change()).await;
        }
    }

    /// Takes over the latest report of another replica, and its list. Returns the time when that
    /// list began, if known.
    async fn hear(&self, head: &mut FollowedDocument) -> Result<Option<Timestamp>, Unreachable> {
        let known = head.take();
        let report: ListReport = known.value();
        self.registry.load(report.registry, known.since).await.map_err(to_unreachable)?;
        self.reachable.store(report.attempts > 0 && report.outcome().is_ok(), Relaxed);
        let mut heard = ignore_poison(self.heard.lock());
        if heard.0 != report.attempts {
            *heard = (report.attempts, known.since.map(|since| report.began(since)));
        }
        Ok(heard.1)
    }

    async fn read(&self, began: Timestamp) -> Result<(), Unreachable> {
        if let Some(duty) = &self.duty {
            duty.begin();
            self.registry.load(duty.report().registry, duty.head().latest().since).await.map_err(to_unreachable)?;
        }
        let mut rows = self.source.list().await?;
        let mut recoded = Vec::new();
        if self.registry.is_puzzled_by(&rows).await {
            match self.source.code_changes().await {
                Ok(records) => recoded = records,
                Err(Unreachable(why)) => {
                    self.registry.withhold_strangers(&mut rows).await;
                    let (platform, why) = (self.registry.name(), why.as_str());
                    tracing::warn!(%platform, why, "phones with unknown codes are left out: changes of codes cannot be read");
                }
            }
        }
        match self.registry.take(rows, recoded, began).await || self.duty.is_none() {
            true => Ok(()),
            false => Err(Unreachable("the list could not be stored for other replicas".into())),
        }
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
