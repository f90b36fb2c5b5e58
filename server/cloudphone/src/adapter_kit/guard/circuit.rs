//! A circuit breaker. It opens after several failures in a row, or at once if the credentials are
//! refused. After a pause, or if an operator asks, one read at a time tries. The pause grows while
//! that fails.

use super::call::{CallEnd, Class, Withheld};
use std::time::Duration;
use toolwarrant::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Circuit {
    failures: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    until: Timestamp,
    pause: Duration,
    denied: bool,
    tried: bool,
    /// The next read tests the platform before `until`.
    urged: bool,
}

pub(super) const FAILURES: u32 = 5;

/// The first, the second and the longest pause without answers.
pub(super) const SILENT: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(30)];

/// The same after refused credentials. One read confirms the refusal, because a clock or a gateway
/// can be wrong for a moment. Each further one brings the account nearer to being locked.
pub(super) const DENIED: [Duration; 3] = [Duration::from_secs(5), Duration::from_mins(15), Duration::from_hours(1)];

impl Circuit {
    pub(super) fn check(&self, class: Class, now: Timestamp) -> Result<(), Withheld> {
        let Some(open) = &self.open else { return Ok(()) };
        if !open.tried && class != Class::Write && (open.urged || now >= open.until) {
            return Ok(());
        }
        Err(if open.denied { Withheld::Denied(open.until) } else { Withheld::Unreachable(open.until) })
    }

    pub(super) fn urge(&mut self) {
        if let Some(open) = &mut self.open {
            open.urged = true;
        }
    }

    pub(super) fn start(&mut self) -> bool {
        if let Some(open) = &mut self.open {
            (open.tried, open.urged) = (true, false);
        }
        self.open.is_some()
    }

    /// Counts an end; `None` if the call was given up. Calls from before the circuit opened do not
    /// describe the present, except those that were denied.
    pub(super) fn end(&mut self, is_trial: bool, end: Option<CallEnd>, now: Timestamp) {
        if let (Some(open), true) = (&mut self.open, is_trial) {
            open.tried = false;
        }
        let is_denied = self.open.as_ref().is_some_and(|open| open.denied);
        match end {
            Some(CallEnd::Answered | CallEnd::Limited(_)) if is_trial || self.open.is_none() => *self = Self::default(),
            Some(CallEnd::Denied) if is_trial || !is_denied => self.break_open(true, now),
            Some(CallEnd::Failed) if is_trial => match &mut self.open {
                // Silence confirms nothing.
                Some(open) if open.denied => open.until = now.plus(open.pause),
                _ => self.break_open(false, now),
            },
            Some(CallEnd::Failed) => {
                self.failures += 1;
                if self.failures >= FAILURES && self.open.is_none() {
                    self.break_open(false, now);
                }
            }
            _ => {}
        }
    }

    fn break_open(&mut self, denied: bool, now: Timestamp) {
        let [first, second, longest] = if denied { DENIED } else { SILENT };
        let again = self.open.take().filter(|open| open.denied == denied);
        let pause = again.map_or(first, |open| (open.pause * 2).clamp(second, longest));
        self.open = Some(Open { until: now.plus(pause), pause, denied, tried: false, urged: false });
    }
}
