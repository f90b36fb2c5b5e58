//! The answers about the audit trail.

use crate::view::{AnswerView, Fact, PageOf, Show, Tone, answer_types, meaning, name_fact};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_core::act::Changes;

/// A line, as it is in its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrailLine(pub Value);

/// The members of a line that a command or a page uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuditLine {
    pub(crate) time: Option<Timestamp>,
    pub(crate) application: Option<String>,
    pub(crate) application_name: Option<String>,
    pub(crate) key_id: Option<String>,
    pub(crate) operator: Option<LineOperator>,
    pub(crate) tool: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) object: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) calls: Option<u64>,
    pub(crate) from: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) task_id: Option<String>,
    pub(crate) act_id: Option<String>,
    pub(crate) arguments: Value,
    pub(crate) changes: Option<Changes>,
}

/// The operator of a line.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LineOperator {
    pub(crate) name: String,
}

impl TrailLine {
    /// Reads the line. Returns `None` if it has another form.
    pub(crate) fn read(&self) -> Option<AuditLine> {
        json::convert(&self.0).ok()
    }
}

impl Show for TrailLine {
    fn facts(&self) -> Vec<Fact> {
        let read = self.read();
        // It is not a line of this program, so an operator sees all of it.
        let unreadable = read.is_none().then(|| AnswerView::Word("unreadable".to_owned(), Tone::Bad));
        let line = read.unwrap_or_else(|| AuditLine { arguments: self.0.clone(), ..AuditLine::default() });
        let AuditLine { time, application, application_name, operator, tool, command, event, target, object, .. } =
            line;
        let AuditLine { key_id, outcome, calls, from, task_id, request_id, act_id, arguments, changes, .. } = line;
        let link =
            |id: String| AnswerView::Link(application_name.unwrap_or_else(|| id.clone()), PageOf::Application(id));
        let by = application.map(link).or_else(|| operator.map(|operator| operator.name.show()));
        let with = if arguments.is_null() { changes.show() } else { arguments.show() };
        vec![
            name_fact("time", time.show()),
            name_fact("by", by.unwrap_or(AnswerView::Absent)),
            name_fact("key", key_id.map_or(AnswerView::Absent, |id| meaning::key(&id))),
            name_fact("did", tool.or(command).or(event).show()),
            name_fact("on", meaning::object(&target.or(object))),
            name_fact("outcome", outcome.map(|text| meaning::outcome(&text)).or(unreadable).show()),
            name_fact("calls", calls.show()),
            name_fact("from", from.show()),
            name_fact("task", task_id.map_or(AnswerView::Absent, |id| meaning::task(&id))),
            name_fact("record", meaning::object(&request_id.or(act_id))),
            name_fact("with", with),
        ]
    }
}

answer_types! {
    /// A page of the audit trail.
    pub struct AuditPage {
        lines: Vec<TrailLine>,
        examined_bytes: u64,
        examined_back_to: Option<String>,
        next: Option<String>,
    }

    /// The result of a verification of the audit trail.
    pub struct Verification {
        sound: bool => verdict,
        files: usize,
        last_seal: u64,
        pruned_through_seal: u64,
        sealed_lines: u64,
        of_these_found_unsealed: u64,
        lines_not_sealed: u64,
        faults: Vec<TrailFault>,
        /// Of the other replicas.
        #[serde(skip_serializing_if = "Option::is_none")]
        other_trails: Option<Vec<OtherTrail>>,
    }

    pub struct TrailFault {
        file: String,
        lines: String,
        found: String,
    }

    pub struct OtherTrail {
        replica: String,
        last_seal: u64,
    }
}
