//! The answers about a server, its data folder and its console.

use super::act::ActMade;
use crate::history::LastDay;
use crate::upstreams::UpstreamRow;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::Role;

/// The overview of a server.
#[derive(Clone, Debug, Serialize)]
pub struct OverviewAnswer {
    #[serde(flatten)]
    pub server: ServerFacts,
    pub targets: Vec<TargetCounts>,
    pub needs_a_look: Vec<Concern>,
}

/// The targets of a resource, by state.
#[derive(Clone, Debug, Serialize)]
pub struct TargetCounts {
    pub resource: &'static str,
    pub count: u64,
    pub states: BTreeMap<&'static str, u64>,
}

/// A thing that is not as it should be.
#[derive(Clone, Debug, Serialize)]
pub struct Concern {
    pub count: usize,
    pub what: String,
    pub see: ListCommand,
}

/// The command that lists what a concern is about.
#[derive(Clone, Debug)]
pub struct ListCommand {
    pub words: Vec<&'static str>,
    pub flags: Vec<(&'static str, String)>,
}

impl fmt::Display for ListCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))?;
        self.flags.iter().try_for_each(|(name, value)| write!(f, " --{name}={value}"))
    }
}

impl Serialize for ListCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The state of a server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerFacts {
    pub ready: bool,
    pub why_not: Option<String>,
    pub remark: Option<String>,
    /// While it serves.
    #[serde(flatten)]
    pub load: Option<ServerLoad>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_day: Option<LastDay>,
}

/// The load of a server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerLoad {
    pub started_at: Timestamp,
    pub tasks_in_flight: usize,
    pub held_polls: usize,
    pub connections: usize,
    pub engine_lag_seconds: u64,
    pub audit_seal_age_seconds: u64,
    pub upstreams: Vec<UpstreamRow>,
}

/// The result of the doctor.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Diagnosis {
    pub healthy: bool,
    pub checks: Vec<CheckRow>,
    pub faults: Vec<FaultRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_examined: Vec<UnexaminedRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<FaultRow>,
    pub remedies: Vec<RemedyRow>,
    pub kept: Vec<RetentionRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CheckRow {
    pub check: &'static str,
    pub state: &'static str,
    pub what_must_hold: &'static str,
}

/// A fault, or a warning.
#[derive(Clone, Debug, Serialize)]
pub struct FaultRow {
    pub check: &'static str,
    pub found: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct UnexaminedRow {
    pub check: &'static str,
    pub why: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct RemedyRow {
    pub check: &'static str,
    pub remedy: &'static str,
}

/// The amount of data that grows, its oldest entry, and the time for which it is stored.
#[derive(Clone, Debug, Serialize)]
pub struct RetentionRow {
    pub what: &'static str,
    pub amount: String,
    pub oldest: Option<Timestamp>,
    pub kept: String,
}

/// A backup that was made.
#[derive(Clone, Debug, Serialize)]
pub struct BackupAnswer {
    pub(crate) backup: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) made_at: Timestamp,
    pub(crate) files: Vec<String>,
    pub(crate) left_out: Vec<String>,
    pub(crate) note: String,
    #[serde(flatten)]
    pub(crate) made: Option<ActMade>,
}

/// A link into the console.
#[derive(Clone, Debug, Serialize)]
pub struct ConsoleLink {
    pub link: String,
    pub role: Role,
    pub works_once_until: Timestamp,
    pub from_another_machine: Option<String>,
}

/// A session of the console.
#[derive(Clone, Debug, Serialize)]
pub struct ConsoleSession {
    pub session: String,
    pub by: String,
    pub role: Role,
    pub began_at: Timestamp,
    pub used_at: Timestamp,
    pub ends_at: Timestamp,
}

/// The sessions of the console that a command has ended.
#[derive(Clone, Debug, Serialize)]
pub struct SessionsEnded {
    pub ended: Vec<String>,
    #[serde(flatten)]
    pub made: ActMade,
}

/// A server that is ready.
#[derive(Clone, Debug, Serialize)]
pub struct Readiness {
    pub ready: bool,
    pub remark: Option<String>,
}
