//! The calls that the platform answered with 404. Such an answer can come from a gateway or from a
//! deployment.
//!
//! A call that has worked is missing only after three such answers, each a minute after the one
//! before. A call that has never worked is missing at once. A missing call is tried again after a
//! pause. The list is never missing, because without it nothing works.

use super::calls::ApiCall;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::ignore_poison;

/// The pauses before a missing call is tried again. The last one repeats.
const PAUSES: [Duration; 4] =
    [Duration::from_mins(1), Duration::from_mins(5), Duration::from_mins(15), Duration::from_mins(60)];

/// The answers with 404 after which a call that has worked is not missing yet.
const SPARED: usize = 2;

/// The time for which further answers with 404 do not count.
const APART: Duration = Duration::from_mins(1);

/// The calls that worked, or were answered with 404, since the start of this process.
#[derive(Debug, Default)]
pub(super) struct UnservedCalls(Mutex<BTreeMap<ApiCall, Served>>);

#[derive(Clone, Copy, Debug, Default)]
struct Served {
    /// True if the platform has served the call since the start of this process.
    has_worked: bool,
    /// The number of answers with 404 since then that count.
    count: usize,
    /// The time from which another one counts.
    until: Timestamp,
    /// True if the call is missing; it is tried again from `until` on.
    is_missing: bool,
}

impl UnservedCalls {
    /// Returns true if the pause of a missing call is not over.
    pub(super) fn withholds(&self, call: ApiCall, now: Timestamp) -> bool {
        self.calls().get(&call).is_some_and(|served| served.is_missing && now < served.until)
    }

    /// Returns true if a call is missing.
    pub(super) fn is_missing(&self, call: ApiCall) -> bool {
        self.calls().get(&call).is_some_and(|served| served.is_missing)
    }

    /// Records an answer with 404, and returns the pause, which is zero if the call is not missing.
    /// Returns `None` if the answer does not count.
    pub(super) fn add(&self, call: ApiCall, now: Timestamp) -> Option<Duration> {
        let mut calls = self.calls();
        let served = calls.entry(call).or_default();
        if now < served.until {
            return None;
        }
        let is_list = call == ApiCall::Infos || call == ApiCall::UserPadList && served.has_worked;
        let spared = if served.has_worked { SPARED } else { 0 };
        let missed = served.count.checked_sub(spared).filter(|_| !is_list);
        let pause = missed.map_or(Duration::ZERO, |missed| PAUSES[missed.min(PAUSES.len() - 1)]);
        served.count += 1;
        served.is_missing = missed.is_some();
        served.until = now.plus(pause.max(APART));
        Some(pause)
    }

    /// Records that the platform serves a call.
    pub(super) fn remove(&self, call: ApiCall) {
        self.calls().insert(call, Served { has_worked: true, ..Served::default() });
    }

    /// Ends all pauses.
    pub(super) fn end_pauses(&self) {
        self.calls().values_mut().for_each(|served| served.until = Timestamp::default());
    }

    /// Returns the calls that were answered with 404 since they last worked, each with the time
    /// from which it is tried again.
    pub(super) fn list(&self) -> Vec<(ApiCall, Timestamp)> {
        let until = |served: &Served| if served.is_missing { served.until } else { Timestamp::default() };
        let calls = self.calls();
        let unserved = calls.iter().filter(|(_, served)| served.count > 0);
        unserved.map(|(call, served)| (*call, until(served))).collect()
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<ApiCall, Served>> {
        ignore_poison(self.0.lock())
    }
}
