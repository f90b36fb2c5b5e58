//! The SQL that finds violations of an [`IntegrityRule`]. `Refunds` is checked often, so it reads
//! only rows about refunds. A task whose state cannot be read violates `Records`; the rules still
//! check other tasks.

use super::column::millis;
use super::fault::Fault;
use super::open;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_store::check_charges;
use toolwarrant_store::{IntegrityRule, VIOLATIONS_MAX};
use toolwarrant_tasks::task::{Task, TaskId, TaskStatus};

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
          AND NOT EXISTS (SELECT 1 FROM ledger WHERE task_id = back.task_id AND kind = 'charge')";

const CHARGED: &str = "SELECT id, state, (SELECT group_concat(kind) FROM ledger WHERE task_id = id) FROM task";

const TARGET_LOCKS: &str = "
    SELECT max(id), 'is in flight on ' || target || ', and so is another task' FROM task
        WHERE terminal = 0 GROUP BY resource, target HAVING count(*) > 1";

const SECRETS: &str = "
    SELECT id, iif(terminal, 'has ended and its arguments were not wiped', 'is in flight and its arguments are gone')
        FROM task WHERE terminal = (sealed IS NOT NULL)";

/// No event stands for version 0, the acceptance.
const RECORDS: &str = "
    SELECT task_id, 'has a ' || kind || ' on the account of ' || ledger.application || ', and is of ' || task.application
        FROM ledger JOIN task ON task.id = task_id WHERE ledger.application <> task.application
    UNION ALL
    SELECT id, 'is at version ' || version || ', and its timeline does not have each step to that once' FROM task
        WHERE (SELECT count(*) <> task.version OR min(version) < 1 OR max(version) > task.version
               FROM task_event WHERE task_id = id)";

const REPEATED: &str = "
    SELECT id, state, status, wake_at, finished_at,
           ifnull((SELECT phase FROM task_event WHERE task_id = id ORDER BY version DESC LIMIT 1), 'ready') FROM task";

pub(super) fn violations(db: &Connection, rule: IntegrityRule) -> Result<Vec<String>, Fault> {
    let both = |sql, judged: Result<Vec<String>, Fault>| Ok([select_names(db, sql)?, judged?].concat());
    let mut found = match rule {
        IntegrityRule::Integrity => integrity(db),
        IntegrityRule::Layout => layout(db),
        IntegrityRule::Foreign => foreign(db),
        IntegrityRule::Refunds => select_names(db, REFUNDS),
        IntegrityRule::Charges => both(CHARGES, find_uncharged(db)),
        IntegrityRule::TargetLocks => select_names(db, TARGET_LOCKS),
        IntegrityRule::Secrets => select_names(db, SECRETS),
        IntegrityRule::Deadlines(after) => late(db, after),
        IntegrityRule::Records => both(RECORDS, find_contradictions(db)),
    }?;
    found.truncate(VIOLATIONS_MAX);
    Ok(found)
}

fn select_names(db: &Connection, sql: &str) -> Result<Vec<String>, Fault> {
    let mut select = db.prepare_cached(&format!("{sql} LIMIT {VIOLATIONS_MAX}"))?;
    let rows = select.query_map([], |row| <([u8; 16], String)>::try_from(row))?;
    rows.map(|row| row.map(|(id, what)| format!("{} {what}", TaskId::from_bytes(id))).map_err(Fault::from)).collect()
}

fn integrity(db: &Connection) -> Result<Vec<String>, Fault> {
    let mut check = db.prepare(&format!("PRAGMA integrity_check({VIOLATIONS_MAX})"))?;
    let said = check.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let mut found: Vec<String> = said.into_iter().filter(|said| said != "ok").collect();
    let mut check = db.prepare("SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2")?;
    let lost = check.query_map([], |row| {
        let (child, parent, rows): (String, String, u32) = row.try_into()?;
        Ok(format!("{rows} rows of {child} refer to a missing row of {parent}"))
    })?;
    for lost in lost {
        found.push(lost?);
    }
    Ok(found)
}

fn layout(db: &Connection) -> Result<Vec<String>, Fault> {
    let (found, known) = (schema_objects(db)?, schema_objects(&open::blank()?)?);
    let other = known.into_iter().filter(|(object, sql)| found.get(object) != Some(sql));
    Ok(other.map(|((kind, name), _)| format!("{kind} {name} is missing or different")).collect())
}

fn foreign(db: &Connection) -> Result<Vec<String>, Fault> {
    let known = schema_objects(&open::blank()?)?;
    let strange = schema_objects(db)?.into_keys().filter(|object| !known.contains_key(object));
    let describe = |(kind, name): (String, String)| {
        let drop = format!("DROP {} \"{}\"", kind.to_uppercase(), name.replace('"', "\"\""));
        format!("{kind} {name} was not created by this program; `{drop}` removes it")
    };
    Ok(strange.map(describe).collect())
}

/// Returns the SQL of each kind and name, without comments and blanks.
fn schema_objects(db: &Connection) -> Result<BTreeMap<(String, String), String>, Fault> {
    let mut select =
        db.prepare("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?;
    let plain = |sql: String| -> String {
        let lines = sql.lines().filter_map(|line| line.split("--").next());
        lines.flat_map(str::chars).filter(|character| !character.is_whitespace()).collect()
    };
    let rows = select.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), plain(row.get(2)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn find_uncharged(db: &Connection) -> Result<Vec<String>, Fault> {
    check_tasks(db, CHARGED, |row, task| {
        let kinds: Option<String> = row.get(2)?;
        let has = |kind: &str| kinds.iter().flat_map(|kinds| kinds.split(',')).any(|entered| entered == kind);
        Ok(task.map(|task| check_charges(&task, has)).unwrap_or_default())
    })
}

fn late(db: &Connection, after: Timestamp) -> Result<Vec<String>, Fault> {
    check_tasks(db, "SELECT id, state FROM task WHERE terminal = 0", |_, task| {
        let late = task.ok().map(|task| task.deadline_at).filter(|deadline_at| *deadline_at <= after);
        Ok(late.map(|at| format!("is in flight, and should have ended at {at}")).into_iter().collect())
    })
}

fn find_contradictions(db: &Connection) -> Result<Vec<String>, Fault> {
    check_tasks(db, REPEATED, |row, task| {
        let task = match task {
            Ok(task) => task,
            Err(why) => return Ok(vec![format!("has a state that cannot be read: {why}")]),
        };
        let says = |column, text: Option<&str>| {
            row.get::<_, Option<String>>(column).is_ok_and(|found| found.as_deref() == text)
        };
        let at = |column, at: Option<Timestamp>| {
            row.get::<_, Option<i64>>(column).is_ok_and(|found| found == at.map(millis))
        };
        let ended = task.finished_at.is_some() == task.status().is_some();
        let repeated = [
            ("status", says(2, task.status().map(TaskStatus::as_str))),
            ("wake_at", at(3, task.wake_at)),
            ("finished_at", at(4, task.finished_at) && ended),
            ("latest event", says(5, Some(task.phase.as_str()))),
        ];
        let other = repeated.into_iter().filter(|(_, same)| !same);
        Ok(other.map(|(what, _)| format!("has a {what} that contradicts its state")).collect())
    })
}

fn check_tasks(
    db: &Connection,
    sql: &str,
    judge: impl Fn(&Row<'_>, serde_json::Result<Task>) -> rusqlite::Result<Vec<String>>,
) -> Result<Vec<String>, Fault> {
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()?
        && found.len() < VIOLATIONS_MAX
    {
        let id = TaskId::from_bytes(row.get(0)?);
        let task = json::read_bytes(row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?);
        found.extend(judge(row, task)?.into_iter().map(|what| format!("{id} {what}")));
    }
    Ok(found)
}
