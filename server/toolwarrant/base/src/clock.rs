//! Time, from one source that a test controls.
//!
//! [`Clock::now`] only goes forward: deadlines, budgets and polls run on it. The wall clock can be
//! wrong or set back. So code that ends a right uses [`Clock::latest`], and code that deletes uses
//! [`Clock::earliest`]. [`Clock::since`] continues from the time before a restart.

use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
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

    /// Returns the moment that much earlier, at least the epoch.
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

    /// Writes one piece, because serde_json scans each piece for characters to escape.
    fn text(self) -> String {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        PRINTER.timestamp_to_string(&moment)
    }
}

/// Returns the time since the start of the machine, its sleep included.
#[must_use]
pub fn machine_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn wall() -> Timestamp {
    Timestamp(millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

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

const STEADY: Duration = Duration::from_mins(1);

/// The source of time: this process, or a test.
#[derive(Debug, Clone)]
pub enum Clock {
    /// A moment at the start plus monotonic time. It never goes back.
    System {
        /// At the start, in milliseconds.
        anchor: u64,
        /// The same moment on the monotonic clock.
        start: Instant,
        /// At the start, in milliseconds: the earliest possible time.
        floor: Arc<AtomicU64>,
    },
    /// A clock that stands still until it is advanced. Clones share the time.
    Manual(Arc<ManualClock>),
}

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

    /// Returns a clock that starts at `now` and runs on tokio's clock, which a test can pause.
    #[must_use]
    pub fn start_at(now: Timestamp) -> Self {
        let floor = Arc::new(AtomicU64::new(now.0));
        Self::System { anchor: now.0, start: Instant::now(), floor }
    }

    /// Returns the clock of this process. It does not go back behind `seen`, the latest time before
    /// its start. If the wall clock is more than a [`LEAP`] ahead of `seen`, it is doubtful until
    /// it has been steady for one.
    #[must_use]
    pub fn since(seen: Timestamp) -> Self {
        let now = wall();
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

    /// Returns the earliest possible time, behind which the next start must not go back.
    #[must_use]
    pub fn floor(&self) -> Timestamp {
        match self {
            Self::System { start, floor, .. } => Timestamp(floor.load(Relaxed)).plus(start.elapsed()),
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
            Self::System { anchor, start, .. } => Timestamp(*anchor).plus(start.elapsed()),
            Self::Manual(time) => *time.now.borrow(),
        }
    }

    /// Returns the wall clock. It continues while the machine sleeps, and can be set back.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match self {
            Self::System { .. } => wall(),
            Self::Manual(time) => Timestamp(self.now().0.saturating_add_signed(time.wall_ahead.load(Relaxed))),
        }
    }

    /// Returns the later of both clocks: time went on elsewhere while this machine slept, and a
    /// clock that was set back must not revive a right.
    #[must_use]
    pub fn latest(&self) -> Timestamp {
        self.floor().max(self.wall())
    }

    /// Returns the time since the start of this clock, which is finer than a [`Timestamp`].
    #[must_use]
    pub fn uptime(&self) -> Duration {
        match self {
            Self::System { start, .. } => start.elapsed(),
            Self::Manual(_) => Duration::from_millis(self.now().0),
        }
    }

    /// Returns [`Self::now`] and [`Self::latest`] for one moment, which [`Self::uptime`] returned.
    #[must_use]
    pub fn now_and_latest(&self, uptime: Duration) -> (Timestamp, Timestamp) {
        match self {
            Self::System { anchor, floor, .. } => {
                let from = |at: u64| Timestamp(at).plus(uptime);
                (from(*anchor), from(floor.load(Relaxed)).max(self.wall()))
            }
            Self::Manual(_) => (self.now(), self.latest()),
        }
    }

    /// Returns the earlier of both clocks.
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

    /// Runs `work` until `moment`; `None` if it did not finish.
    pub async fn before<T>(&self, moment: Timestamp, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.sleep_until(moment) => None,
        }
    }

    /// Moves a manual clock forward.
    pub fn advance(&self, by: Duration) {
        if let Self::Manual(time) = self {
            time.now.send_modify(|now| *now = now.plus(by));
        }
    }

    /// Moves only the wall clock of a manual clock.
    pub fn shift_wall(&self, millis: i64) {
        if let Self::Manual(time) = self {
            time.wall_ahead.fetch_add(millis, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_moment_is_read_as_it_was_written() {
        for at in [Timestamp(0), Timestamp(1_800_000_000_123)] {
            let text = serde_json::to_string(&at).unwrap();
            assert_eq!(json::read::<Timestamp>(&text).unwrap(), at, "{text}");
        }
        assert!(json::read::<Timestamp>("\"1969-12-31T23:59:59Z\"").is_err());
    }

    #[test]
    fn a_start_continues_from_the_last_time_and_after_a_leap_rights_end_by_the_later_clock_and_deletion_waits() {
        let (now, day) = (wall(), Duration::from_hours(24));
        let behind = Clock::since(now.plus(400 * day));
        assert!(behind.now() >= now.plus(400 * day) && behind.latest() >= now.plus(400 * day));
        assert!(behind.earliest() < now.plus(day));
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
        assert!(clock.latest() < now.plus(LEAP) && clock.now() >= now.plus(400 * LEAP));
        tokio::time::advance(LEAP).await;
        clock.prove();
        assert!(clock.latest() < now.plus(LEAP), "it never was steady");
        let clock = Clock::since(now.minus(2 * LEAP));
        clock.prove();
        assert!(clock.earliest() < now.minus(LEAP));
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
