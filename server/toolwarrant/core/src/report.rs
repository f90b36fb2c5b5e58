//! The report of an upstream about a write, and the status of its task.

use crate::generated::values;
use serde::Deserialize;

/// The upstream's report about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpstreamReport {
    /// The write is done.
    Success,
    /// The write failed.
    Failure,
    /// There was no answer, or it could not be understood. The write may have been done.
    NoAnswer,
    /// No request was sent.
    NotSent,
    /// The upstream refused it, because it was busy.
    Busy,
}
values!(UpstreamReport {
    Success = "success",
    Failure = "failure",
    NoAnswer = "no_answer",
    NotSent = "not_sent",
    Busy = "busy",
});

/// The status of a task, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It was accepted and has not ended.
    Dispatched,
    /// The effect was measured.
    Success,
    /// The upstream reported success, and the effect cannot be measured.
    SuccessUnverified,
    /// The upstream reported failure, or no request was sent.
    Failed,
    /// The upstream reported success, but a measurement shows no effect. Only this status is
    /// refunded.
    FailedSilent,
    /// The outcome is unknown.
    Timeout,
}
values!(TaskStatus {
    Dispatched = "dispatched",
    Success = "success",
    SuccessUnverified = "success_unverified",
    Failed = "failed",
    FailedSilent = "failed_silent",
    Timeout = "timeout",
});

impl TaskStatus {
    /// The statuses of an ended task.
    pub const ENDS: &'static [Self] = Self::ALL.split_at(1).1;

    /// Returns true if the task has ended. The status is then final.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Dispatched)
    }
}
