//! The knowledge if a kind of reading can succeed on an account at all.

use std::sync::Mutex;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::ignore_poison;

/// The time after a failed reading until another one is tried, if none has ever succeeded.
const TRIED_EVERY: Duration = Duration::from_mins(5);

/// The number of failures after which no reading is expected to succeed.
const FAILURES: u32 = 2;

/// A kind of reading on one account. As long as none has succeeded, each write would wait in vain
/// for its own.
#[derive(Debug, Default)]
pub struct EverRead(Mutex<Attempts>);

#[derive(Debug, Default)]
struct Attempts {
    has_succeeded: bool,
    /// The number of failures, and the time of the last one.
    failures: u32,
    failed_at: Timestamp,
}

impl EverRead {
    /// Returns the knowledge of an account on which such a reading is known to have succeeded, or
    /// not.
    #[must_use]
    pub fn new(has_succeeded: bool) -> Self {
        Self(Mutex::new(Attempts { has_succeeded, ..Attempts::default() }))
    }

    /// Notes the end of a reading.
    pub fn note(&self, has_succeeded: bool, now: Timestamp) {
        let mut attempts = ignore_poison(self.0.lock());
        if has_succeeded {
            attempts.has_succeeded = true;
        } else {
            attempts.failures = attempts.failures.saturating_add(1);
            attempts.failed_at = now;
        }
    }

    /// Returns true if no reading has ever succeeded, and several have failed lately.
    #[must_use]
    pub fn is_in_vain(&self, now: Timestamp) -> bool {
        let attempts = ignore_poison(self.0.lock());
        !attempts.has_succeeded && attempts.failures >= FAILURES && now.since(attempts.failed_at) < TRIED_EVERY
    }
}
