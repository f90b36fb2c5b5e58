//! The permission to send a write, asked for right before its first byte leaves. A process that
//! stood still may have missed that another one leads, so its lease is checked once the connection
//! stands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::text::Remark;
use toolwarrant_core::lease::Lease;

/// The permission to send a write. It does not hold until [`Self::confirm`] says so.
#[derive(Clone, Debug)]
#[must_use = "no byte may leave before `confirm` allows it"]
pub struct Leave {
    not_after: Timestamp,
    clock: Clock,
    lease: Option<Lease>,
    asked: Arc<AtomicBool>,
}

impl Leave {
    /// Makes a leave that only time ends: for a request that no other process can repeat.
    pub fn until(not_after: Timestamp, clock: &Clock) -> Self {
        Self::for_task(not_after, clock, None)
    }

    pub(crate) fn for_task(not_after: Timestamp, clock: &Clock, lease: Option<Lease>) -> Self {
        Self { not_after, clock: clock.clone(), lease, asked: Arc::default() }
    }

    /// Returns the last moment at which the first byte may leave.
    #[must_use]
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.lease.is_none() || self.asked.load(Relaxed)
    }

    /// Checks that the write may leave now. Call it after everything that takes time, such as a
    /// connection, and send at once.
    ///
    /// # Errors
    /// The reason why the write must not leave any more. The outcome is [`Sent::NotSent`].
    ///
    /// [`Sent::NotSent`]: crate::machine::Sent::NotSent
    pub fn confirm(self) -> Result<(), Remark> {
        self.asked.store(true, Relaxed);
        match self.lease {
            Some(lease) if !lease.stands() => Err("another process may lead".into()),
            _ if self.clock.now() > self.not_after => Err("it is too late".into()),
            _ => Ok(()),
        }
    }
}
