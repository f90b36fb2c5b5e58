//! Partitions by day: made ahead, and dropped when their tasks are too old to be shown.

use crate::column::{get, rows};
use crate::connection::unavailable;
use std::time::Duration;
use tokio_postgres::Client;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::StoreError;

const TABLES: [&str; 2] = ["ended", "event"];

const DAY: Duration = Duration::from_hours(24);

/// In days.
const AHEAD: u32 = 14;

/// From the acceptance of a task to its end.
const LONGEST: Duration = Duration::from_hours(24);

/// Makes those of today and the next days. A day that fails does not keep the others back.
pub(crate) async fn make(client: &Client, now: Timestamp) -> Result<(), StoreError> {
    let mut made = Ok(());
    for (table, day) in missing(client, now, AHEAD).await? {
        made = made.and(define(client, &format!("SELECT make_day('{table}', {day})")).await);
    }
    made
}

pub(crate) async fn missing(
    client: &Client,
    now: Timestamp,
    ahead: u32,
) -> Result<Vec<(&'static str, u64)>, StoreError> {
    let days = (0..=ahead).map(|day| number(now.plus(DAY * day)));
    let mut wanted: Vec<_> = days.flat_map(|day| TABLES.map(|table| (table, day))).collect();
    let names: Vec<_> = wanted.iter().map(|(table, day)| name(table, *day)).collect();
    let sql = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL";
    let found = rows(client.query(sql, &[&names]).await)?;
    let found: Vec<&str> = found.iter().map(|row| get(row, "name")).collect::<Result<_, _>>()?;
    wanted.retain(|(table, day)| found.contains(&&*name(table, *day)));
    Ok(wanted)
}

pub(crate) async fn drop_old(client: &Client, before: Timestamp) -> Result<u32, StoreError> {
    let mut dropped = 0;
    for table in TABLES {
        let sql =
            "SELECT right(child.relname, 6)::bigint AS day FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
                   WHERE inhparent = to_regclass($1) AND child.relname < $2 AND child.relname NOT LIKE '%default'
                   ORDER BY 1";
        // The name of a day sorts as the day.
        let oldest = name(table, number(before.minus(LONGEST).minus(DAY)));
        for row in rows(client.query(sql, &[&table, &oldest]).await)? {
            let day: i64 = get(&row, "day")?;
            define(client, &format!("SELECT drop_day('{table}', {day})")).await?;
            dropped += 1;
        }
    }
    Ok(dropped)
}

/// Changes tables while no other replica does. Waits for locks only shortly, because everybody else
/// waits behind it.
async fn define(client: &Client, change: &str) -> Result<(), StoreError> {
    let alone = "SELECT pg_advisory_xact_lock(hashtext(current_schema || ' partitions'))";
    client.batch_execute(&format!("{alone}; SET LOCAL lock_timeout = '2s'; {change}")).await.map_err(unavailable)
}

pub(crate) fn name(table: &str, day: u64) -> String {
    format!("{table}_{day:06}")
}

/// Returns the number of the day since the Unix epoch.
fn number(at: Timestamp) -> u64 {
    at.0 / 1_000 / DAY.as_secs()
}
