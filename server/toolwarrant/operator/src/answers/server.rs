//! The answers about a server, its data folder and its console.

use super::act::ActMade;
use crate::history::LastDay;
use crate::upstreams::UpstreamRow;
use crate::view::answer_types;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::Role;

answer_types! {
    /// The overview of a server.
    pub struct OverviewAnswer {
        ..(server: ServerFacts),
        targets: Vec<TargetCounts>,
        needs_a_look: Vec<Concern>,
    }

    /// The targets of a resource, by state.
    pub struct TargetCounts {
        resource: &'static str => resource,
        count: u64,
        states: BTreeMap<&'static str, u64>,
    }

    /// A thing that is not as it should be.
    pub struct Concern {
        count: usize,
        what: String,
        see: ListCommand,
    }
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

answer_types! {
    /// The state of a server.
    pub struct ServerFacts {
        ready: bool => verdict,
        why_not: Option<String>,
        remark: Option<String>,
        /// While it serves.
        ..(load: Option<ServerLoad>),
        #[serde(skip_serializing_if = "Option::is_none")]
        last_day: Option<LastDay>,
    }

    /// The load of a server.
    pub struct ServerLoad {
        started_at: Timestamp,
        tasks_in_flight: usize,
        held_polls: usize,
        connections: usize,
        engine_lag_seconds: u64,
        audit_seal_age_seconds: u64,
        upstreams: Vec<UpstreamRow>,
    }

    /// The result of the doctor.
    #[derive(Default)]
    pub struct Diagnosis {
        healthy: bool => verdict,
        checks: Vec<CheckRow>,
        faults: Vec<FaultRow>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        not_examined: Vec<UnexaminedRow> => any,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<FaultRow> => any,
        remedies: Vec<RemedyRow>,
        kept: Vec<RetentionRow>,
    }

    pub struct CheckRow {
        check: &'static str,
        state: &'static str => check,
        what_must_hold: &'static str,
    }

    /// A fault, or a warning.
    pub struct FaultRow {
        check: &'static str,
        found: String,
    }

    pub struct UnexaminedRow {
        check: &'static str,
        why: String,
    }

    pub struct RemedyRow {
        check: &'static str,
        remedy: &'static str,
    }

    /// The amount of data that grows, its oldest entry, and the time for which it is stored.
    pub struct RetentionRow {
        what: &'static str,
        amount: String,
        oldest: Option<Timestamp>,
        kept: String,
    }

    /// A backup that was made.
    pub change BackupAnswer {
        backup: PathBuf,
        bytes: u64,
        made_at: Timestamp,
        files: Vec<String>,
        left_out: Vec<String>,
        note: String,
        ..(made: Option<ActMade>),
    }

    /// A link into the console.
    pub struct ConsoleLink {
        link: String,
        role: Role,
        works_once_until: Timestamp,
        from_another_machine: Option<String>,
        ..(made: Option<ActMade>),
    }

    /// A session of the console.
    pub struct ConsoleSession {
        session: String,
        by: String,
        role: Role,
        began_at: Timestamp,
        used_at: Timestamp,
        ends_at: Timestamp,
    }

    /// The sessions of the console that a command has ended.
    pub change SessionsEnded {
        ended: Vec<String>,
        ..(made: ActMade),
    }

    /// A server that is ready.
    pub struct Readiness {
        ready: bool => verdict,
        remark: Option<String>,
    }
}
