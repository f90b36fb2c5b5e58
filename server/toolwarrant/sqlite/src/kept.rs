//! The SQL of data with a limited lifetime, and of the small files of the service.

use super::column::{millis, moment, read};
use super::fault::Fault;
use rusqlite::{Connection, Row};
use std::collections::HashMap;
use toolwarrant_audit::{Anchor, Head};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::RequestCount;
use toolwarrant_store::Figure;

/// Above it, ended tasks are deleted early.
pub(super) const TASKS_MAX: u64 = 5_000_000;

/// Resource and target of a cool-down.
pub(super) type CoolDownKey = (String, String);

pub(super) fn anchor(db: &Connection) -> Result<Option<Anchor>, Fault> {
    let sql = "SELECT one, newest_number, newest_hash, pruned_number, pruned_hash, acts FROM audit_anchor";
    let number = |row: &Row<'_>, column| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.cast_unsigned());
    let found = |row: &Row<'_>| {
        Ok(Anchor {
            newest: Head { number: number(row, 1)?, hash: row.get(2)? },
            pruned: Head { number: number(row, 3)?, hash: row.get(4)? },
            acts: number(row, 5)?,
        })
    };
    db.prepare_cached(sql)?.query_and_then([], |row| read("audit_anchor", row, found))?.next().transpose()
}

pub(super) fn put_anchor(db: &Connection, anchor: &Anchor) -> Result<(), Fault> {
    let Anchor { newest, pruned, acts } = anchor;
    let sql = "INSERT OR REPLACE INTO audit_anchor VALUES (1, ?1, ?2, ?3, ?4, ?5)";
    let [newest_number, pruned_number, acts] = [newest.number, pruned.number, *acts].map(u64::cast_signed);
    db.prepare_cached(sql)?.execute((newest_number, newest.hash, pruned_number, pruned.hash, acts))?;
    Ok(())
}

pub(super) fn put_requests(db: &Connection, requests: &[RequestCount], since: u64) -> Result<(), Fault> {
    for RequestCount { application, second, requests } in requests {
        let put = "INSERT OR REPLACE INTO request_count VALUES (?1, ?2, ?3)";
        db.prepare_cached(put)?.execute((second.cast_signed(), application, requests))?;
    }
    db.prepare_cached("DELETE FROM request_count WHERE second < ?1")?.execute([since.cast_signed()])?;
    Ok(())
}

pub(super) fn files(db: &Connection) -> Result<HashMap<String, Vec<u8>>, Fault> {
    let file = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    db.prepare_cached("SELECT name, content FROM file")?.query_and_then([], |row| read("file", row, file))?.collect()
}

pub(super) fn put_files(db: &Connection, files: &[(String, Vec<u8>)]) -> Result<(), Fault> {
    for (name, content) in files {
        db.prepare_cached("INSERT OR REPLACE INTO file VALUES (?1, ?2)")?.execute((name, content))?;
    }
    Ok(())
}

pub(super) fn requests(db: &Connection) -> Result<Vec<RequestCount>, Fault> {
    let sql = "SELECT application, second, requests FROM request_count ORDER BY second";
    let count = |row: &Row<'_>| {
        let second = row.get::<_, i64>(1)?.cast_unsigned();
        Ok(RequestCount { application: row.get(0)?, second, requests: row.get(2)? })
    };
    db.prepare_cached(sql)?.query_and_then([], |row| read("request_count", row, count))?.collect()
}

/// Reads the whole table, so the writer must not run it.
pub(super) fn cool_downs(db: &Connection, before: Timestamp, limit: u32) -> Result<Vec<CoolDownKey>, Fault> {
    let mut select =
        db.prepare_cached("SELECT resource, target FROM settling WHERE until < ?1 ORDER BY target, resource LIMIT ?2")?;
    let rows = select.query_map((millis(before), limit), |row| row.try_into())?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn purge_cool_downs(db: &Connection, keys: &[CoolDownKey], before: Timestamp) -> Result<(), Fault> {
    let delete = "DELETE FROM settling WHERE resource = ?1 AND target = ?2 AND until < ?3";
    for (resource, target) in keys {
        db.prepare_cached(delete)?.execute((resource, target, millis(before)))?;
    }
    Ok(())
}

/// Returns the number of ended tasks to delete. Row numbers grow with each task, so the query does
/// not count rows.
pub(super) fn surplus(db: &Connection, most: u64, limit: u32) -> Result<u32, Fault> {
    let sql = "SELECT (SELECT max(rowid) FROM task) - (SELECT min(rowid) FROM task) + 1";
    let rows = db.prepare_cached(sql)?.query_row([], |row| row.get::<_, Option<i64>>(0))?;
    let surplus = rows.map_or(0, i64::cast_unsigned).saturating_sub(most);
    Ok(u32::try_from(surplus).unwrap_or(u32::MAX).min(limit))
}

/// Leaves out deduplication keys with `until` 0, which a stop has written.
pub(super) fn figures(db: &Connection) -> Result<Vec<Figure>, Fault> {
    [
        ("ended tasks", "SELECT count(*), min(finished_at) FROM task WHERE terminal = 1"),
        ("timelines of tasks", "SELECT count(*), min(at) FROM task_event"),
        ("cool-downs", "SELECT count(*), min(until) FROM settling"),
        ("deduplication keys", "SELECT count(*), min(until) FROM mark"),
        ("ledger", "SELECT count(*), min(at) FROM ledger"),
        ("acts", "SELECT count(*), min(at) FROM act"),
    ]
    .into_iter()
    .map(|(what, sql)| {
        let (rows, oldest): (i64, Option<i64>) = db.query_row(sql, [], |row| row.try_into())?;
        Ok(Figure { what, rows: rows.cast_unsigned(), oldest: oldest.map(moment) })
    })
    .collect()
}
