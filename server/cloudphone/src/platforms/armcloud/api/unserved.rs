//! The calls that the platform answered with 404. Each is tried again after a pause, because such
//! an answer can come from a gateway or from a deployment.

use super::calls::ApiCall;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::ignore_poison;

/// The pauses before a call is tried again. The last one repeats.
const PAUSES: [Duration; 4] =
    [Duration::from_mins(1), Duration::from_mins(5), Duration::from_mins(15), Duration::from_mins(60)];

/// The calls that were answered with 404 since they last worked.
#[derive(Debug, Default)]
pub(super) struct UnservedCalls(Mutex<BTreeMap<ApiCall, Unserved>>);

#[derive(Clone, Copy, Debug, Default)]
struct Unserved {
    /// The number of answers with 404 in a row.
    count: usize,
    /// The time from which the call is tried again.
    until: Timestamp,
}

impl UnservedCalls {
    /// Returns true if the pause of a call is not over.
    pub(super) fn withholds(&self, call: ApiCall, now: Timestamp) -> bool {
        self.calls().get(&call).is_some_and(|unserved| now < unserved.until)
    }

    /// Records an answer with 404, and returns the pause. Returns `None` if a pause runs already,
    /// because several calls were under way.
    pub(super) fn add(&self, call: ApiCall, now: Timestamp) -> Option<Duration> {
        let mut calls = self.calls();
        let unserved = calls.entry(call).or_default();
        if now < unserved.until {
            return None;
        }
        let pause = PAUSES[unserved.count.min(PAUSES.len() - 1)];
        *unserved = Unserved { count: unserved.count + 1, until: now.plus(pause) };
        Some(pause)
    }

    /// Records that the platform serves a call.
    pub(super) fn remove(&self, call: ApiCall) {
        self.calls().remove(&call);
    }

    /// Ends all pauses.
    pub(super) fn end_pauses(&self) {
        self.calls().values_mut().for_each(|unserved| unserved.until = Timestamp::default());
    }

    /// Returns the calls, each with the time from which it is tried again.
    pub(super) fn list(&self) -> Vec<(ApiCall, Timestamp)> {
        self.calls().iter().map(|(call, unserved)| (*call, unserved.until)).collect()
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<ApiCall, Unserved>> {
        ignore_poison(self.0.lock())
    }
}
