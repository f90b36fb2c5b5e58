//! The checks on PostgreSQL, with their texts.

use toolwarrant_postgres::ServerCheck;
use toolwarrant_store::IntegrityRule;

type DescribedCheck = (ServerCheck, &'static str, &'static str, &'static str);

pub(super) const FAULTS: [DescribedCheck; 4] = [
    (
        ServerCheck::Partitions,
        "partitions",
        "each day has its partitions, and the default ones are empty",
        "read in the log of the leader why it makes none. Rows in a default partition keep their day from having one: in one \
         transaction, move them to another table, make the partition with `SELECT make_day(TABLE, DAY)`, and move them back",
    ),
    (
        ServerCheck::Waits,
        "waits",
        "no write was refused, and none has waited for a lock or a standby for more than a second",
        "do what the finding says; until then, nothing is accepted",
    ),
    (
        ServerCheck::Rights,
        "rights",
        "the account of the server has all rights that it needs",
        "run `store grant ACCOUNT` with the URL of the owner of the tables",
    ),
    (
        ServerCheck::Clocks,
        "server clock",
        "the clocks of PostgreSQL and of this machine differ by at most a second",
        "run a time service on both machines, and look at which of them is wrong",
    ),
];

pub(super) const WARNINGS: [DescribedCheck; 2] = [
    (
        ServerCheck::Standby,
        "standby",
        "a second server has each write before it is acknowledged",
        "set up a standby, name it in synchronous_standby_names, and set synchronous_commit and fsync to on",
    ),
    (
        ServerCheck::Horizon,
        "dead rows",
        "nothing keeps dead rows for more than 10 minutes",
        "if it says that the account sees too little, grant that; otherwise end it: `SELECT pg_terminate_backend(PROCESS)`, `ROLLBACK PREPARED`, or `SELECT pg_drop_replication_slot(SLOT)`",
    ),
];

pub(super) fn remedy(rule: IntegrityRule) -> Option<&'static str> {
    match rule {
        IntegrityRule::Integrity | IntegrityRule::Records => {
            Some("stop all servers, keep a copy with `pg_dump`, and restore PostgreSQL from a backup")
        }
        IntegrityRule::Layout => Some("restore PostgreSQL from a backup; only this program may change its tables"),
        IntegrityRule::TargetLocks => Some(
            "set `task` to NULL in the table target where no task is in flight; otherwise let the tasks end, and read the state of \
             the target. Report a bug",
        ),
        // PostgreSQL has no column for the arguments of a task that has ended.
        IntegrityRule::Foreign
        | IntegrityRule::Refunds
        | IntegrityRule::Charges
        | IntegrityRule::Secrets
        | IntegrityRule::Deadlines(_) => None,
    }
}
