//! The last 24 hours of a server, in memory: once a minute the counters that the metrics have.

use crate::view::answer_types;
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::sync::Mutex;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::ignore_poison;

/// A day.
const POINTS_MAX: usize = 1_440;

/// Minutes of one answered period.
const PERIOD: usize = 15;

/// Counters since the start of the server, by name. A name stays once it is there.
pub(crate) type Totals = Vec<(&'static str, u64)>;

/// The counters at one time.
#[derive(Clone, Default)]
pub(crate) struct HistoryPoint {
    pub(crate) at: Timestamp,
    pub(crate) calls: Totals,
    pub(crate) tasks: Totals,
}

/// Counts by name, without what did not happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub Vec<(&'static str, u64)>);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

answer_types! {
    /// The counts of the last day.
    pub struct LastDay {
        calls: Counts,
        tasks: Counts,
        since: Timestamp,
        periods: Vec<Period> => hidden,
    }
}

/// The counts of a part of the last day.
#[derive(Clone, Debug, Serialize)]
pub struct Period {
    pub calls: Counts,
    pub tasks: Counts,
    pub until: Timestamp,
}

/// The points of the last day.
#[derive(Default)]
pub(crate) struct History(Mutex<VecDeque<HistoryPoint>>);

impl History {
    pub(crate) fn note(&self, point: HistoryPoint) {
        let mut points = ignore_poison(self.0.lock());
        points.push_back(point);
        while points.len() > POINTS_MAX {
            points.pop_front();
        }
    }

    /// Returns the counts from the oldest point until `now`, whole and by periods.
    pub(crate) fn describe(&self, now: HistoryPoint) -> LastDay {
        let points = ignore_poison(self.0.lock());
        let oldest = points.front().cloned().unwrap_or_default();
        let ends = points.iter().skip(PERIOD).step_by(PERIOD).chain([&now]);
        let begins = std::iter::once(&oldest).chain(points.iter().skip(PERIOD).step_by(PERIOD));
        let period = |(begin, end): (&HistoryPoint, &HistoryPoint)| Period {
            calls: difference(&begin.calls, &end.calls),
            tasks: difference(&begin.tasks, &end.tasks),
            until: end.at,
        };
        let Period { calls, tasks, until: _ } = period((&oldest, &now));
        LastDay { calls, tasks, since: oldest.at, periods: begins.zip(ends).map(period).collect() }
    }
}

/// Leaves out what did not happen.
fn difference(before: &Totals, after: &Totals) -> Counts {
    let earlier = |name: &str| before.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
    let grown = after.iter().map(|(name, count)| (*name, count.saturating_sub(earlier(name))));
    Counts(grown.filter(|(_, count)| *count > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_kept_and_answered_by_quarters_of_an_hour() {
        let history = History::default();
        let at = |minute: u64| HistoryPoint {
            at: Timestamp(minute * 60_000),
            calls: vec![("ok", minute), ("refused", 7)],
            tasks: Vec::new(),
        };
        assert_eq!(history.describe(at(3)).calls.0, [("ok", 3), ("refused", 7)], "no point yet");
        for minute in 0..2_000 {
            history.note(at(minute));
        }
        let described = history.describe(at(2_000));
        assert_eq!(described.since, Timestamp(560 * 60_000));
        assert_eq!(described.calls.0, [("ok", 1_440)], "what did not grow is left out");
        let periods = &described.periods;
        assert_eq!(periods.len(), 96);
        let sum: u64 = periods.iter().flat_map(|period| &period.calls.0).map(|(_, count)| count).sum();
        assert_eq!((sum, periods[95].until), (1_440, Timestamp(2_000 * 60_000)));
    }
}
