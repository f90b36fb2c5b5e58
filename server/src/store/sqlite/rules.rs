//! What is asked of SQL about [`Rule`]s: each answer is what breaks one.
//!
//! `Refunds` is asked often, so it touches only rows that are about refunds; the others may read everything.

use super::{Broken, open, tasks};
use crate::clock::Timestamp;
use crate::store::{Rule, VIOLATIONS_MAX};
use crate::tasks::task::TaskId;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// A task, and what is wrong with it.
const REFUNDS: &str = "
    SELECT id, 'ended as failed_silent and has no refund' FROM task
        WHERE status = 'failed_silent'
          AND NOT EXISTS (SELECT 1 FROM ledger WHERE task_id = task.id AND kind = 'refund')
    UNION ALL
    SELECT task_id, 'has a refund and did not end as failed_silent' FROM ledger JOIN task ON task.id = task_id
        WHERE kind = 'refund' AND status IS NOT 'failed_silent'
    UNION ALL
    SELECT task_id, 'has a refund and no charge that it gives back' FROM ledger AS refund
        WHERE kind = 'refund'
          AND (NOT EXISTS (SELECT 1 FROM ledger WHERE task_id = refund.task_id AND kind = 'charge')
               OR EXISTS (SELECT 1 FROM ledger WHERE task_id = refund.task_id AND kind = 'reversal'))";

const CHARGES: &str = "
    SELECT task_id, 'has more than one ' || kind FROM ledger GROUP BY task_id, kind HAVING count(*) > 1
    UNION ALL
    SELECT task_id, 'has a reversal and no charge that it takes back' FROM ledger AS back
        WHERE kind = 'reversal'
          AND NOT EXISTS (SELECT 1 FROM ledger WHERE task_id = back.task_id AND kind = 'charge')
    UNION ALL
    SELECT task_id, 'has a reversal and did not end as failed' FROM ledger JOIN task ON task.id = task_id
        WHERE kind = 'reversal' AND status IS NOT 'failed'";

/// The largest integer means that the lane is held.
const LANES: &str = "
    SELECT task_id, 'holds the lane of ' || lane.target || ' and is not in flight'
        FROM lane LEFT JOIN task ON task.id = task_id
        WHERE held_until = 9223372036854775807 AND terminal IS NOT 0
    UNION ALL
    SELECT id, 'is in flight and does not hold the lane of ' || task.target
        FROM task LEFT JOIN lane USING (resource, target)
        WHERE terminal = 0 AND (task_id IS NOT id OR held_until <> 9223372036854775807)";

const SECRETS: &str = "
    SELECT id, iif(terminal, 'has ended and its arguments were not wiped', 'is in flight and its arguments are gone')
        FROM task WHERE terminal = (sealed IS NOT NULL)";

/// What breaks `rule`.
pub(super) fn violations(db: &Connection, rule: Rule) -> Result<Vec<String>, Broken> {
    match rule {
        Rule::Integrity => integrity(db),
        Rule::Layout => layout(db),
        Rule::Refunds => named(db, REFUNDS),
        Rule::Charges => named(db, CHARGES),
        Rule::Lanes => named(db, LANES),
        Rule::Secrets => named(db, SECRETS),
        Rule::Deadlines(after) => late(db, after),
    }
}

fn named(db: &Connection, sql: &str) -> Result<Vec<String>, Broken> {
    let mut select = db.prepare_cached(&format!("{sql} LIMIT {VIOLATIONS_MAX}"))?;
    let rows = select.query_map([], |row| <([u8; 16], String)>::try_from(row))?;
    rows.map(|row| row.map(|(id, what)| format!("{} {what}", TaskId::from_bytes(id))).map_err(Broken::from)).collect()
}

fn integrity(db: &Connection) -> Result<Vec<String>, Broken> {
    let mut check = db.prepare(&format!("PRAGMA integrity_check({VIOLATIONS_MAX})"))?;
    let said = check.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let mut found: Vec<String> = said.into_iter().filter(|said| said != "ok").collect();
    let mut check = db.prepare("SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2")?;
    let lost = check.query_map([], |row| {
        let (child, parent, rows): (String, String, u32) = row.try_into()?;
        Ok(format!("{rows} rows of {child} refer to no {parent}"))
    })?;
    for lost in lost {
        found.push(lost?);
    }
    Ok(found)
}

fn layout(db: &Connection) -> Result<Vec<String>, Broken> {
    let (found, known) = (made(db)?, made(&open::blank()?)?);
    let missing = known.difference(&found).map(|(name, _)| format!("{name} is missing, or not what it should be"));
    let strange = found.difference(&known).map(|(name, _)| format!("{name} is not what this program makes"));
    Ok(missing.chain(strange).collect())
}

/// Names of tables and indexes, with the SQL that makes them.
fn made(db: &Connection) -> Result<BTreeSet<(String, String)>, Broken> {
    let mut select =
        db.prepare("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?;
    let rows = select.query_map([], |row| row.try_into())?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn late(db: &Connection, after: Timestamp) -> Result<Vec<String>, Broken> {
    let mut select = db.prepare_cached("SELECT id, state FROM task WHERE terminal = 0")?;
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()?
        && found.len() < VIOLATIONS_MAX
    {
        let (id, state): (_, String) = row.try_into()?;
        let id = TaskId::from_bytes(id);
        let deadline_at = tasks::parse(id, &state)?.deadline_at;
        if deadline_at <= after {
            found.push(format!("{id} is in flight, and should have ended at {deadline_at}"));
        }
    }
    Ok(found)
}
