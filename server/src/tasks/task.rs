//! What is known of one task: what was promised, how far it has come, what was seen.

use crate::clock::Timestamp;
use std::time::Duration;

/// A task that was accepted. A change of it is a new version, and a terminal one never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The terms at the time of acceptance; a change of the contract does not reach it.
    pub terms: Terms,
    /// Where it stands.
    pub phase: Phase,
    /// Earliest send: the target may still be settling from a write before.
    pub not_before: Timestamp,
    /// When it ends, counted from the first possible send.
    pub deadline_at: Timestamp,
    /// When to look at it next; `None` while an effect is under way, or after the end.
    pub wake_at: Option<Timestamp>,
    /// Sends so far, the one under way included.
    pub attempts: u8,
    /// The probe's reading from before the send, where the probe compares.
    pub baseline: Option<String>,
    /// No byte of the send under way may leave later.
    pub send_not_after: Option<Timestamp>,
    /// Whether any send may have left: false as long as each is known not to have.
    pub left: bool,
    /// When the latest send may have left.
    pub last_send_at: Option<Timestamp>,
    /// What the upstream said, and when.
    pub outcome: Option<(Upstream, Timestamp)>,
    /// Readings at or after the settling of the outcome that say absent, and those that say nothing.
    pub settled: Readings,
    /// The latest reading, as evidence.
    pub evidence: Option<Evidence>,
}

/// How an operation is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whether something can be read to verify it; without, it is never verified and never sent again.
    pub probe: Option<Probe>,
    /// Whether it may be sent again once a send has quiesced without effect.
    pub idempotent: bool,
    /// Longest time that an accepted request takes to show on the target.
    pub settle: Duration,
    /// From the first possible send to the end.
    pub deadline: Duration,
}

/// What kind of reading verifies an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Whether it compares with a reading from before the send.
    pub baseline: bool,
}

/// Where a task stands. All but the last are `dispatched` to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waits to be sent, at first or again.
    Ready,
    /// The reading from before the send is being taken.
    Baseline,
    /// A send is under way; this was written down before any byte left.
    Sending,
    /// The upstream has taken it and works on it.
    Polling,
    /// The upstream has answered, or will not; the target is read.
    Verifying,
    /// It has ended.
    Done(Status),
}

/// How a task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The effect was measured.
    Success,
    /// The upstream says so, and there is no means to measure.
    SuccessUnverified,
    /// The upstream says that it failed, or nothing ever left.
    Failed,
    /// The upstream says that it succeeded, and the effect is measurably absent: the one state that is refunded.
    FailedSilent,
    /// Nobody can say.
    Timeout,
}

/// What the upstream said of a send that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// It succeeded.
    Ok,
    /// It failed.
    Err,
    /// Nothing that could be understood.
    None,
}

/// Readings that count towards a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// Those with positive evidence that nothing happened.
    pub absent: u8,
    /// Those that could not be taken.
    pub unreadable: u8,
}

/// What a reading says of the effect. The adapter judges; `Absent` needs positive evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is there.
    Present,
    /// It is measurably not there.
    Absent,
    /// It could not be read.
    Unreadable,
}

/// What was checked on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What it says of the effect.
    pub verdict: Verdict,
    /// What the effect would look like.
    pub expected: String,
    /// What was seen.
    pub observed: String,
    /// When.
    pub at: Timestamp,
}

impl Task {
    /// A task as it is accepted: ready, not to be sent before `not_before`.
    #[must_use]
    pub fn accepted(terms: Terms, not_before: Timestamp) -> Self {
        Self {
            deadline_at: not_before.plus(terms.deadline),
            terms,
            phase: Phase::Ready,
            not_before,
            wake_at: Some(not_before),
            attempts: 0,
            baseline: None,
            send_not_after: None,
            left: false,
            last_send_at: None,
            outcome: None,
            settled: Readings::default(),
            evidence: None,
        }
    }

    /// How it has ended, if it has.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self.phase {
            Phase::Done(status) => Some(status),
            _ => None,
        }
    }
}
