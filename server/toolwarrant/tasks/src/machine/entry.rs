//! The entries that are stored with a step, in one transaction.

use super::times::CLOCKS_APART;
use crate::task::{Task, TaskStatus, UpstreamAnswer};
use toolwarrant_base::clock::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Charges one unit, before the first send.
    Charge,
    /// Nothing has left.
    ReverseCharge,
    /// The task ended as `failed_silent`.
    Refund,
    /// Frees the target lock. The target has cooled down at this time.
    Release(Timestamp),
}

impl Entry {
    #[must_use]
    pub fn kind(self) -> Option<&'static str> {
        match self {
            Self::Charge => Some("charge"),
            Self::ReverseCharge => Some("reversal"),
            Self::Refund => Some("refund"),
            Self::Release(_) => None,
        }
    }

    /// Lengthens a cool-down in a store of several machines. The next task on the target may be
    /// driven by a clock that is ahead.
    pub(crate) fn for_other_clocks(self, now: Timestamp) -> Self {
        match self {
            Self::Release(until) if until > now => Self::Release(until.plus(CLOCKS_APART)),
            entry => entry,
        }
    }

    #[must_use]
    pub fn parse_kind(name: &str) -> Option<&'static str> {
        [Self::Charge, Self::ReverseCharge, Self::Refund].into_iter().filter_map(Self::kind).find(|kind| *kind == name)
    }

    /// Returns true if a task in this state must have had this entry, once.
    #[must_use]
    pub fn is_due(self, task: &Task) -> bool {
        let Task { attempts, left, unanswered, settled, outcome, .. } = *task;
        match self {
            Self::Charge => attempts > 0,
            Self::ReverseCharge => {
                let is_busy = matches!(outcome, Some((UpstreamAnswer::Busy(_), _)));
                let is_undone = is_busy && !unanswered && settled.absent > 0;
                let ends = |status| !left || is_undone && status == TaskStatus::Failed;
                attempts > 0 && task.status().is_some_and(ends)
            }
            Self::Refund => task.status() == Some(TaskStatus::FailedSilent),
            Self::Release(_) => task.status().is_some(),
        }
    }
}
