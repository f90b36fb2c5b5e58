//! The report of an upstream about a write.

use crate::generated::values;

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
