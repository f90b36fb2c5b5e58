//! Whether a platform is there: a circuit breaker. It opens after several failures in a row, or at once where the credentials are
//! refused. After a pause one read at a time tries; the pause grows while that fails.

use super::call::{CallEnd, Class, Withheld};
use std::time::Duration;
use toolwarrant::Timestamp;

/// The circuit of one account. Closed: calls may start.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// Failures in a row.
    failures: u32,
    open: Option<Open>,
}

/// Why it is open, and until when.
#[derive(Debug)]
struct Open {
    until: Timestamp,
    pause: Duration,
    denied: bool,
    /// A read is on its way to find out.
    tried: bool,
}

/// So many failures in a row open the circuit.
pub(super) const FAILURES: u32 = 5;

/// First and longest pause of a platform that does not answer. A list that is kept fresh recovers within the longest.
pub(super) const SILENT: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(30)];

/// First and longest pause of a platform that refuses the credentials: each repeat brings the account nearer to being locked.
pub(super) const DENIED: [Duration; 2] = [Duration::from_mins(15), Duration::from_hours(1)];

impl Circuit {
    /// Whether such a call may start.
    pub(super) fn check(&self, class: Class, now: Timestamp) -> Result<(), Withheld> {
        match &self.open {
            Some(open) if now < open.until || open.tried || class == Class::Write => {
                Err(if open.denied { Withheld::Denied(open.until) } else { Withheld::Unreachable(open.until) })
            }
            _ => Ok(()),
        }
    }

    /// A call starts that [`Self::check`] let through. Returns whether it is a trial.
    pub(super) fn start(&mut self) -> bool {
        if let Some(open) = &mut self.open {
            open.tried = true;
        }
        self.open.is_some()
    }

    /// A call has ended; `None` if it was given up. Calls from before the circuit opened say nothing of now, unless they were denied.
    pub(super) fn end(&mut self, is_trial: bool, end: Option<CallEnd>, now: Timestamp) {
        if let (Some(open), true) = (&mut self.open, is_trial) {
            open.tried = false;
        }
        let is_denied = self.open.as_ref().is_some_and(|open| open.denied);
        match end {
            Some(CallEnd::Answered | CallEnd::Limited(_)) if is_trial || self.open.is_none() => *self = Self::default(),
            Some(CallEnd::Denied) if is_trial || !is_denied => self.break_open(true, now),
            Some(CallEnd::Failed) if is_trial => self.break_open(is_denied, now),
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
        let [first, longest] = if denied { DENIED } else { SILENT };
        let again = self.open.take().filter(|open| open.denied == denied);
        let pause = again.map_or(first, |open| (open.pause * 2).min(longest));
        self.open = Some(Open { until: now.plus(pause), pause, denied, tried: false });
    }
}
