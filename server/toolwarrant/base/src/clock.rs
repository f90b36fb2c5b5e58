//! Time, from one source that a test controls.
//!
//! [`Clock::now`] only goes forward: deadlines, budgets and polls run on it. The wall clock can be
//! wrong or set back. So code that ends a right uses [`Clock::latest`], and code that deletes uses
//! [`Clock::earliest`]. [`Clock::since`] continues from the time before a restart.

use crate::ignore_poison;
use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::Instant;

/// A moment in milliseconds since the Unix epoch. As text it is RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Returns the moment that much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// Returns the moment that much earlier, but not before the epoch.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// Returns the time since `earlier`; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns the seconds from `now` until this moment, rounded up.
    #[must_use]
    pub fn seconds_from(self, now: Self) -> u64 {
        self.0.saturating_sub(now.0).div_ceil(1000)
    }

    /// Writes the text in one piece, because serde_json scans each piece for characters to escape.
    fn text(self) -> String {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        PRINTER.timestamp_to_string(&moment)
    }
}

fn wall() -> Timestamp {
    Timestamp(millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Prints three digits after the second, always.
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

/// Parses a day, such as 2026-12-31, or a time with its zone, such as 2026-12-31T18:00Z.
impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        let moment: jiff::Timestamp = match text.contains('T') {
            true => text.parse()?,
            false => format!("{text}T00:00Z").parse()?,
        };
        Ok(Self(u64::try_from(moment.as_millisecond()).unwrap_or(0)))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let moment: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        u64::try_from(moment.as_millisecond()).map(Self).map_err(de::Error::custom)
    }
}

/// A wall clock that went forward this much while the service did not run may be wrong.
pub const LEAP: Duration = Duration::from_hours(24);

/// Largest error of a steady wall clock.
const STEADY: Duration = Duration::from_mins(1);

/// The source of time: this process, or a test.
#[derive(Debug, Clone)]
pub enum Clock {
    /// A moment at the start plus monotonic time. It never goes back.
    System {
        /// The time at the start, in milliseconds.
        anchor: u64,
        /// The same moment on the monotonic clock.
        start: Instant,
        /// The earliest possible time at the start, in milliseconds. It differs from the anchor if
        /// the anchor is doubtful.
        floor: Arc<AtomicU64>,
        /// The correction by the clock of a store, if processes share one.
        steering: Option<Arc<Steering>>,
    },
    /// A clock that stands still until it is advanced. Clones share the time.
    Manual(Arc<ManualClock>),
}

/// The correction of a process clock that follows another one. The clock runs faster or slower by
/// up to a hundredth, so it never goes back.
#[derive(Debug, Default)]
pub struct Steering(Mutex<Correction>);

/// The correction at one moment, and its growth since.
#[derive(Clone, Copy, Debug, Default)]
struct Correction {
    /// Time since the start.
    at: Duration,
    /// Microseconds that were added until then.
    added: i64,
    /// Millionths that are added since.
    rate: i64,
    /// Most microseconds that are added since: the whole error.
    most: i64,
}

/// Millionths by which a clock is faster for each millisecond that it is behind: a tenth of the
/// error goes in a second.
const RATE: i64 = 100;

/// Largest rate, in millionths.
const RATE_MAX: i64 = 10_000;

/// The time of a test.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<Timestamp>,
    /// The lead of the wall clock, in milliseconds.
    wall_ahead: AtomicI64,
}

impl Clock {
    /// Returns the clock of this process.
    #[must_use]
    pub fn system() -> Self {
        Self::start_at(wall())
    }

    /// Returns a clock that starts at `now` and runs on tokio's clock. If tokio's clock is paused,
    /// the time is simulated.
    #[must_use]
    pub fn start_at(now: Timestamp) -> Self {
        let floor = Arc::new(AtomicU64::new(now.0));
        Self::System { anchor: now.0, start: Instant::now(), floor, steering: None }
    }

    /// Returns the clock of this process. It does not go back behind `seen`, the latest time before
    /// its start. If the wall clock is more than a [`LEAP`] ahead of `seen`, it is doubtful until
    /// it has been steady for a [`LEAP`].
    #[must_use]
    pub fn since(seen: Timestamp) -> Self {
        Self::continue_from(seen, wall())
    }

    /// Like [`Self::since`], with the time of a store that processes share. [`Self::steer`] keeps
    /// it near that time.
    #[must_use]
    pub fn of_store(seen: Timestamp, time: Timestamp) -> Self {
        let mut clock = Self::continue_from(seen, time);
        if let Self::System { steering, .. } = &mut clock {
            *steering = Some(Arc::default());
        }
        clock
    }

    /// Corrects a clock of a store, little by little. `error` is the time of the store minus that
    /// of this clock, in milliseconds. Has no effect on other clocks.
    pub fn steer(&self, error: i64) {
        if let Self::System { start, steering: Some(steering), .. } = self {
            let mut correction = ignore_poison(steering.0.lock());
            let at = start.elapsed();
            let rate = error.saturating_mul(RATE).clamp(-RATE_MAX, RATE_MAX);
            let most = error.saturating_mul(1_000).saturating_abs();
            *correction = Correction { at, added: correction.micros(at), rate, most };
        }
    }

    /// Moves a clock of a store forward to that time at once, if it is behind. Has no effect on
    /// other clocks.
    pub fn catch_up(&self, time: Timestamp) {
        let behind = i64::try_from(time.since(self.now()).as_micros()).unwrap_or(i64::MAX);
        if let Self::System { steering: Some(steering), .. } = self {
            let mut correction = ignore_poison(steering.0.lock());
            correction.added = correction.added.saturating_add(behind);
        }
    }

    fn continue_from(seen: Timestamp, now: Timestamp) -> Self {
        if now < seen {
            let behind = seen.since(now).as_secs();
            tracing::warn!(behind, "the clock is behind the time of the last run; time continues from there");
        }
        let clock = Self::start_at(now.max(seen));
        if let (Self::System { floor, .. }, true) = (&clock, now > seen.plus(LEAP)) {
            floor.store(seen.0, Relaxed);
            let ahead = now.since(seen).as_secs();
            tracing::warn!(
                ahead,
                "the server has not run for long, or the clock is ahead; nothing is deleted for a day"
            );
        }
        clock
    }

    /// Returns the earliest possible time. The next start must not go back behind it.
    #[must_use]
    pub fn floor(&self) -> Timestamp {
        match self {
            Self::System { start, floor, steering, .. } => {
                Timestamp(floor.load(Relaxed)).plus(measure(start, steering))
            }
            Self::Manual(_) => self.now(),
        }
    }

    /// Trusts a doubtful wall clock that has been steady for [`LEAP`].
    pub fn prove(&self) {
        if let Self::System { anchor, start, floor, .. } = self
            && start.elapsed() >= LEAP
            && self.wall().since(self.now()).max(self.now().since(self.wall())) < STEADY
        {
            floor.store(*anchor, Relaxed);
        }
    }

    /// Returns a manual clock that stands at `at`.
    #[must_use]
    pub fn manual(at: Timestamp) -> Self {
        Self::Manual(Arc::new(ManualClock { now: watch::Sender::new(at), wall_ahead: AtomicI64::new(0) }))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System { anchor, start, steering, .. } => Timestamp(*anchor).plus(measure(start, steering)),
            Self::Manual(time) => *time.now.borrow(),
        }
    }

    /// Returns the time of the wall clock. Unlike [`Self::now`] it continues while the machine is
    /// suspended, and can be set back.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match self {
            Self::System { .. } => wall(),
            Self::Manual(time) => Timestamp(self.now().0.saturating_add_signed(time.wall_ahead.load(Relaxed))),
        }
    }

    /// Returns the later of both clocks. Authority ends by it: while this machine was suspended,
    /// time went on elsewhere, and a clock that was set back must not revive a right.
    #[must_use]
    pub fn latest(&self) -> Timestamp {
        self.floor().max(self.wall())
    }

    /// Returns [`Self::now`] and [`Self::latest`] for one moment.
    #[must_use]
    pub fn now_and_latest(&self) -> (Timestamp, Timestamp) {
        match self {
            Self::System { anchor, start, floor, steering } => {
                let elapsed = measure(start, steering);
                let from = |at: u64| Timestamp(at).plus(elapsed);
                (from(*anchor), from(floor.load(Relaxed)).max(self.wall()))
            }
            Self::Manual(_) => (self.now(), self.latest()),
        }
    }

    /// Returns the earlier of both clocks. Data is deleted for its age by this one.
    #[must_use]
    pub fn earliest(&self) -> Timestamp {
        self.floor().min(self.wall())
    }

    /// Waits until `moment`; returns at once if it has passed.
    pub async fn sleep_until(&self, moment: Timestamp) {
        match self {
            // By this clock, a timer may fire up to a millisecond early.
            Self::System { .. } => {
                while self.now() < moment {
                    tokio::time::sleep(moment.since(self.now())).await;
                }
            }
            Self::Manual(time) => drop(time.now.subscribe().wait_for(|now| *now >= moment).await),
        }
    }

    /// Runs `work` until `moment`. Returns `None` if it did not finish.
    pub async fn before<T>(&self, moment: Timestamp, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.sleep_until(moment) => None,
        }
    }

    /// Moves a manual clock forward. Has no effect on the process clock.
    pub fn advance(&self, by: Duration) {
        if let Self::Manual(time) = self {
            time.now.send_modify(|now| *now = now.plus(by));
        }
    }

    /// Moves only the wall clock of a manual clock, like a suspended machine or an operator. Has no
    /// effect on the process clock.
    pub fn shift_wall(&self, millis: i64) {
        if let Self::Manual(time) = self {
            time.wall_ahead.fetch_add(millis, Relaxed);
        }
    }
}

impl Correction {
    /// Returns the microseconds that are added at that time since the start.
    fn micros(&self, elapsed: Duration) -> i64 {
        let since = i64::try_from(elapsed.saturating_sub(self.at).as_micros()).unwrap_or(i64::MAX);
        let more = (since.saturating_mul(self.rate) / 1_000_000).clamp(-self.most, self.most);
        self.added.saturating_add(more)
    }
}

/// Returns the time since the start, with its correction.
fn measure(start: &Instant, steering: &Option<Arc<Steering>>) -> Duration {
    let Some(steering) = steering else { return start.elapsed() };
    let correction = ignore_poison(steering.0.lock());
    let elapsed = start.elapsed();
    let added = correction.micros(elapsed);
    let by = Duration::from_micros(added.unsigned_abs());
    if added < 0 { elapsed.saturating_sub(by) } else { elapsed.saturating_add(by) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_was_written() {
        for at in [Timestamp(0), Timestamp(1_800_000_000_123)] {
            let text = serde_json::to_string(&at).unwrap();
            assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), at, "{text}");
        }
        assert!(serde_json::from_str::<Timestamp>("\"1969-12-31T23:59:59Z\"").is_err());
    }

    #[test]
    fn a_start_continues_from_the_last_time_and_after_a_leap_rights_end_by_the_later_clock_and_deletion_waits() {
        let (now, day) = (wall(), Duration::from_hours(24));
        // The clock was set back by 400 days while the service did not run.
        let behind = Clock::since(now.plus(400 * day));
        assert!(behind.now() >= now.plus(400 * day) && behind.latest() >= now.plus(400 * day));
        assert!(behind.earliest() < now.plus(day));
        // The clock is ahead by 400 days, or the machine was off for that time.
        let ahead = Clock::since(now.minus(400 * day));
        assert!(ahead.now() >= now && ahead.latest() >= now);
        assert!(ahead.earliest() < now.minus(399 * day) && ahead.floor() < now.minus(399 * day));
        let usual = Clock::since(now.minus(day / 2));
        assert!(usual.floor() >= now && usual.earliest() >= now);
    }

    #[tokio::test(start_paused = true)]
    async fn a_doubtful_clock_that_is_put_right_ends_no_right_and_one_that_stays_is_believed_after_a_day() {
        let now = wall();
        let clock = Clock::start_at(now.plus(400 * LEAP));
        let Clock::System { floor, .. } = &clock else { panic!("of the process") };
        floor.store(now.minus(LEAP).0, Relaxed);
        // The wall clock was corrected meanwhile; it shows `now`.
        assert!(clock.latest() < now.plus(LEAP) && clock.now() >= now.plus(400 * LEAP));
        tokio::time::advance(LEAP).await;
        clock.prove();
        assert!(clock.latest() < now.plus(LEAP), "it never was steady");
        let clock = Clock::since(now.minus(2 * LEAP));
        clock.prove();
        assert!(clock.earliest() < now.minus(LEAP));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_of_a_store_comes_near_its_time_and_never_goes_back() {
        let (second, start) = (Duration::from_secs(1), Timestamp(1_000_000));
        let clock = Clock::of_store(Timestamp(0), start);
        // The store runs faster by a tenth of a percent, then it is half a second behind.
        for (drift, step, seconds) in [(1, 0, 100), (0, -500, 200)] {
            let mut store = clock.now().0.saturating_add_signed(step);
            for _ in 0..seconds {
                let before = clock.now();
                clock.steer(store.cast_signed() - before.0.cast_signed());
                tokio::time::advance(second).await;
                store += 1_000 + drift;
                let passed = clock.now().since(before);
                assert!(passed >= second - second / 100 && passed <= second + second / 100, "{passed:?}");
            }
            let error = store.cast_signed() - clock.now().0.cast_signed();
            assert!(error.abs() <= 15, "{error}");
        }
        // Without further news, the clock stops to change when the error is gone.
        let before = clock.now();
        clock.steer(50);
        tokio::time::advance(second * 60).await;
        assert_eq!(clock.now().since(before), second * 60 + Duration::from_millis(50));
        let unsteered = Clock::start_at(start);
        unsteered.steer(500);
        unsteered.catch_up(start.plus(second * 60));
        tokio::time::advance(second).await;
        assert_eq!(unsteered.now(), start.plus(second));
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_a_sleeper_in_time_and_not_early() {
        let clock = Clock::manual(Timestamp(1_000));
        let due = clock.now().plus(Duration::from_secs(5));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(due).await }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_millis(4_999));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_millis(1));
        sleeper.await.unwrap();
        assert_eq!(clock.before(Timestamp(0), std::future::pending::<()>()).await, None);
        assert_eq!(clock.before(due, async { 7 }).await, Some(7));
    }
}
