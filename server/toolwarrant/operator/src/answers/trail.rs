//! The answers about the audit trail.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;

/// The members of a line that a command or a page uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AuditLine {
    pub time: Option<Timestamp>,
    pub application: Option<String>,
    pub application_name: Option<String>,
    pub key_id: Option<String>,
    pub operator: Option<LineOperator>,
    pub tool: Option<String>,
    pub command: Option<String>,
    pub event: Option<String>,
    pub target: Option<String>,
    pub object: Option<String>,
    pub outcome: Option<String>,
    pub request_id: Option<String>,
    pub task_id: Option<String>,
    pub act_id: Option<String>,
    pub arguments: Value,
    pub changes: Value,
}

/// The operator of a line.
#[derive(Clone, Debug, Deserialize)]
pub struct LineOperator {
    pub name: String,
}

impl AuditLine {
    /// Reads a line. All members of a line of another form are absent.
    #[must_use]
    pub fn of(line: &Value) -> Self {
        json::convert(line).unwrap_or_default()
    }
}

/// A page of the audit trail.
#[derive(Clone, Debug, Serialize)]
pub struct AuditPage {
    pub lines: Vec<Value>,
    pub examined_bytes: u64,
    pub examined_back_to: Option<String>,
    pub next: Option<String>,
}

/// The lines after a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditTail {
    pub lines: Vec<Value>,
    /// The place of the next lines.
    pub next: String,
}

/// The result of a verification of the audit trail.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    pub sound: bool,
    pub files: usize,
    pub last_seal: u64,
    pub pruned_through_seal: u64,
    pub sealed_lines: u64,
    pub of_these_found_unsealed: u64,
    pub lines_not_sealed: u64,
    pub faults: Vec<TrailFault>,
    /// Of the other replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_trails: Option<Vec<OtherTrail>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TrailFault {
    pub file: String,
    pub lines: String,
    pub found: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct OtherTrail {
    pub replica: String,
    pub last_seal: u64,
}
