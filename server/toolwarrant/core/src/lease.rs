//! The lease of a process that leads: the time for which it may answer and send without news from
//! its store. After that, another process may lead.
//!
//! No timer ends a lease. Each check compares it with the clock, so a process that stood still
//! finds it over. Start at [`Lease::stands`].

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp, machine_time};

const ENDED: u64 = u64::MAX;

/// Clones share the end.
#[derive(Clone, Debug)]
pub struct Lease {
    clock: Clock,
    ends: Arc<LeaseEnds>,
}

/// In milliseconds.
#[derive(Debug, Default)]
struct LeaseEnds {
    /// By the clock of the process, which stands still while the machine sleeps.
    by_process: AtomicU64,
    /// By the time of the machine, which goes on.
    by_machine: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
pub struct LeaseStart(Timestamp, Duration);

impl Lease {
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, ends: Arc::default() }
    }

    #[must_use]
    pub fn stands(&self) -> bool {
        let LeaseEnds { by_process, by_machine } = &*self.ends;
        let until = by_process.load(Acquire);
        until != ENDED && self.clock.now().0 < until && millis(machine_time()) < by_machine.load(Acquire)
    }

    /// Returns the moment to extend from: one before the store is asked.
    #[must_use]
    pub fn begin(&self) -> LeaseStart {
        LeaseStart(self.clock.now(), machine_time())
    }

    /// Extends it to `length` after `start`, unless it has ended for good.
    pub fn extend(&self, LeaseStart(process, machine): LeaseStart, length: Duration) {
        let LeaseEnds { by_process, by_machine } = &*self.ends;
        by_machine.fetch_max(millis(machine + length), AcqRel);
        let until = process.plus(length).0;
        let _ = by_process.fetch_update(AcqRel, Acquire, |known| (known < until).then_some(until));
    }

    pub fn end(&self) {
        self.ends.by_process.store(ENDED, Release);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
