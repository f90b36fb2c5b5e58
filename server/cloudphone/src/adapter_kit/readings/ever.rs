//! Knows if a kind of reading can succeed on an account at all. If none can, a write does not wait
//! for its own.

use std::sync::Mutex;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::ignore_poison;

const TRIED_EVERY: Duration = Duration::from_mins(5);

const FAILURES: u32 = 2;

#[derive(Debug, Default)]
pub struct EverRead(Mutex<Attempts>);

#[derive(Debug, Default)]
struct Attempts {
    has_succeeded: bool,
    failures: u32,
    failed_at: Timestamp,
}

impl EverRead {
    #[must_use]
    pub fn new(has_succeeded: bool) -> Self {
        Self(Mutex::new(Attempts { has_succeeded, ..Attempts::default() }))
    }

    pub fn note(&self, has_succeeded: bool, now: Timestamp) {
        let mut attempts = ignore_poison(self.0.lock());
        if has_succeeded {
            attempts.has_succeeded = true;
        } else {
            attempts.failures = attempts.failures.saturating_add(1);
            attempts.failed_at = now;
        }
    }

    #[must_use]
    pub fn is_in_vain(&self, now: Timestamp) -> bool {
        let attempts = ignore_poison(self.0.lock());
        !attempts.has_succeeded && attempts.failures >= FAILURES && now.since(attempts.failed_at) < TRIED_EVERY
    }
}
