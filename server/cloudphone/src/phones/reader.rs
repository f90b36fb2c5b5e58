//! Takes the pictures of a phone, one at a time, for all who wait. Start at
//! [`Reader::wait_for_newer`].

use crate::phones::contract::DeviceId;
use crate::phones::port::{Screen, ScreenError, Still, StillSize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex as PlainMutex};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use toolwarrant::base::ignore_poison;
use toolwarrant::{Clock, Timestamp};

const STILL_EVERY: Duration = Duration::from_millis(500);

/// An older picture is read again before it is shown: all that happened meanwhile would be missing.
const FRESH: Duration = Duration::from_secs(1);

/// After the time of a picture, for an adapter that says why there is none.
const REASON_WITHIN: Duration = Duration::from_secs(1);

/// Longer than a held request, and the time after which a page asks again for a picture that could
/// not be taken.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(40);

pub(crate) struct Readers {
    clock: Clock,
    all: PlainMutex<HashMap<DeviceId, (Arc<Reader>, Timestamp)>>,
}

pub(crate) struct Reader {
    clock: Clock,
    /// Held while a picture is taken: when the last one was begun.
    turn: Mutex<Timestamp>,
    /// Held while what is on the screen is listed: Android makes one such list at a time.
    pub(crate) listing: Mutex<()>,
    seen: watch::Sender<Seen>,
}

#[derive(Clone, Default)]
struct Seen {
    shown: Option<Arc<NumberedStill>>,
    /// When the last reading that showed it had ended.
    at: Timestamp,
    failures: u64,
    failing: Option<ScreenError>,
}

pub(crate) struct NumberedStill {
    /// Never that of another picture, even after a restart.
    pub(crate) number: u64,
    pub(crate) still: Still,
}

impl Readers {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, all: PlainMutex::default() }
    }

    /// Returns a reader that stays until nobody has asked for it for a while.
    pub(crate) fn of(&self, id: &DeviceId) -> Arc<Reader> {
        let (mut all, now) = (ignore_poison(self.all.lock()), self.clock.now());
        all.retain(|_, (reader, used)| Arc::strong_count(reader) > 1 || now < used.plus(FORGOTTEN_AFTER));
        let (reader, used) = all.entry(id.clone()).or_insert_with(|| (Arc::new(Reader::new(&self.clock)), now));
        *used = now;
        Arc::clone(reader)
    }
}

impl Reader {
    fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), turn: Mutex::default(), listing: Mutex::default(), seen: watch::Sender::default() }
    }

    /// Returns the size of the latest picture.
    pub(super) fn size(&self) -> Option<StillSize> {
        self.seen.borrow().shown.as_ref().map(|shown| shown.still.size())
    }

    /// Waits for a picture other than number `after`.
    pub(super) async fn wait_for_newer(
        &self,
        screen: &dyn Screen,
        id: &DeviceId,
        after: u64,
    ) -> Result<Arc<NumberedStill>, ScreenError> {
        let mut seen = self.seen.subscribe();
        let failures = seen.borrow().failures;
        loop {
            let Seen { shown, at, failures: failed, failing } = seen.borrow_and_update().clone();
            if let Some(error) = failing.filter(|_| failed != failures) {
                return Err(error);
            }
            let is_fresh = self.clock.now() < at.plus(FRESH);
            if let Some(shown) = shown.filter(|shown| is_fresh && shown.number != after) {
                return Ok(shown);
            }
            tokio::select! {
                // The sender is in `self`.
                _ = seen.changed() => {}
                begun = self.turn.lock() => self.read(begun, screen, id).await,
            }
        }
    }

    /// Takes a picture after this call, even if another is fresh.
    pub(crate) async fn take(&self, screen: &dyn Screen, id: &DeviceId) -> Result<Arc<NumberedStill>, ScreenError> {
        self.read(self.turn.lock().await, screen, id).await;
        let Seen { shown, failing, .. } = self.seen.borrow().clone();
        match (failing, shown) {
            (None, Some(shown)) => Ok(shown),
            (failing, _) => Err(failing.unwrap_or(ScreenError::Slow)),
        }
    }

    async fn read(&self, mut begun: tokio::sync::MutexGuard<'_, Timestamp>, screen: &dyn Screen, id: &DeviceId) {
        self.clock.sleep_until(begun.plus(STILL_EVERY)).await;
        *begun = self.clock.now();
        let read = self.clock.before(begun.plus(Still::WITHIN + REASON_WITHIN), screen.still(id)).await;
        let read = read.unwrap_or(Err(ScreenError::Slow));
        if let Err(error) = &read
            && self.seen.borrow().failing.is_none()
        {
            tracing::warn!(device_id = id.as_str(), %error, "a screen cannot be read");
        }
        let now = self.clock.now();
        self.seen.send_modify(|seen| seen.note(read, now));
    }
}

impl Seen {
    /// A picture that is equal to the last keeps its number.
    fn note(&mut self, read: Result<Still, ScreenError>, now: Timestamp) {
        let still = match read {
            Ok(still) => still,
            Err(error) => {
                (self.failures, self.failing) = (self.failures + 1, Some(error));
                return;
            }
        };
        (self.at, self.failing) = (now, None);
        if self.shown.as_ref().is_none_or(|last| last.still != still) {
            let number = self.shown.as_ref().map_or(0, |last| last.number + 1).max(now.0);
            self.shown = Some(Arc::new(NumberedStill { number, still }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phones::contract::ScreenElement;
    use crate::phones::port::{ScreenInput, Unreachable};
    use async_trait::async_trait;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use tokio::task::{JoinSet, yield_now};

    /// Draws a number that a test sets. `NONE` is a failure.
    #[derive(Default)]
    struct Counter {
        drawn: AtomicU64,
        taken: AtomicU64,
        /// For pictures that take 1.5 s.
        slow: Option<Clock>,
    }

    const NONE: u64 = u64::MAX;

    #[async_trait]
    impl Screen for Counter {
        async fn still(&self, _: &DeviceId) -> Result<Still, ScreenError> {
            self.taken.fetch_add(1, Relaxed);
            if let Some(clock) = &self.slow {
                clock.sleep_until(clock.now().plus(STILL_EVERY * 3)).await;
            }
            match self.drawn.load(Relaxed) {
                NONE => Err(Unreachable("no picture".into()).into()),
                drawn => Still::of_pixels(StillSize { width: 1, height: 1 }, &drawn.to_le_bytes()[..3]),
            }
        }

        async fn input(&self, _: &DeviceId, _: &ScreenInput) -> Result<(), ScreenError> {
            Ok(())
        }

        async fn elements(&self, _: &DeviceId) -> Result<Option<Vec<ScreenElement>>, ScreenError> {
            Ok(None)
        }

        async fn sleeps(&self, _: &DeviceId) -> Result<bool, Unreachable> {
            Ok(false)
        }
    }

    fn rig() -> (Clock, Arc<Readers>, Arc<Counter>, DeviceId) {
        let clock = Clock::manual(Timestamp(1_000_000));
        let id = DeviceId::new("phone-1").expect("an id");
        (clock.clone(), Arc::new(Readers::new(clock)), Arc::default(), id)
    }

    async fn pass_time(clock: &Clock, half_seconds: u32) {
        for _ in 0..half_seconds {
            for _ in 0..64 {
                yield_now().await;
            }
            clock.advance(STILL_EVERY);
        }
        for _ in 0..64 {
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn ten_viewers_share_the_readings_of_one_and_an_equal_picture_is_not_sent() {
        let (clock, readers, screen, id) = rig();
        let mut viewers = JoinSet::new();
        for _ in 0..10 {
            let (readers, screen, id) = (readers.clone(), screen.clone(), id.clone());
            viewers.spawn(async move {
                let reader = readers.of(&id);
                let Ok(first) = reader.wait_for_newer(&*screen, &id, 0).await else { panic!("a picture") };
                let Ok(second) = reader.wait_for_newer(&*screen, &id, first.number).await else { panic!("a picture") };
                second.number > first.number
            });
        }
        pass_time(&clock, 20).await;
        let at_rest = screen.taken.load(Relaxed);
        assert!((20..=22).contains(&at_rest), "two readings a second for all: {at_rest}");
        assert!(viewers.try_join_next().is_none(), "an equal picture is not sent");
        screen.drawn.store(1, Relaxed);
        pass_time(&clock, 2).await;
        assert_eq!(viewers.join_all().await, [true; 10]);
        let taken = screen.taken.load(Relaxed);
        pass_time(&clock, 20).await;
        assert_eq!(screen.taken.load(Relaxed), taken, "nobody watches");
    }

    #[tokio::test]
    async fn another_viewer_reads_when_the_one_that_reads_leaves_and_all_are_told_of_a_failure() {
        let (clock, readers, screen, id) = rig();
        let wait = |after| {
            let (readers, screen, id) = (readers.clone(), screen.clone(), id.clone());
            tokio::spawn(
                async move { readers.of(&id).wait_for_newer(&*screen, &id, after).await.map(|shown| shown.number) },
            )
        };
        let Ok(Ok(number)) = wait(0).await else { panic!("a picture") };
        let (first, second, third) = (wait(number), wait(number), wait(number));
        pass_time(&clock, 2).await;
        first.abort();
        pass_time(&clock, 2).await;
        screen.drawn.store(NONE, Relaxed);
        pass_time(&clock, 2).await;
        for told in [second, third] {
            let why = told.await.expect("it ran").expect_err("no picture").to_string();
            assert!(why.ends_with("no picture"), "{why}");
        }
        assert!(readers.of(&id).size().is_some(), "the last picture stays");
        clock.advance(FORGOTTEN_AFTER);
        assert!(readers.of(&id).size().is_none(), "until nobody has asked for a while");
    }

    #[tokio::test]
    async fn a_slow_screen_at_rest_is_one_picture_and_keeps_its_size_between_requests() {
        let (clock, readers, _, id) = rig();
        let screen = Arc::new(Counter { slow: Some(clock.clone()), ..Counter::default() });
        let mut after = 0;
        for request in 0..3 {
            let (all, screen, phone, time) = (readers.clone(), screen.clone(), id.clone(), clock.clone());
            let held = tokio::spawn(async move {
                let reader = all.of(&phone);
                let newer = reader.wait_for_newer(&*screen, &phone, after);
                time.before(time.now().plus(Duration::from_secs(20)), newer)
                    .await
                    .map(|shown| shown.ok().map(|shown| shown.number))
            });
            pass_time(&clock, if request == 0 { 4 } else { 41 }).await;
            match held.await.expect("it ran") {
                Some(number) if request == 0 => after = number.expect("a picture"),
                ended => assert_eq!(ended, None, "nothing is newer"),
            }
            assert!(readers.of(&id).size().is_some());
        }
    }
}
