//! The calls that the platform answered with 404, which can also come from a gateway or a
//! deployment.
//!
//! A call that has worked is missing only after three such answers, each a minute after the one
//! before. One that has never worked is missing at once. A missing call is tried again after a
//! pause. The list is never missing, because without it nothing works.

use super::calls::ApiCall;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::ignore_poison;

/// Before a missing call is tried again. The last one repeats.
const PAUSES: [Duration; 4] =
    [Duration::from_mins(1), Duration::from_mins(5), Duration::from_mins(15), Duration::from_mins(60)];

const SPARED: usize = 2;

/// For this long, further answers with 404 do not count.
const APART: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct UnservedCalls(Mutex<BTreeMap<ApiCall, Served>>);

#[derive(Clone, Copy, Debug, Default)]
struct Served {
    has_worked: bool,
    count: usize,
    until: Timestamp,
    is_missing: bool,
}

impl UnservedCalls {
    pub(super) fn withholds(&self, call: ApiCall, now: Timestamp) -> bool {
        self.calls().get(&call).is_some_and(|served| served.is_missing && now < served.until)
    }

    pub(super) fn is_missing(&self, call: ApiCall) -> bool {
        self.calls().get(&call).is_some_and(|served| served.is_missing)
    }

    /// Returns the pause, zero if the call is not missing; `None` if the answer does not count.
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

    pub(super) fn remove(&self, call: ApiCall) {
        self.calls().insert(call, Served { has_worked: true, ..Served::default() });
    }

    pub(super) fn end_pauses(&self) {
        self.calls().values_mut().for_each(|served| served.until = Timestamp::default());
    }

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
