//! The checks on a PostgreSQL that replicas share, with their texts.

use super::{Description, Diagnosis};
use toolwarrant_postgres::{Postgres, ServerCheck};
use toolwarrant_store::IntegrityRule;

/// The checks of faults.
const FAULTS: [(ServerCheck, Description); 4] = [
    (
        ServerCheck::Runs,
        Description(
            "runs",
            "the store knows the run that drives each task",
            "set `owner` in the table task to the epoch of a run that `cluster list` shows, and restart that replica; report a bug",
        ),
    ),
    (
        ServerCheck::Partitions,
        Description(
            "partitions",
            "each day has its partitions, and the default ones are empty",
            "read in the log of a replica why it makes none. Rows in a default partition keep their day from having one: in one \
             transaction, move them to another table, make the partition with `SELECT make_day(TABLE, DAY)`, and move them back",
        ),
    ),
    (
        ServerCheck::Rights,
        Description(
            "rights",
            "the account of the replica has all rights that it needs",
            "run `store grant ACCOUNT` with the URL of the owner of the tables",
        ),
    ),
    (
        ServerCheck::Clocks,
        Description(
            "server clock",
            "the clocks of the server and of this machine differ by less than half a second",
            "run a time service on both machines, and look at which of them is wrong",
        ),
    ),
];

/// The checks that warn. A cluster works without them, more slowly or with less safety.
const WARNINGS: [(ServerCheck, Description); 2] = [
    (
        ServerCheck::Standby,
        Description(
            "standby",
            "a second server has each write before it is acknowledged",
            "set up a standby, name it in synchronous_standby_names, and set synchronous_commit and fsync to on",
        ),
    ),
    (
        ServerCheck::Horizon,
        Description(
            "dead rows",
            "nothing keeps dead rows for more than 10 minutes",
            "end it: `SELECT pg_terminate_backend(PROCESS)`, `ROLLBACK PREPARED`, or `SELECT pg_drop_replication_slot(SLOT)`",
        ),
    ),
];

/// Adds the findings of all checks.
pub(super) async fn examine(store: &Postgres, diagnosis: &mut Diagnosis) {
    for (check, description) in &FAULTS {
        diagnosis.add(description, store.examine(*check).await.map_err(|error| error.to_string()));
    }
    for (check, description) in &WARNINGS {
        diagnosis.warn(description, store.examine(*check).await.map_err(|error| error.to_string()));
    }
}

/// Returns the remedy for a broken rule, if it is not that of a data folder.
pub(super) fn remedy(rule: IntegrityRule) -> Option<&'static str> {
    match rule {
        IntegrityRule::Integrity | IntegrityRule::Records => {
            Some("stop all replicas, keep a copy with `pg_dump`, and restore PostgreSQL from a backup")
        }
        IntegrityRule::Layout => Some("restore PostgreSQL from a backup; only this program may change its tables"),
        IntegrityRule::Deadlines(_) => {
            Some("start a replica, which ends these tasks; if one runs, read in its log why it does not")
        }
        IntegrityRule::TargetLocks => Some(
            "set `task` to NULL in the table target where no task is in flight; otherwise let the tasks end, and read the state of \
             the target. Report a bug",
        ),
        IntegrityRule::Refunds | IntegrityRule::Charges | IntegrityRule::Secrets => None,
    }
}
