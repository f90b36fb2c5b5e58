//! Time, from one source that a test can hold in its hand.

use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// A moment: milliseconds since the Unix epoch. On the wire RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// That much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{moment:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where the time comes from: this process, or a test.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The wall clock at start plus monotonic time, so that it never goes back.
    System {
        /// The wall clock when the process began, in milliseconds.
        wall: u64,
        /// The same moment on the monotonic clock.
        start: Instant,
    },
    /// Stands still until it is told otherwise; clones share the time.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The clock of this process.
    #[must_use]
    pub fn system() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::System { wall: u64::try_from(wall.as_millis()).unwrap_or_default(), start: Instant::now() }
    }

    /// A clock that stands at `at`.
    #[must_use]
    pub fn manual(at: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicU64::new(at.0)))
    }

    /// The time at present.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System { wall, start } => Timestamp(*wall).plus(start.elapsed()),
            Self::Manual(millis) => Timestamp(millis.load(Relaxed)),
        }
    }

    /// Moves a manual clock forward; the process clock cannot be moved.
    pub fn advance(&self, by: Duration) {
        if let Self::Manual(millis) = self {
            millis.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Relaxed);
        }
    }
}
