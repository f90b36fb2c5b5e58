//! The runs of processes that lead: how one begins and ends.
//!
//! A run begins with a trusted store. After a failover, the server may lack writes that it had
//! acknowledged. It has them all if each commit had waited for the standby, or if the last run has
//! left: that is its last write. Otherwise the store counts as lost until an operator decides.
//! Start at [`begin`].

use crate::column::{get, moment, rows};
use crate::connection::unavailable;
use std::cmp::Ordering;
use std::time::Duration;
use tokio_postgres::{Client, Error, GenericClient, Transaction};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::keyring::Digest;
use toolwarrant_core::store::StoreError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    pub name: String,
    pub machine: String,
}

#[derive(Clone, Debug)]
pub struct NewRun {
    /// The next run has it, too.
    pub name: String,
    /// Of the same data folder. Its process is dead, because this one has the lock of the folder.
    pub former: Option<u64>,
    pub machine: String,
    /// With its version.
    pub program: String,
    pub lease: Duration,
    /// Of the master key.
    pub key: Digest,
    /// The latest that a process of the same data folder has seen. A store without it has lost
    /// something.
    pub seen: Option<SeenBeat>,
    /// Goes on with a store that has lost writes. No other run begins before it has put the store
    /// in order.
    pub mends: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenBeat {
    pub epoch: u64,
    pub number: u64,
}

const KEPT_DAYS: i64 = 30;

/// Connections that write.
pub(crate) const LANES: usize = 3;

/// A copy that becomes the server has a later one.
pub(crate) const TIMELINE: &str = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// In milliseconds.
pub(crate) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The condition on which writes land: no copy has replaced the server since the run began.
pub(crate) const LANDS: &str =
    "EXISTS (SELECT FROM cluster WHERE timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8))";

/// True if each commit waits for another server.
const SYNCHRONOUS: &str = "(current_setting('synchronous_standby_names') <> ''
    AND current_setting('synchronous_commit') IN ('on', 'remote_apply'))";

pub const LAYOUT: i32 = 4;

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

/// Keeps everything that the run still writes from landing.
pub(crate) async fn note_death(client: &mut Client, epoch: u64) -> Result<(), Error> {
    let (epoch, transaction) = (epoch.cast_signed(), client.transaction().await?);
    let sql = "UPDATE replica SET state = 'dead' WHERE state = 'serving' AND epoch = $1";
    // No other run begins while this row is locked.
    if transaction.execute(sql, &[&epoch]).await? > 0 {
        transaction.execute(END_WRITERS, &[]).await?;
        transaction.execute("DELETE FROM writer WHERE epoch = $1", &[&epoch]).await?;
    }
    transaction.commit().await
}

/// Ends the sessions that write a batch. One that goes on never would hold the next claim up.
const END_WRITERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND relation = 'writer'::regclass
      AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid()";

pub(crate) struct Begun {
    pub(crate) epoch: u64,
    /// Of the server.
    pub(crate) time: Timestamp,
}

/// Ends all other runs. The inner error says what the store has lost.
pub(crate) async fn begin(client: &mut Client, new: &NewRun) -> Result<Result<Begun, String>, StoreError> {
    let NewRun { name, machine, program, lease, mends, .. } = new;
    let lease = i32::try_from(lease.as_millis()).unwrap_or(i32::MAX);
    let begun = async {
        let transaction = client.transaction().await?;
        if let (Some(lost), false) = (find_loss(&transaction, new).await?, mends) {
            transaction.commit().await?;
            return Ok(Err(lost));
        }
        let end = "UPDATE replica SET state = 'evicted' WHERE state IN ('serving', 'dead')";
        transaction.execute(end, &[]).await?;
        transaction.execute(END_WRITERS, &[]).await?;
        transaction.execute("DELETE FROM writer", &[]).await?;
        let old = format!("DELETE FROM replica WHERE {NOW} - beaten > {KEPT_DAYS} * 86400000::bigint");
        transaction.execute(&old, &[]).await?;
        let begin = format!(
            "INSERT INTO replica (epoch, name, program, lease, machine)
             SELECT greatest(1 + max(epoch), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), $1, $2, $3, $4
             FROM replica RETURNING epoch, {NOW} AS time"
        );
        let begun = transaction.query_one(&begin, &[&name, &program, &lease, &machine]).await?;
        let (epoch, time): (i64, i64) = (begun.get(0), begun.get(1));
        let write = "INSERT INTO writer (epoch, number) SELECT $1, number - 1 FROM generate_series(1, $2) AS number";
        transaction.execute(write, &[&epoch, &i32::try_from(LANES).unwrap_or(0)]).await?;
        transaction.commit().await?;
        Ok(Ok(Begun { epoch: epoch.cast_unsigned(), time: moment(time) }))
    };
    begun.await.map_err(unavailable)
}

/// Returns what the store has lost, and notes it. Trusts a copy that has everything.
async fn find_loss(client: &Transaction<'_>, new: &NewRun) -> Result<Option<String>, Error> {
    let sql = format!(
        "SELECT lost, timeline = {TIMELINE} AS is_same, synchronous,
                (SELECT name FROM replica WHERE state IN ('serving', 'dead')) AS leader FROM cluster FOR UPDATE"
    );
    let row = client.query_one(&sql, &[]).await?;
    let (lost, is_same, synchronous): (Option<String>, bool, bool) = (row.get(0), row.get(1), row.get(2));
    let found = match (lost, row.get::<_, Option<String>>(3)) {
        (Some(lost), _) => return Ok(Some(lost)),
        (None, Some(leader)) if !is_same && !synchronous => {
            Some(format!("a copy has replaced the server, and may lack what was acknowledged to `{leader}`"))
        }
        (None, _) if lacks(client, new.seen).await? => Some(describe_lack(&new.name)),
        (None, _) => None,
    };
    match &found {
        Some(_) => client.execute("UPDATE cluster SET lost = $1", &[&found]).await?,
        None if is_same => 0,
        None => client.execute(&format!("UPDATE cluster SET timeline = {TIMELINE}"), &[]).await?,
    };
    Ok(found)
}

pub(crate) fn describe_lack(name: &str) -> String {
    format!("it lacks what `{name}` has seen, as an older copy does")
}

/// Returns true if the store lacks a beat whose loss no operator has accepted by a restore.
pub(crate) async fn lacks(client: &impl GenericClient, seen: Option<SeenBeat>) -> Result<bool, Error> {
    let Some(SeenBeat { epoch, number }) = seen else { return Ok(false) };
    let sql = format!(
        "SELECT NOT EXISTS (SELECT FROM replica WHERE epoch = $1 AND beat >= $2) AND $1 / 1000 > coalesce(restored_at, 0)
                AND {NOW} - $1 / 1000 < {KEPT_DAYS} * 86400000::bigint
         FROM cluster"
    );
    Ok(client.query_one(&sql, &[&epoch.cast_signed(), &number.cast_signed()]).await?.get(0))
}

/// Returns the time of the server and the number of the beat; `None` if the run has ended.
pub(crate) async fn beat(client: &Client, epoch: u64) -> Result<Option<(Timestamp, u64)>, Error> {
    let sql = format!(
        "WITH beaten AS (
             UPDATE replica SET beat = beat + 1, beaten = {NOW} WHERE epoch = $1 AND state = 'serving' AND {LANDS} RETURNING beat),
         promised AS (
             UPDATE cluster SET synchronous = {SYNCHRONOUS} FROM beaten WHERE synchronous <> {SYNCHRONOUS})
         SELECT {NOW}, beat FROM beaten"
    );
    let beaten = client.query_opt(&sql, &[&epoch.cast_signed()]).await?;
    Ok(beaten.map(|row| (moment(row.get(0)), row.get::<_, i64>(1).cast_unsigned())))
}

/// Ends the own run. The row that counts this statement stays until the next run begins, because a
/// statement cannot delete a row that it updates.
pub(crate) const LEAVE: &str = ",
    out AS (UPDATE replica SET state = 'left' FROM turn WHERE replica.epoch = $2 RETURNING replica.epoch),
    closed AS (DELETE FROM writer USING out WHERE writer.epoch = out.epoch AND writer.number <> $3)
    SELECT turn.one, out.epoch AS answer FROM turn LEFT JOIN out ON true";

/// Returns the leader whose lease is not over, by the clock of the server.
pub(crate) async fn find_leader(client: &Client) -> Result<Option<Leader>, StoreError> {
    let sql = format!("SELECT name, machine FROM replica WHERE state = 'serving' AND {NOW} - beaten <= lease + 1000");
    let found = rows(client.query(&sql, &[]).await)?;
    found.first().map(|row| Ok(Leader { name: get(row, "name")?, machine: get(row, "machine")? })).transpose()
}
