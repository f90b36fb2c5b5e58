//! What is known of one task: what was promised, how far it has come, what was seen.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use toolwarrant_core::catalogue;
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::tasks::{Evidence, TaskStatus, UpstreamReport};

/// Names a task: the millisecond at which it was accepted, and 80 random bits. In the order of acceptance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u128);

impl TaskId {
    /// What comes before the 32 hexadecimal digits.
    const PREFIX: &str = "task_";

    /// A name that nobody can guess, if `random` cannot be guessed.
    #[must_use]
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        let mut low = [0; 16];
        low[6..].copy_from_slice(&random);
        Self(u128::from(now.0) << 80 | u128::from_be_bytes(low))
    }

    /// The task of that name, if it has the form of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::PREFIX)?;
        let plain = digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| u128::from_str_radix(digits, 16).ok().map(Self)).flatten()
    }

    /// As a store keeps it; the order of the bytes is that of the ids.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// From how a store keeps it.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:032x}", Self::PREFIX, self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How far a task has come. A change of it is a new version, and a terminal one never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The terms at the time of acceptance; a change of the contract does not reach it.
    pub terms: Terms,
    /// Where it stands.
    pub phase: Phase,
    /// Earliest send: the target may still be settling from a write before.
    pub not_before: Timestamp,
    /// For how long after its acceptance the target was settling, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_delay_ms: u64,
    /// When it ends, counted from the first possible send.
    pub deadline_at: Timestamp,
    /// When to look at it next; `None` while an effect is under way, or after the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Timestamp>,
    /// Sends so far, the one under way included.
    pub attempts: u8,
    /// The probe's reading from before the send, where the probe compares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// No byte of the send under way may leave later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_not_after: Option<Timestamp>,
    /// Whether any send may have left: false as long as each is known not to have.
    pub left: bool,
    /// When the latest send may have left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_send_at: Option<Timestamp>,
    /// What the upstream calls the operation that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// What the upstream said, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<(Upstream, Timestamp)>,
    /// Whether any send was never answered: who knows for how long it is worked on.
    #[serde(default)]
    pub unanswered: bool,
    /// Readings at or after the settling of the outcome that say absent, and those that say nothing.
    pub settled: Readings,
    /// The latest reading, and when it was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<(Reading, Timestamp)>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// How an operation is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// What is read to verify it; without, it is never verified and never sent again.
    pub probe: Option<Probe>,
    /// Whether it may be sent again once a send has quiesced without effect.
    pub idempotent: bool,
    /// Longest time that an accepted request takes to show on the target, in seconds.
    pub settle_seconds: u32,
    /// From the first possible send to the end, in seconds.
    pub deadline_seconds: u32,
}

/// A reading that verifies an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Its name in the contract.
    pub name: String,
    /// Whether it compares with a reading from before the send.
    pub baseline: bool,
}

/// Where a task stands. All but the last are `dispatched` to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upstream {
    /// It succeeded.
    Ok,
    /// It failed.
    Err,
    /// Nothing that could be understood.
    None,
}

/// Readings that count towards a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readings {
    /// Those with positive evidence that nothing happened.
    pub absent: u8,
    /// Those that could not be taken.
    pub unreadable: u8,
}

/// What a reading says of the effect. The adapter judges; `Absent` needs positive evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is there.
    Present,
    /// It is measurably not there.
    Absent,
    /// It could not be read.
    Unreadable,
}

/// One reading of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// What it says of the effect.
    pub verdict: Verdict,
    /// What the effect would look like.
    pub expected: String,
    /// What was seen.
    pub observed: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(millis: &u64) -> bool {
    *millis == 0
}

impl Task {
    /// A task as it is accepted: ready, to be sent at once.
    #[must_use]
    pub fn accepted(terms: Terms, at: Timestamp) -> Self {
        Self::delayed(terms, at, at)
    }

    /// A task that is accepted `at` that moment: ready, not to be sent before `not_before`.
    #[must_use]
    pub fn delayed(terms: Terms, at: Timestamp, not_before: Timestamp) -> Self {
        Self {
            start_delay_ms: not_before.0.saturating_sub(at.0),
            deadline_at: not_before.plus(terms.deadline()),
            terms,
            phase: Phase::Ready,
            not_before,
            wake_at: Some(not_before),
            attempts: 0,
            baseline: None,
            send_not_after: None,
            left: false,
            last_send_at: None,
            operation: None,
            outcome: None,
            unanswered: false,
            settled: Readings::default(),
            reading: None,
            finished_at: None,
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

    /// Its state, as everybody outside sees it.
    #[must_use]
    pub fn outward_status(&self) -> TaskStatus {
        self.status().map_or(TaskStatus::Dispatched, TaskStatus::from)
    }

    /// What its end rests on, if it has ended.
    #[must_use]
    pub fn evidence(&self) -> Option<Evidence> {
        let finished_at = self.finished_at?;
        let reported = match self.outcome {
            None => UpstreamReport::NotSent,
            Some((Upstream::Ok, _)) => UpstreamReport::Success,
            Some((Upstream::Err, _)) => UpstreamReport::Failure,
            Some((Upstream::None, _)) => UpstreamReport::NoAnswer,
        };
        let probe = self.terms.probe.as_ref();
        let (checked, expected, observed, at) = match (&self.reading, probe, self.outcome) {
            (Some((Reading { verdict: _, expected, observed }, at)), Some(probe), _) => {
                (&*probe.name, &**expected, &**observed, *at)
            }
            (None, Some(probe), None) if probe.baseline && self.baseline.is_none() => (
                &*probe.name,
                "a reading from before the send, to compare with",
                "none could be taken, so nothing was sent",
                finished_at,
            ),
            (_, _, None) => ("upstream_answer", "an answer", "no request ever left, so nothing was done", finished_at),
            (_, _, Some((upstream, at))) => {
                let observed = match upstream {
                    Upstream::Ok => "it says that it is done",
                    Upstream::Err => "it says that it failed",
                    Upstream::None => "none that could be understood",
                };
                ("upstream_answer", "an answer", observed, at)
            }
        };
        let text = str::to_owned;
        Some(Evidence { checked: text(checked), expected: text(expected), observed: text(observed), reported, at })
    }
}

impl Verdict {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Unreadable => "unreadable",
        }
    }
}

impl Phase {
    /// Its name in a timeline; for an end, that of its status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Baseline => "baseline",
            Self::Sending => "sending",
            Self::Polling => "polling",
            Self::Verifying => "verifying",
            Self::Done(status) => status.as_str(),
        }
    }
}

impl Status {
    /// Every one, as the contract names it.
    pub const ALL: [Self; 5] =
        [Self::Success, Self::SuccessUnverified, Self::Failed, Self::FailedSilent, Self::Timeout];

    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        TaskStatus::from(self).as_str()
    }
}

impl From<Status> for TaskStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Success => Self::Success,
            Status::SuccessUnverified => Self::SuccessUnverified,
            Status::Failed => Self::Failed,
            Status::FailedSilent => Self::FailedSilent,
            Status::Timeout => Self::Timeout,
        }
    }
}

impl Terms {
    /// Longest time that an accepted request takes to show on the target.
    #[must_use]
    pub fn settle(&self) -> Duration {
        Duration::from_secs(self.settle_seconds.into())
    }

    /// From the first possible send to the end; also the longest time that an operation takes of which nobody tells the end.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline_seconds.into())
    }
}

impl From<&catalogue::Terms> for Terms {
    fn from(terms: &catalogue::Terms) -> Self {
        let catalogue::Terms { probe, baseline, idempotent, settle_seconds, deadline_seconds } = *terms;
        Self {
            probe: probe.map(|name| Probe { name: name.to_owned(), baseline }),
            idempotent,
            settle_seconds,
            deadline_seconds,
        }
    }
}
