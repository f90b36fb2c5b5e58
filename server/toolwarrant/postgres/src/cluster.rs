//! Replicas: joining, beats, eviction and leaving.

use crate::column::{get, moment, rows};
use crate::connection::unavailable;
use std::cmp::Ordering;
use std::time::Duration;
use tokio_postgres::{Client, Error, Row, Transaction};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::keyring::Digest;
use toolwarrant_core::cluster::{Beat, BeatNumber, Beats, Epoch, ReplicaRow, ReplicaState, StoreTrust};
use toolwarrant_core::store::StoreError;

/// The replica to join as.
#[derive(Clone, Debug)]
pub struct NewReplica {
    /// Its name, which the next run has too.
    pub name: String,
    /// The name of the audit trail in its folder. A command has that of the replica whose folder it
    /// uses.
    pub trail: String,
    /// True if it leads: it holds the claim. A command does not lead.
    pub leads: bool,
    /// The name of its machine.
    pub machine: String,
    /// The program, with its version.
    pub program: String,
    /// The length of its lease.
    pub lease: Duration,
    /// The fingerprint of its master key.
    pub key: Digest,
}

/// The number of connections of a replica that write.
pub(crate) const LANES: usize = 3;

/// The timeline of the server. A copy that becomes the server has a later one.
pub(crate) const TIMELINE: &str = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// The time of the server in milliseconds.
pub(crate) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Returns the condition on which writes of a run land, given the parameter with its epoch.
pub(crate) fn lands(epoch: &str) -> String {
    format!("EXISTS (SELECT FROM cluster WHERE timeline = {TIMELINE} AND (lost IS NULL OR mender = {epoch}))")
}

/// The layout of the tables that this program reads and writes.
pub(crate) const LAYOUT: i32 = 2;

/// Refuses a layout that this program does not know.
pub(crate) fn check_layout(layout: i32) -> Result<(), StoreError> {
    let (age, remedy) = match layout.cmp(&LAYOUT) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => ("newer", "start a later version of this program"),
        Ordering::Less => ("older", "no release has made one; `store init` makes a new store in another schema"),
    };
    Err(StoreError::Corrupt(format!(
        "the tables have layout {layout}, which is {age} than {LAYOUT}, the one that this program knows; {remedy}"
    )))
}

/// Evicts the runs of a name, and those that lead if `leaders` is true. Returns for each of them
/// the seconds since its latest beat, and true if it has this name and may live.
pub(crate) async fn end_runs(transaction: &Transaction<'_>, name: &str, leaders: bool) -> Result<Vec<Row>, Error> {
    // They cannot look for their writes any more, and may have been told of a lost one.
    let lose = format!(
        "UPDATE cluster SET lost = $1::text || ' ended before it could look for its writes'
             WHERE lost IS NULL AND NOT synchronous AND timeline <> {TIMELINE} AND EXISTS (
                 SELECT FROM replica WHERE (name = $1 OR leads AND $2) AND state IN ('serving', 'draining')
                     AND whole_in <> {TIMELINE})"
    );
    transaction.execute(&lose, &[&name, &leaders]).await?;
    let evict = format!(
        "UPDATE replica SET state = 'evicted', evicted_at = now()
             WHERE (name = $1 OR leads AND $2) AND state IN ('serving', 'draining')
             RETURNING ({NOW} - beaten) / 1000, name = $1 AND {NOW} - beaten < replica.lease"
    );
    let evicted = transaction.query(&evict, &[&name, &leaders]).await?;
    let forget = "DELETE FROM writer USING replica WHERE writer.epoch = replica.epoch AND replica.state = 'evicted'";
    transaction.execute(forget, &[]).await?;
    Ok(evicted)
}

/// Joins under a name, and evicts the earlier runs of that name. A run that leads evicts all that
/// have led. Returns the epoch, and the timeline and the time of the server.
pub(crate) async fn join(client: &mut Client, new: &NewReplica) -> Result<(Epoch, String, Timestamp), StoreError> {
    let NewReplica { name, leads, machine, trail, program, lease, key: _ } = new;
    let lease = i32::try_from(lease.as_millis()).unwrap_or(i32::MAX);
    let joined = async {
        let transaction = client.transaction().await?;
        let evicted = end_runs(&transaction, name, *leads).await?;
        let join = format!(
            "INSERT INTO replica (epoch, name, trail, program, level, lease, leads, machine, whole_in)
             SELECT greatest(1 + max(epoch), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), $1, $5, $2, $3, $4, $6, $7,
                    {TIMELINE}
             FROM replica RETURNING epoch, whole_in"
        );
        let joined = transaction.query_one(&join, &[&name, &program, &LAYOUT, &lease, &trail, leads, &machine]).await?;
        let (epoch, timeline) = (joined.get::<_, i64>(0), joined.get(1));
        let write = "INSERT INTO writer (epoch, number) SELECT $1, number - 1 FROM generate_series(1, $2) AS number";
        transaction.execute(write, &[&epoch, &i32::try_from(LANES).unwrap_or(0)]).await?;
        // A change of the layout holds this row, and looks at the runs. In a copy that is not
        // trusted, this run must not hide one that is missing.
        let count = format!("UPDATE cluster SET runs = runs + (timeline = {TIMELINE})::integer RETURNING layout");
        let layout = transaction.query_one(&count, &[]).await?.get(0);
        match layout == LAYOUT {
            true => transaction.commit().await?,
            false => transaction.rollback().await?,
        }
        for run in evicted.iter().filter(|run| layout == LAYOUT && run.get(1)) {
            tracing::warn!(
                name,
                seconds = run.get::<_, i64>(0),
                "evicted the former run of this replica, which beat so many seconds ago; if it runs on another machine, give one of \
                 them another --replica"
            );
        }
        // The commit may have waited for a standby. A time from before it would be late by that.
        let time = client.query_one(&format!("SELECT {NOW} + ahead FROM cluster"), &[]).await?;
        Ok((layout, (Epoch(epoch.cast_unsigned()), timeline, moment(time.get(0)))))
    };
    let (layout, joined) = joined.await.map_err(unavailable)?;
    check_layout(layout).map(|()| joined)
}

/// The answer to a beat, as the server gives it.
pub(crate) struct Heard {
    pub(crate) beats: Beats,
    /// The timeline of the server.
    pub(crate) timeline: String,
    /// True if the server has each batch that was acknowledged to this run, and each change that
    /// is in force there.
    pub(crate) is_whole: bool,
    /// True if each commit waits for another server.
    pub(crate) is_synchronous: bool,
    /// The time at which an operator has begun again, if one has.
    pub(crate) restored_at: Option<i64>,
}

/// Stores a beat, and reads all replicas. The rows are from the moment at which the statement
/// began, and it may then have waited for an eviction. So the own row is the one that was updated,
/// and without an update this replica has ended. `acknowledged` has the batches of each lane.
pub(crate) async fn beat(
    client: &Client,
    epoch: Epoch,
    Beat { seen, state, off, runs }: Beat,
    acknowledged: &[i64],
) -> Result<Heard, StoreError> {
    let is_whole = is_whole("$1", "$4");
    let sql = format!(
        "WITH checked AS MATERIALIZED (
             SELECT {TIMELINE} AS timeline, directory >= $2 AND runs >= $6 AND {is_whole} AS is_whole FROM cluster),
         beaten AS (
             UPDATE replica SET beat = beat + 1, seen = $2, state = $3, off = $5, beaten = {NOW},
                    whole_in = CASE WHEN is_whole THEN checked.timeline ELSE whole_in END
                 FROM checked WHERE epoch = $1 AND state IN ('serving', 'draining')
                 RETURNING epoch, beat, seen, state, off, whole_in),
         promised AS (
             UPDATE cluster SET synchronous = {SYNCHRONOUS} FROM checked
                 WHERE cluster.timeline = checked.timeline AND synchronous <> {SYNCHRONOUS})
         SELECT {NOW} + cluster.ahead AS now, cluster.ahead, cluster.directory, cluster.runs, coalesce(beaten.off, replica.off) AS off,
                cluster.timeline = checked.timeline AS is_settled, cluster.lost, checked.timeline, checked.is_whole,
                cluster.restored_at, {SYNCHRONOUS} AS is_synchronous,
                replica.epoch, replica.name, replica.lease, replica.is_asked_to_leave,
                coalesce(beaten.beat, replica.beat) AS beat, coalesce(beaten.seen, replica.seen) AS seen,
                coalesce(beaten.whole_in, replica.whole_in) = checked.timeline AS replica_is_whole,
                CASE WHEN beaten.epoch IS NULL AND replica.epoch = $1 AND replica.state <> 'left' THEN 'evicted'
                     ELSE coalesce(beaten.state, replica.state) END AS state
         FROM cluster CROSS JOIN checked LEFT JOIN replica ON true LEFT JOIN beaten ON beaten.epoch = replica.epoch
         ORDER BY replica.epoch"
    );
    let (epoch, seen, runs) = (epoch.0.cast_signed(), seen.cast_signed(), runs.cast_signed());
    let found = rows(client.query(&sql, &[&epoch, &seen, &name(state), &acknowledged, &off, &runs]).await)?;
    let first = found.first().ok_or_else(|| StoreError::Corrupt("the row of the cluster is missing".to_owned()))?;
    let replicas = found.iter().filter(|row| get::<Option<i64>>(row, "epoch").is_ok_and(|epoch| epoch.is_some()));
    let beats = Beats {
        now: moment(get(first, "now")?),
        ahead: get(first, "ahead")?,
        directory: get::<i64>(first, "directory")?.cast_unsigned(),
        runs: get::<i64>(first, "runs")?.cast_unsigned(),
        replicas: replicas.map(replica).collect::<Result<_, _>>()?,
        trust: match (get::<Option<String>>(first, "lost")?, get(first, "is_settled")?) {
            (Some(why), _) => StoreTrust::Lost(why),
            (None, true) => StoreTrust::Settled,
            (None, false) => StoreTrust::Unsettled,
        },
    };
    Ok(Heard {
        beats,
        timeline: get(first, "timeline")?,
        is_whole: get(first, "is_whole")?,
        is_synchronous: get(first, "is_synchronous")?,
        restored_at: get(first, "restored_at")?,
    })
}

/// Returns the condition that the lanes of a run have at least these batches, given the parameters
/// with both. `OFFSET 0` keeps the look for each lane apart: a join would read all former versions
/// of the rows, of which an old transaction keeps thousands.
pub(crate) fn is_whole(epoch: &str, acknowledged: &str) -> String {
    format!(
        "NOT EXISTS (SELECT FROM unnest({acknowledged}::bigint[]) WITH ORDINALITY AS told (batches, place)
             WHERE NOT EXISTS (SELECT FROM writer WHERE writer.epoch = {epoch} AND writer.number = told.place - 1
                                   AND writer.batches >= told.batches OFFSET 0))"
    )
}

/// True if each commit waits for another server.
const SYNCHRONOUS: &str = "(current_setting('synchronous_standby_names') <> ''
    AND current_setting('synchronous_commit') IN ('on', 'remote_apply'))";

/// Stops all replicas, because one of them misses acknowledged writes.
pub(crate) async fn declare_lost(client: &Client, why: &str) -> Result<(), StoreError> {
    let sql = "UPDATE cluster SET lost = $1 WHERE lost IS NULL";
    client.execute(sql, &[&why]).await.map(drop).map_err(unavailable)
}

/// Changes the correction of the clock.
pub(crate) async fn correct_time(client: &Client, known: i64, ahead: i64) -> Result<(), StoreError> {
    let sql = "UPDATE cluster SET ahead = $2 WHERE ahead = $1";
    client.execute(sql, &[&known, &ahead]).await.map(drop).map_err(unavailable)
}

/// Settles the trust in a later timeline. A silent replica may have been told of a write that an
/// asynchronous standby lacks.
pub(crate) async fn settle(client: &Client, silent: &[i64]) -> Result<(), StoreError> {
    let sql = format!(
        "UPDATE cluster SET timeline = {TIMELINE}, runs = runs + 1 WHERE lost IS NULL AND timeline <> {TIMELINE} AND NOT EXISTS (
             SELECT FROM replica WHERE state IN ('serving', 'draining') AND whole_in <> {TIMELINE}
                 AND NOT (cluster.synchronous AND epoch = ANY($1)))"
    );
    client.execute(&sql, &[&silent]).await.map(drop).map_err(unavailable)
}

fn replica(row: &Row) -> Result<ReplicaRow, StoreError> {
    let number = |column| Ok::<_, StoreError>(get::<i64>(row, column)?.cast_unsigned());
    Ok(ReplicaRow {
        epoch: Epoch(number("epoch")?),
        name: get(row, "name")?,
        lease: Duration::from_millis(u64::try_from(get::<i32>(row, "lease")?).unwrap_or(u64::MAX)),
        beat: BeatNumber {
            timeline: u64::from_str_radix(get(row, "timeline")?, 16).unwrap_or(u64::MAX),
            number: number("beat")?,
        },
        seen: number("seen")?,
        is_asked_to_leave: get(row, "is_asked_to_leave")?,
        state: match get(row, "state")? {
            "serving" => ReplicaState::Serving,
            "draining" => ReplicaState::Draining,
            "left" => ReplicaState::Left,
            _ => ReplicaState::Evicted,
        },
        off: get(row, "off")?,
        is_whole: get(row, "replica_is_whole")?,
    })
}

fn name(state: ReplicaState) -> &'static str {
    match state {
        ReplicaState::Serving => "serving",
        ReplicaState::Draining => "draining",
        ReplicaState::Left => "left",
        ReplicaState::Evicted => "evicted",
    }
}

/// Returns the statement that evicts a replica if its last beat is still this one, in the same
/// timeline: takes its rows in `writer` away, which waits for a batch that is being written.
pub(crate) fn eviction() -> String {
    format!(
        ",
        out AS (
            UPDATE replica SET state = 'evicted', evicted_at = now() FROM turn
                WHERE replica.epoch = $4 AND beat = $5 AND {TIMELINE} = $6 AND state IN ('serving', 'draining')
                RETURNING replica.epoch),
        closed AS (DELETE FROM writer USING out WHERE writer.epoch = out.epoch)
        SELECT turn.one, out.epoch AS answer FROM turn LEFT JOIN out ON true"
    )
}

/// Ends the own run. The row that counts this statement stays until the run is forgotten, because a
/// statement cannot delete a row that it updates.
pub(crate) const LEAVE: &str = ",
    out AS (UPDATE replica SET state = 'left' FROM turn WHERE replica.epoch = $2 RETURNING replica.epoch),
    closed AS (DELETE FROM writer USING out WHERE writer.epoch = out.epoch AND writer.number <> $3)
    SELECT turn.one, out.epoch AS answer FROM turn LEFT JOIN out ON true";

/// Forgets those of these replicas that have left, or were evicted long ago, and own no task.
pub(crate) const FORGET: &str = ",
    out AS (
        DELETE FROM replica USING turn
            WHERE replica.epoch = ANY($4::bigint[])
              AND (state = 'left' OR state = 'evicted' AND evicted_at < now() - interval '1 day')
              AND NOT EXISTS (SELECT FROM task WHERE owner = replica.epoch)
        RETURNING replica.epoch),
    closed AS (DELETE FROM writer USING out WHERE writer.epoch = out.epoch)
    SELECT turn.one, out.epoch AS answer FROM turn LEFT JOIN out ON true";
