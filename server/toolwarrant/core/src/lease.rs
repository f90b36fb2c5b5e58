//! The lease of a replica: the time for which it may answer without news from its store.
//!
//! No timer ends a lease. Each check compares it with the clock, so a process that stood still
//! finds it over when it goes on. Only the [`Membership`](crate::cluster::Membership) extends it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use toolwarrant_base::clock::{Clock, Timestamp};

/// The end of a lease that never stands again.
const ENDED: u64 = u64::MAX;

/// How long a replica may answer, by its own monotonic clock. Clones share it.
#[derive(Clone, Debug)]
pub struct Lease {
    clock: Clock,
    /// The end by the clock, in milliseconds.
    until: Arc<AtomicU64>,
}

impl Lease {
    /// Makes a lease that does not stand yet.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, until: Arc::default() }
    }

    /// Returns true if the replica may answer now. This costs one load and one reading of the
    /// clock.
    #[must_use]
    pub fn stands(&self) -> bool {
        let until = self.until.load(Acquire);
        until != ENDED && self.clock.now().0 < until
    }

    /// Extends it, unless it has ended for good.
    pub(crate) fn extend(&self, until: Timestamp) {
        let later = |known| (known < until.0).then_some(until.0);
        let _ = self.until.fetch_update(AcqRel, Acquire, later);
    }

    /// Ends it for good.
    pub(crate) fn end(&self) {
        self.until.store(ENDED, Release);
    }
}
