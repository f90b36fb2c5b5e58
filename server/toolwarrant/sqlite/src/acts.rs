//! The SQL of acts.

use super::column::{millis, read};
use super::fault::Fault;
use rusqlite::{Connection, Row};
use toolwarrant_base::json;
use toolwarrant_core::act::{Act, ActFilter, StoredAct};

/// Skips an act that is stored already, because a write whose answer was late may be repeated.
pub(super) fn put(db: &Connection, acts: &[Act]) -> Result<(), Fault> {
    let put = "INSERT INTO act (id, at, operator, command, object, act) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT (id) DO NOTHING";
    for act in acts {
        let json = serde_json::to_string(act).map_err(|error| Fault::unavailable(error.to_string()))?;
        let Act { id, at, operator, command, object, changes: _ } = act;
        db.prepare_cached(put)?.execute((id, millis(*at), &operator.name, command, object, json))?;
    }
    Ok(())
}

pub(super) fn acts(db: &Connection, filter: &ActFilter) -> Result<Vec<StoredAct>, Fault> {
    let ActFilter { id, operator, object, command, since, until, before, limit } = filter;
    let by_object = if object.is_some() { "object = ?1" } else { "?1 IS NULL" };
    let by_id = if id.is_some() { "id = ?8" } else { "?8 IS NULL" };
    let sql = format!(
        "SELECT number, act FROM act WHERE {by_object} AND {by_id} AND (?2 IS NULL OR operator = ?2)
             AND (?3 IS NULL OR substr(command || ' ', 1, length(?3) + 1) = ?3 || ' ')
             AND at >= ?4 AND at < ?5 AND number < ?6 ORDER BY number DESC LIMIT ?7"
    );
    let (since, until) = (since.map_or(0, millis), until.map_or(i64::MAX, millis));
    let before = before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
    let mut select = db.prepare_cached(&sql)?;
    select
        .query_and_then((object, operator, command, since, until, before, limit, id), |row| read("act", row, columns))?
        .map(|row| read_act(row?))
        .collect()
}

pub(super) fn after(db: &Connection, after: u64, limit: u32) -> Result<Vec<StoredAct>, Fault> {
    let sql = "SELECT number, act FROM act WHERE number > ?1 ORDER BY number LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let rows =
        select.query_and_then((i64::try_from(after).unwrap_or(i64::MAX), limit), |row| read("act", row, columns))?;
    rows.map(|row| read_act(row?)).collect()
}

fn columns(row: &Row<'_>) -> rusqlite::Result<(i64, String)> {
    row.try_into()
}

fn read_act((number, act): (i64, String)) -> Result<StoredAct, Fault> {
    let broken = |error| Fault::corrupt(format!("the act {number} cannot be read: {error}"));
    Ok(StoredAct { number: number.cast_unsigned(), act: json::read(&act).map_err(broken)? })
}
