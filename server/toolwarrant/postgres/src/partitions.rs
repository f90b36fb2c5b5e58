//! Partitions by day: made ahead, and dropped when their tasks are too old to be shown.

use crate::column::{get, rows};
use crate::connection::unavailable;
use std::time::Duration;
use tokio_postgres::Client;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::StoreError;

/// The tables with partitions.
const TABLES: [&str; 2] = ["ended", "event"];

const DAY: Duration = Duration::from_hours(24);

/// Days for which partitions are made ahead.
const AHEAD: u32 = 14;

/// Longest time from the acceptance of a task to its end.
const LONGEST: Duration = Duration::from_hours(24);

/// Makes the partitions of today and of the next days. A day that fails does not keep the others
/// back.
pub(crate) async fn make(client: &Client, now: Timestamp) -> Result<(), StoreError> {
    let days = (0..=AHEAD).map(|day| Timestamp(now.plus(DAY * day).0 / millis(DAY) * millis(DAY)));
    let wanted: Vec<_> = days.flat_map(|day| TABLES.map(|table| (table, day, name(table, day)))).collect();
    let names: Vec<_> = wanted.iter().map(|(.., name)| name).collect();
    let sql = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL";
    let missing = rows(client.query(sql, &[&names]).await)?;
    let missing: Vec<&str> = missing.iter().map(|row| get(row, "name")).collect::<Result<_, _>>()?;
    let mut made = Ok(());
    for (table, day, name) in wanted.iter().filter(|(.., name)| missing.contains(&&**name)) {
        let (from, to) = (bound(*day), bound(day.plus(DAY)));
        let make = format!("CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table}");
        let day = define(client, &format!("{make} FOR VALUES FROM ('{from}') TO ('{to}')")).await;
        made = made.and(day);
    }
    made
}

/// Drops the partitions whose tasks have all ended before `before`. Returns their number.
pub(crate) async fn drop_old(client: &Client, before: Timestamp) -> Result<u32, StoreError> {
    let mut dropped = 0;
    for table in TABLES {
        let sql = "SELECT child.relname AS name FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
                   WHERE inhparent = to_regclass($1) AND child.relname < $2 AND child.relname NOT LIKE '%default'
                   ORDER BY 1";
        // The name of a day sorts as the day.
        let oldest = name(table, before.minus(LONGEST).minus(DAY));
        for row in rows(client.query(sql, &[&table, &oldest]).await)? {
            let name: &str = get(&row, "name")?;
            define(client, &format!("DROP TABLE IF EXISTS {name}")).await?;
            dropped += 1;
        }
    }
    Ok(dropped)
}

/// Changes tables, in one transaction, while no other replica does. Waits for locks only shortly,
/// because everybody else waits behind it.
async fn define(client: &Client, change: &str) -> Result<(), StoreError> {
    let alone = "SELECT pg_advisory_xact_lock(hashtext(current_schema || ' partitions'))";
    client.batch_execute(&format!("{alone}; SET LOCAL lock_timeout = '2s'; {change}")).await.map_err(unavailable)
}

/// Returns the name of the partition of a day: the table and the number of the day.
fn name(table: &str, day: Timestamp) -> String {
    format!("{table}_{:06}", day.0 / millis(DAY))
}

/// Returns the first id of a moment.
fn bound(at: Timestamp) -> String {
    format!("{:012x}{:020x}", at.0, 0)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
