//! The history of a task as JSON, for operators and their pictures.

use crate::machine::{Happening, explain_end};
use crate::store::{LedgerRow, TimelineEvent};
use crate::task::Task;
use serde_json::{Map, Value, json};
use toolwarrant_base::text::clean;

/// Cleans texts, because an upstream wrote some of them.
#[must_use]
pub fn describe_history(task: &Task, timeline: &[TimelineEvent], entries: &[LedgerRow]) -> Map<String, Value> {
    let event = |TimelineEvent { at, phase, what }: &TimelineEvent| {
        let mut row = json!({"at": at, "phase": phase, "what": clean(&what.to_string())});
        if let Happening::Event(noted) = what {
            row["event"] = clean_texts(json!(noted));
        }
        row
    };
    let entry = |LedgerRow { kind, at, .. }: &LedgerRow| json!({"kind": kind, "at": at});
    let Task { policy, baseline, wake_at, deadline_at, .. } = task;
    let members = [
        ("deadline_at", json!(deadline_at)),
        ("due_at", json!(wake_at)),
        ("settle_seconds", json!(policy.probe.as_ref().map(|_| policy.settle_seconds))),
        ("before", json!(baseline.as_ref().map(|reading| clean(reading)))),
        ("why", json!(explain_end(task))),
        ("evidence", json!(task.evidence())),
        ("ledger", entries.iter().map(entry).collect()),
        ("timeline", timeline.iter().map(event).collect()),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn clean_texts(value: Value) -> Value {
    match value {
        Value::String(text) => clean(&text).into(),
        Value::Array(items) => items.into_iter().map(clean_texts).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, clean_texts(value))).collect(),
        other => other,
    }
}
