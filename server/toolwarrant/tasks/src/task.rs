//! The state of one task: its policy, its progress, its readings.

use serde::de::IntoDeserializer;
use serde::de::value::{self, StrDeserializer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::Remark;
use toolwarrant_core::catalogue;
use toolwarrant_core::generated::names;
pub use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_core::tasks::{Evidence, UpstreamReport};

/// The id of a task: the millisecond of its acceptance and 80 random bits. Ids sort by time of
/// acceptance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u128);

impl TaskId {
    /// The prefix before the 32 hexadecimal digits.
    const PREFIX: &str = "task_";

    /// Makes an id. It cannot be guessed if `random` cannot be guessed.
    #[must_use]
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        let mut low = [0; 16];
        low[6..].copy_from_slice(&random);
        Self(u128::from(now.0) << 80 | u128::from_be_bytes(low))
    }

    /// Returns the time of acceptance.
    #[must_use]
    pub fn accepted_at(self) -> Timestamp {
        Timestamp((self.0 >> 80) as u64)
    }

    /// Parses an id; `None` if `text` is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::PREFIX)?;
        let plain = digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| u128::from_str_radix(digits, 16).ok().map(Self)).flatten()
    }

    /// Returns the bytes that a store writes. They sort in the same order as the ids.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Restores an id from its bytes.
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

/// Each change is a new version. An ended task never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// As of the acceptance. Later changes of the contract do not affect the task.
    #[serde(rename = "terms")]
    pub policy: TaskPolicy,
    pub phase: Phase,
    /// The target may still be cooling down from an earlier write.
    pub not_before: Timestamp,
    /// By a cool-down of the target.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_delay_ms: u64,
    /// Counted from the first possible send. After it, the engine only finishes work in progress.
    /// So the task ends within a minute after the deadline, unless the process dies.
    pub deadline_at: Timestamp,
    /// `None` while an effect is in progress and after the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Timestamp>,
    /// Including a send in progress.
    pub attempts: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_baselines: u8,
    /// No byte of the latest send may leave, or has left, later than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_not_after: Option<Timestamp>,
    /// False as long as every send is known not to have left.
    pub left: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_send_at: Option<Timestamp>,
    /// The upstream's name for the operation in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<(UpstreamAnswer, Timestamp)>,
    /// The latest reported failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<Remark>,
    /// True if any send was never answered. The upstream may still be working on it.
    #[serde(default)]
    pub unanswered: bool,
    /// Readings that began after the outcome had time to settle.
    pub settled: Readings,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<(Reading, Timestamp)>,
    /// Prevented the send, or the check that the policy asks for: a sentence fragment.
    #[serde(rename = "hindrance", default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPolicy {
    /// Without a probe, the operation is never verified and never sent again.
    pub probe: Option<Probe>,
    /// True if it may be sent again after a send had no effect and can no longer arrive.
    pub idempotent: bool,
    /// Longest time until the effect of a request shows on the target.
    pub settle_seconds: u32,
    /// Longest time from the first possible send to the end. No operation takes longer.
    pub deadline_seconds: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub name: String,
    /// True if the probe compares with a reading before the send.
    pub baseline: bool,
}

/// The phase of a task. Clients see `dispatched` for all but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Ready,
    Baseline,
    /// A send is in progress. This phase is stored before any byte leaves.
    Sending,
    Polling,
    /// The upstream has answered, or never will.
    Verifying,
    Done(TaskStatus),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamAnswer {
    Ok,
    Err,
    /// No answer, or an unintelligible one.
    None,
    /// A refusal with this code. If nothing has left, it is known to come before the act.
    Refused(i64),
    Busy(i64),
    /// The upstream does not know the outcome, and never will.
    Unsure,
}

impl UpstreamAnswer {
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Err | Self::Refused(_) | Self::Busy(_))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readings {
    pub absent: u8,
    /// Readings that failed, or had a verdict that proves nothing on this target.
    pub unreadable: u8,
    /// Readings without an absence, on a target where only an absence can be proven.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_absent: u8,
}

/// The executor's verdict on a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The effect is there.
    Present,
    /// The effect is measurably not there. This needs positive evidence.
    Absent,
    /// The effect could not be read.
    Unreadable,
    /// No reading can decide about this write, because its effect looks like its absence. The
    /// observation says why.
    Undecidable,
}
names!(Verdict { Present = "present", Absent = "absent", Unreadable = "unreadable", Undecidable = "undecidable" });

/// One reading of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The verdict.
    pub verdict: Verdict,
    /// The observation that would prove the effect.
    pub expected: Remark,
    /// The actual observation.
    pub observed: Remark,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

impl Task {
    #[must_use]
    pub fn new(policy: TaskPolicy, at: Timestamp) -> Self {
        Self::new_delayed(policy, at, at)
    }

    #[must_use]
    pub fn new_delayed(policy: TaskPolicy, at: Timestamp, not_before: Timestamp) -> Self {
        Self {
            start_delay_ms: not_before.0.saturating_sub(at.0),
            deadline_at: not_before.plus(policy.deadline()),
            policy,
            phase: Phase::Ready,
            not_before,
            wake_at: Some(not_before),
            attempts: 0,
            baseline: None,
            failed_baselines: 0,
            send_not_after: None,
            left: false,
            last_send_at: None,
            operation: None,
            outcome: None,
            remark: None,
            unanswered: false,
            settled: Readings::default(),
            reading: None,
            obstacle: None,
            finished_at: None,
        }
    }

    #[must_use]
    pub fn status(&self) -> Option<TaskStatus> {
        match self.phase {
            Phase::Done(status) => Some(status),
            _ => None,
        }
    }

    #[must_use]
    pub fn outward_status(&self) -> TaskStatus {
        self.status().unwrap_or(TaskStatus::Dispatched)
    }

    #[must_use]
    pub fn evidence(&self) -> Option<Evidence> {
        let finished_at = self.finished_at?;
        let reported = match self.outcome {
            None => UpstreamReport::NotSent,
            Some((UpstreamAnswer::Ok, _)) => UpstreamReport::Success,
            Some((UpstreamAnswer::Err | UpstreamAnswer::Refused(_), _)) => UpstreamReport::Failure,
            Some((UpstreamAnswer::Busy(_), _)) => UpstreamReport::Busy,
            Some((UpstreamAnswer::None | UpstreamAnswer::Unsure, _)) => UpstreamReport::NoAnswer,
        };
        let probe = self.policy.probe.as_ref();
        let untried = self.attempts == 0 && self.obstacle.is_none();
        let (checked, expected, observed, at) = match (&self.reading, probe, self.outcome) {
            (Some((Reading { verdict: _, expected, observed }, at)), Some(probe), _) => {
                (&*probe.name, expected.as_str(), observed.as_str(), *at)
            }
            (None, Some(probe), None) if probe.baseline && self.baseline.is_none() && untried => (
                &*probe.name,
                "a reading from before the send, to compare with",
                "none could be taken, so nothing was sent",
                finished_at,
            ),
            (_, _, None) => {
                ("upstream_answer", "the platform's answer", "no request ever left, so nothing was done", finished_at)
            }
            (_, _, Some((upstream, at))) => {
                let observed = match upstream {
                    UpstreamAnswer::Ok => "it says that it is done",
                    UpstreamAnswer::Err => "it says that it failed",
                    UpstreamAnswer::None => "none that could be understood",
                    UpstreamAnswer::Refused(_) | UpstreamAnswer::Busy(_) if self.left => {
                        "it does not promise that a refusal means not done"
                    }
                    UpstreamAnswer::Refused(_) | UpstreamAnswer::Busy(_) => {
                        "such a refusal comes before the act, so nothing was done"
                    }
                    UpstreamAnswer::Unsure => "it does not know the outcome",
                };
                ("upstream_answer", "the platform's answer", observed, at)
            }
        };
        let refused = match self.outcome {
            Some((UpstreamAnswer::Refused(code), _)) => format!("refused by the platform with {code}; "),
            Some((UpstreamAnswer::Busy(code), _)) => format!("refused by the platform, which was busy, with {code}; "),
            _ => String::new(),
        };
        let obstacle = self.obstacle.as_ref().map_or(String::new(), |why| format!("; {why}"));
        // It is the last part, so that a long text hides nothing that was measured.
        let remark = match (self.outcome, &self.remark) {
            (Some((UpstreamAnswer::Err, _)), Some(text)) => format!("; the platform says: {}", text.as_str()),
            _ => String::new(),
        };
        let observed = format!("{refused}{observed}{obstacle}{remark}").into();
        Some(Evidence { checked: checked.to_owned(), expected: expected.into(), observed, reported, checked_at: at })
    }
}

impl Phase {
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let ended = TaskStatus::ENDS.iter().copied().find(|status| status.as_str() == name).map(Self::Done);
        let phase: StrDeserializer<'_, value::Error> = name.into_deserializer();
        ended.or_else(|| Self::deserialize(phase).ok())
    }

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

impl TaskPolicy {
    #[must_use]
    pub fn settle(&self) -> Duration {
        Duration::from_secs(self.settle_seconds.into())
    }

    /// Returns the longest time to the end, also for an unanswered operation.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline_seconds.into())
    }
}

impl From<&catalogue::PolicyDef> for TaskPolicy {
    fn from(policy: &catalogue::PolicyDef) -> Self {
        let catalogue::PolicyDef { probe, baseline, idempotent, settle_seconds, deadline_seconds } = *policy;
        Self {
            probe: probe.map(|name| Probe { name: name.to_owned(), baseline }),
            idempotent,
            settle_seconds,
            deadline_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarrant_base::json;

    /// States that released programs have stored. The second has the fields that the first omits.
    const STORED: [&str; 2] = [
        r#"{"terms":{"probe":null,"idempotent":true,"settle_seconds":10,"deadline_seconds":60},"phase":"ready",
            "not_before":"2026-07-28T12:00:00.123Z","deadline_at":"2026-07-28T12:01:00.123Z","attempts":0,"left":false,
            "settled":{"absent":0,"unreadable":0}}"#,
        r#"{"terms":{"probe":{"name":"paper","baseline":true},"idempotent":false,"settle_seconds":10,"deadline_seconds":60},
            "phase":{"done":"failed_silent"},"not_before":"2026-07-28T12:00:00.123Z","start_delay_ms":7,
            "deadline_at":"2026-07-28T12:01:00.123Z","wake_at":"2026-07-28T12:00:09.000Z","attempts":1,"baseline":"3",
            "send_not_after":"2026-07-28T12:00:05.123Z","left":true,"last_send_at":"2026-07-28T12:00:05.123Z",
            "operation":"7","outcome":["none","2026-07-28T12:00:06.000Z"],"unanswered":true,
            "settled":{"absent":1,"unreadable":2},
            "reading":[{"verdict":"absent","expected":"4","observed":"3"},"2026-07-28T12:00:08.000Z"],
            "finished_at":"2026-07-28T12:00:10.000Z"}"#,
    ];

    const HINDERED: &str = r#"{"terms":{"probe":{"name":"paper","baseline":true},"idempotent":false,"settle_seconds":60,
        "deadline_seconds":240},"phase":"verifying","not_before":"2026-07-28T12:00:00.123Z",
        "deadline_at":"2026-07-28T12:04:00.123Z","attempts":1,"left":true,"outcome":["ok","2026-07-28T12:00:06.000Z"],
        "unanswered":false,"settled":{"absent":0,"unreadable":0,"not_absent":1},"hindrance":"here, that proves no success"}"#;

    #[test]
    fn a_stored_state_is_read_and_written_with_unchanged_names() {
        for stored in STORED.into_iter().chain([HINDERED]) {
            let task: Task = json::read(stored).unwrap();
            let mut expected: serde_json::Value = json::read(stored).unwrap();
            if expected.get("unanswered").is_none() {
                expected["unanswered"] = false.into();
            }
            assert_eq!(serde_json::to_value(&task).unwrap(), expected);
        }
    }
}
