//! The table of all metrics: the page of a monitor comes from it, and the alert rules name rows.
//!
//! A part of the program can only write a sample of a row, and its head comes from the row. A row
//! has samples while the program has what it is about: an upstream, a store of replicas, a backup.

use crate::names::Names;
use toolwarrant_postgres::COUNTED_MAX;
use toolwarrant_store::VIOLATIONS_MAX;

/// The table says these numbers.
const _: () = assert!(VIOLATIONS_MAX == 1_000 && COUNTED_MAX == 1_000);

/// A row of [`TABLE`].
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Without the prefix of the program.
    pub name: &'static str,
    pub(crate) kind: &'static str,
    pub labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

impl Metric {
    /// Returns the prefix of the name. A metric of the process has the same name in all programs.
    #[must_use]
    pub fn prefix<'a>(&self, names: &'a Names) -> &'a str {
        if self.name.starts_with("process_") { "" } else { &names.metrics }
    }
}

macro_rules! table {
    ($($name:ident: $kind:ident [$($label:ident),*] $help:literal;)*) => {
        $(
            #[expect(non_upper_case_globals, reason = "a metric is written as on the page")]
            pub(crate) static $name: Metric = Metric {
                name: stringify!($name),
                kind: stringify!($kind),
                labels: &[$(stringify!($label)),*],
                help: $help,
            };
        )*
        pub static TABLE: &[&Metric] = &[$(&$name),*];
    };
}

table! {
    build_info: gauge [version] "Version of the running program; always 1.";
    process_start_time_seconds: gauge [] "Start time of the process, since the Unix epoch.";
    process_resident_memory_bytes: gauge [] "Memory of the process that is not swapped out.";
    process_open_fds: gauge [] "Open files of the process.";
    process_max_fds: gauge [] "Limit of its open files.";
    process_cpu_seconds_total: counter [] "Processor time of the process.";
    log_lines_lost_total: counter []
        "Lines of the log or of standard output that were lost because they were not read in time.";
    disk_available_bytes: gauge [] "Room for this program on the disk of the data folder.";
    disk_size_bytes: gauge [] "Size of the disk of the data folder.";
    last_backup_timestamp_seconds: gauge []
        "Moment of the last backup, since the Unix epoch; no sample if none is known.";
    keys_ending_soon: gauge [] "Keys that can be used now and end within 7 days.";
    connections: gauge [] "Open connections of clients.";
    connections_refused_total: counter []
        "Connections that were closed without an answer because there were too many.";
    requests_refused_total: counter [reason] "Requests that were refused before they reached a tool.";
    tool_calls_total: counter [tool, outcome] "Tool calls, by outcome: ok, cancelled, or an error code.";
    tool_call_duration_seconds: histogram [tool]
        "Duration of tool calls; the tool that reads a task waits on request.";
    audit_backlog: gauge []
        "Places in the audit queue that are taken by running calls and by lines that are not yet in a file.";
    audit_seal_age_seconds: gauge []
        "Time since this process put a seal of the audit trail on the disk, or since its start.";
    tasks_accepted_total: counter [] "Accepted tasks.";
    tasks_ended_total: counter [status] "Tasks that ended.";
    tasks_in_flight: gauge [] "Tasks that have not ended.";
    task_sends_total: counter [outcome] "Writes that were sent to the platform, by outcome.";
    ledger_entries_total: counter [kind] "Entries in the ledger.";
    repeated_refunds_total: counter [] "Refunds on a target that had another one within a day.";
    engine_lag_seconds: gauge [] "Time by which the task that is due first is late.";
    held_polls: gauge [] "Calls that wait for the end of a task.";
    upstream_reachable: gauge [upstream] "1 if the upstream answered the last call, otherwise 0.";
    upstream_age_seconds: gauge [upstream]
        "Age of the known state of its targets; no sample if they were never read.";
    upstream_targets: gauge [upstream] "Number of its known targets.";
    upstream_waiting: gauge [upstream] "Calls to it that wait for their turn.";
    upstream_unserved_calls: gauge [upstream] "Kinds of calls that it was seen not to serve.";
    upstream_refused_total: counter [upstream] "Calls to it that its breaker has refused.";
    upstream_calls_total: counter [upstream, outcome] "Calls to it, by outcome.";
    replica_epoch: gauge [] "The run of this process; a later run has a greater one.";
    replica_lease: gauge [] "1 while this process may answer, 0 after the end of its lease.";
    replica_waits: gauge [] "1 while this process waits and could lead, 0 while it leads or something keeps it from leading.";
    store_safe_copies: gauge [] "Servers that have a write when it is acknowledged.";
    store_default_partition_rows: gauge [] "Rows in default partitions, of each at most 1,000 counted.";
    store_dead_rows: gauge [table] "Dead rows in the tables that change often.";
    store_horizon_seconds: gauge [] "Age of the oldest transaction that keeps dead rows.";
    store_commits_total: counter [] "Committed transactions.";
    store_writes_total: counter [] "Requests in these transactions.";
    store_commit_failures_total: counter [] "Failed transactions.";
    store_queue: gauge [] "Requests that wait for the next transaction.";
    refund_invariant_violations: gauge []
        "Tasks whose refund is missing or not due, at most 1,000; see the command `doctor`.";
}
