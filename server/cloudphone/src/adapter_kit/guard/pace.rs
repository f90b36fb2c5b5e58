//! The platform's limits and pauses.
//!
//! The windows slide and are exact. The network can still deliver calls closer together. The
//! platform then refuses some and asks for a pause.

use super::call::GuardLimits;
use std::collections::VecDeque;
use std::time::Duration;
use toolwarrant::Timestamp;

#[derive(Debug)]
pub(super) struct CallPace {
    limits: GuardLimits,
    starts: VecDeque<Timestamp>,
    paused_until: Timestamp,
}

const PAUSE: Duration = Duration::from_secs(5);

pub(super) const PAUSE_MAX: Duration = Duration::from_mins(5);

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

impl CallPace {
    pub(super) fn new(limits: GuardLimits) -> Self {
        Self { limits, starts: VecDeque::new(), paused_until: Timestamp(0) }
    }

    /// Returns when the next call may start.
    pub(super) fn free_at(&self) -> Timestamp {
        let window = |most: u32, span| {
            let oldest = self.starts.len().checked_sub(most.max(1) as usize)?;
            self.starts.get(oldest).map(|start| start.plus(span))
        };
        let [second, minute] = [window(self.limits.per_second, SECOND), window(self.limits.per_minute, MINUTE)];
        second.max(minute).unwrap_or_default().max(self.paused_until)
    }

    pub(super) fn start(&mut self, now: Timestamp) {
        while self.starts.front().is_some_and(|start| start.plus(MINUTE) <= now) {
            self.starts.pop_front();
        }
        self.starts.push_back(now);
    }

    pub(super) fn pause(&mut self, pause: Option<Duration>, now: Timestamp) {
        let pause = pause.unwrap_or(PAUSE).clamp(SECOND, PAUSE_MAX);
        self.paused_until = self.paused_until.max(now.plus(pause));
    }

    /// Returns the end of a pause that goes on after `moment`.
    pub(super) fn pause_after(&self, moment: Timestamp) -> Option<Timestamp> {
        Some(self.paused_until).filter(|until| *until > moment)
    }
}
