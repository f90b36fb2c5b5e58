//! The obstacles that keep the store from its work, each with its remedy.

use crate::column::{get, rows};
use tokio_postgres::Client;
use toolwarrant_core::store::StoreError;

/// The statement of this account that has waited longest.
const WAITS: &str = "
    SELECT wait_event = 'SyncRep' AS for_standby, extract(epoch FROM clock_timestamp() - query_start)::bigint AS seconds,
           (SELECT string_agg(format('process %s (%s, user %s)', pid, application_name, usename), ', ')
            FROM pg_catalog.pg_stat_activity AS holder WHERE holder.pid = ANY (pg_blocking_pids(waiting.pid))) AS holders, current_setting('synchronous_standby_names') AS names
        FROM pg_catalog.pg_stat_activity AS waiting
        WHERE application_name = current_setting('application_name') AND usename = current_user AND datname = current_database() AND state = 'active'
          AND pid <> pg_backend_pid() AND clock_timestamp() - query_start > interval '1 s'
          AND (wait_event = 'SyncRep' OR wait_event_type = 'Lock' AND wait_event <> 'advisory')
        ORDER BY query_start LIMIT 1";

/// The sessions that keep others from reading or writing a table, also while they wait themselves.
const LOCKS: &str = "
    SELECT coalesce('process ' || pid || ' (' || application_name || ', user ' || usename || ')', 'a prepared transaction')
           || ' locks ' || string_agg(DISTINCT regexp_replace(relname, '_([0-9]+|default)$', ''), ', ') AS what
        FROM pg_catalog.pg_locks JOIN pg_catalog.pg_class ON pg_class.oid = relation
             LEFT JOIN pg_catalog.pg_stat_activity USING (pid)
        WHERE database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
          AND relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND pid IS DISTINCT FROM pg_backend_pid()
          AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        GROUP BY pid, application_name, usename ORDER BY pid";

pub(crate) async fn find_locks(client: &Client) -> Result<Vec<String>, StoreError> {
    rows(client.query(LOCKS, &[]).await)?.iter().map(|row| get(row, "what")).collect()
}

pub(crate) fn describe_loss(lost: &str) -> String {
    format!(
        "the store has lost acknowledged writes: {lost}; put the copy that has them in its place, or go on without them with \
         `cluster accept-loss`"
    )
}

pub(crate) fn describe_missing_standby(seconds: u64, names: &str) -> String {
    format!(
        "a commit has waited for {seconds} s for the synchronous standby (synchronous_standby_names = '{names}'): start the \
         standby, or take it out of that setting and reload, after which a failover can lose what is acknowledged"
    )
}

pub(crate) async fn find_missing_standby(client: &Client) -> Result<Option<String>, StoreError> {
    let sql = "SELECT extract(epoch FROM clock_timestamp() - query_start)::bigint AS seconds, current_setting('synchronous_standby_names') AS names
               FROM pg_catalog.pg_stat_activity
               WHERE application_name = current_setting('application_name') AND usename = current_user
                 AND wait_event = 'SyncRep' AND clock_timestamp() - query_start > interval '1 s'
               ORDER BY query_start LIMIT 1";
    let found = rows(client.query(sql, &[]).await)?;
    let describe = |row| Ok(describe_missing_standby(get::<i64>(row, "seconds")?.cast_unsigned(), get(row, "names")?));
    found.first().map(describe).transpose()
}

pub(crate) async fn find_obstacle(client: &Client) -> Result<Option<String>, StoreError> {
    let found = rows(client.query(WAITS, &[]).await)?;
    let Some(row) = found.first() else {
        // There may be no tables yet.
        let cluster = client.query_one("SELECT lost FROM cluster", &[]).await.ok();
        return Ok(cluster.as_ref().and_then(|row| row.get(0)).map(describe_loss));
    };
    let (seconds, names): (i64, &str) = (get(row, "seconds")?, get(row, "names")?);
    let holders = get::<Option<&str>>(row, "holders")?.unwrap_or("a prepared transaction");
    Ok(Some(match get(row, "for_standby")? {
        true => describe_missing_standby(seconds.cast_unsigned(), names),
        false => format!(
            "a statement has waited for {seconds} s for a lock of {holders}: let that end, or end it with \
             `SELECT pg_terminate_backend(PROCESS)`"
        ),
    }))
}
