//! The history of a task, for operators and their pictures.

use crate::machine::{RecordedEvent, TimelineEntry, explain_end};
use crate::store::{LedgerRow, TimelineEvent};
use crate::task::Task;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::clean;
use toolwarrant_core::tasks::Evidence;

/// The history of a task. Its texts are clean, because an upstream wrote some of them.
#[derive(Clone, Debug, Serialize)]
pub struct TaskHistory {
    pub deadline_at: Timestamp,
    pub due_at: Option<Timestamp>,
    pub settle_seconds: Option<u32>,
    /// The reading before the send.
    pub before: Option<String>,
    pub why: Option<String>,
    pub evidence: Option<Evidence>,
    pub ledger: Vec<LedgerEntry>,
    pub timeline: Vec<TimelineRow>,
}

/// An entry of the ledger.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerEntry {
    pub kind: &'static str,
    pub at: Timestamp,
}

/// An event of a task.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineRow {
    pub at: Timestamp,
    /// The phase after the event, or the status of an ended task.
    pub phase: &'static str,
    pub what: String,
    /// `None` for the acceptance, and for an event of another version.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "write_clean")]
    pub event: Option<RecordedEvent>,
}

impl TaskHistory {
    #[must_use]
    pub fn of(task: &Task, timeline: Vec<TimelineEvent>, entries: &[LedgerRow]) -> Self {
        let event = |TimelineEvent { at, phase, what }: TimelineEvent| {
            let text = clean(&what.to_string()).into_owned();
            let event = if let TimelineEntry::Event(noted) = what { Some(noted) } else { None };
            TimelineRow { at, phase, what: text, event }
        };
        let Task { policy, baseline, wake_at, deadline_at, .. } = task;
        Self {
            deadline_at: *deadline_at,
            due_at: *wake_at,
            settle_seconds: policy.probe.as_ref().map(|_| policy.settle_seconds),
            before: baseline.as_ref().map(|reading| clean(reading).into_owned()),
            why: explain_end(task),
            evidence: task.evidence(),
            ledger: entries.iter().map(|LedgerRow { kind, at, .. }| LedgerEntry { kind, at: *at }).collect(),
            timeline: timeline.into_iter().map(event).collect(),
        }
    }
}

fn write_clean<S: Serializer>(event: &Option<RecordedEvent>, serializer: S) -> Result<S::Ok, S::Error> {
    clean_texts(json!(event)).serialize(serializer)
}

fn clean_texts(value: Value) -> Value {
    match value {
        Value::String(text) => clean(&text).into(),
        Value::Array(items) => items.into_iter().map(clean_texts).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, clean_texts(value))).collect(),
        other => other,
    }
}
