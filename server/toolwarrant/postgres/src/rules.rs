//! Checks of stored data, in the words of all stores.

use crate::column::{IdColumn, get, millis, moment, read_state, rows};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::StoreError;
use toolwarrant_store::{Figure, IntegrityRule, VIOLATIONS_MAX, check_charges};
use toolwarrant_tasks::task::{Task, TaskStatus};

const INTEGRITY: &str = "
    SELECT task AS id, 'has a timeline and no row' AS what FROM event
        WHERE NOT EXISTS (SELECT FROM task WHERE id = event.task) AND NOT EXISTS (SELECT FROM ended WHERE id = event.task)
    UNION ALL
    SELECT id, 'is in flight and has ended' FROM task WHERE EXISTS (SELECT FROM ended WHERE ended.id = task.id)";

const REFUNDS: &str = "
    SELECT id, 'ended as failed_silent and has no refund' AS what FROM ended
        WHERE status = 'failed_silent' AND NOT EXISTS (SELECT FROM ledger WHERE task = ended.id AND kind = 'refund')
    UNION ALL
    SELECT task, 'has a refund and did not end as failed_silent' FROM ledger
        WHERE kind = 'refund' AND (EXISTS (SELECT FROM task WHERE id = ledger.task)
                                   OR EXISTS (SELECT FROM ended WHERE id = ledger.task AND status <> 'failed_silent'))
    UNION ALL
    SELECT task, 'has a refund and no charge that it gives back' FROM ledger AS refund
        WHERE kind = 'refund' AND (NOT EXISTS (SELECT FROM ledger WHERE task = refund.task AND kind = 'charge')
                                   OR EXISTS (SELECT FROM ledger WHERE task = refund.task AND kind = 'reversal'))";

const REVERSALS: &str = "
    SELECT task AS id, 'has a reversal and no charge that it takes back' AS what FROM ledger AS back
        WHERE kind = 'reversal' AND NOT EXISTS (SELECT FROM ledger WHERE task = back.task AND kind = 'charge')";

const TARGET_LOCKS: &str = "
    SELECT id, 'is in flight on ' || target || ', and does not hold it' AS what FROM task
        WHERE NOT EXISTS (SELECT FROM target
                          WHERE target.target = task.target AND target.resource = task.resource AND target.task = task.id)
    UNION ALL
    SELECT task, 'holds ' || target || ', and is not in flight' FROM target
        WHERE task IS NOT NULL AND NOT EXISTS (SELECT FROM task WHERE id = target.task)";

const RECORDS: &str = "
    SELECT known.id, 'has a ' || kind || ' on the account of ' || ledger.application || ', and is of ' || known.application AS what
        FROM ledger JOIN (SELECT id, application FROM task UNION ALL SELECT id, application FROM ended) AS known
            ON known.id = ledger.task WHERE ledger.application <> known.application
    UNION ALL
    SELECT id, 'is at version ' || version || ', and its timeline does not have each step to that once'
        FROM (SELECT id, version FROM task UNION ALL SELECT id, version FROM ended) AS known
        WHERE (SELECT count(*) <> known.version OR min(event.version) < 1 OR max(event.version) > known.version
               FROM event WHERE event.task = known.id)";

const TASKS: &str = "
    SELECT id, version, state, created_at, wake_at, NULL AS status, NULL::bigint AS finished_at,
           ARRAY(SELECT kind FROM ledger WHERE task = task.id) AS kinds
        FROM task WHERE id > $1
    UNION ALL
    SELECT id, version, state, created_at, NULL, status, finished_at, ARRAY(SELECT kind FROM ledger WHERE task = ended.id)
        FROM ended WHERE id > $1 ORDER BY id LIMIT 10000";

pub(crate) async fn violations(client: &Client, rule: IntegrityRule) -> Result<Vec<String>, StoreError> {
    let mut found = match rule {
        IntegrityRule::Integrity => select(client, INTEGRITY).await,
        IntegrityRule::Layout => layout(client).await,
        IntegrityRule::Refunds => select(client, REFUNDS).await,
        IntegrityRule::Charges => {
            let mut found = select(client, REVERSALS).await?;
            found.extend(
                judge(client, |task, row| {
                    let kinds: Vec<String> = get(row, "kinds")?;
                    Ok(check_charges(&task?, |kind| kinds.iter().any(|entered| entered == kind)))
                })
                .await?,
            );
            Ok(found)
        }
        IntegrityRule::TargetLocks => select(client, TARGET_LOCKS).await,
        // Others may share the database. Ended tasks have no column for arguments, and those in
        // flight have always some.
        IntegrityRule::Foreign | IntegrityRule::Secrets => Ok(Vec::new()),
        IntegrityRule::Deadlines(after) => {
            judge(client, |task, _| {
                let late = task.ok().filter(|task| task.status().is_none() && task.deadline_at <= after);
                let late = late.map(|task| format!("is in flight, and should have ended at {}", task.deadline_at));
                Ok(late.into_iter().collect())
            })
            .await
        }
        IntegrityRule::Records => {
            let mut found = select(client, RECORDS).await?;
            found.extend(judge(client, contradictions).await?);
            Ok(found)
        }
    }?;
    found.truncate(VIOLATIONS_MAX);
    Ok(found)
}

fn contradictions(task: Result<Task, StoreError>, row: &Row) -> Result<Vec<String>, StoreError> {
    let task = match task {
        Ok(task) => task,
        Err(why) => return Ok(vec![format!("has a state that cannot be read: {why}")]),
    };
    let status: Option<&str> = get(row, "status")?;
    let columns = [
        ("status", status == task.status().map(TaskStatus::as_str)),
        ("wake_at", get::<Option<i64>>(row, "wake_at")? == task.wake_at.map(millis) || status.is_some()),
        ("finished_at", get::<Option<i64>>(row, "finished_at")? == task.finished_at.map(millis)),
    ];
    let other = columns.into_iter().filter(|(_, same)| !same);
    Ok(other.map(|(what, _)| format!("has a {what} that contradicts its state")).collect())
}

pub(crate) async fn select(client: &Client, sql: &str) -> Result<Vec<String>, StoreError> {
    let parameters: &[&(dyn ToSql + Sync)] = &[];
    let found = rows(client.query(&format!("{sql} LIMIT {VIOLATIONS_MAX}"), parameters).await)?;
    found.iter().map(|row| Ok(format!("{} {}", get::<IdColumn>(row, "id")?.0, get::<&str>(row, "what")?))).collect()
}

async fn judge(
    client: &Client,
    check: impl Fn(Result<Task, StoreError>, &Row) -> Result<Vec<String>, StoreError>,
) -> Result<Vec<String>, StoreError> {
    let (mut found, mut last) = (Vec::new(), IdColumn(toolwarrant_tasks::task::TaskId::from_bytes([0; 16])));
    loop {
        let page = rows(client.query(TASKS, &[&last]).await)?;
        for row in &page {
            last = get(row, "id")?;
            let times = (get(row, "created_at")?, get(row, "wake_at")?);
            let task = read_state(last.0, get(row, "version")?, get(row, "state")?, times);
            found.extend(check(task, row)?.into_iter().map(|what| format!("{} {what}", last.0)));
        }
        if page.is_empty() || found.len() >= VIOLATIONS_MAX {
            return Ok(found);
        }
    }
}

async fn layout(client: &Client) -> Result<Vec<String>, StoreError> {
    let names: Vec<_> =
        crate::SCHEMA.lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split(' ').next()).collect();
    let sql = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL";
    let missing = rows(client.query(sql, &[&names]).await)?;
    missing.iter().map(|row| Ok(format!("table {} is missing", get::<&str>(row, "name")?))).collect()
}

pub(crate) async fn figures(client: &Client) -> Result<Vec<Figure>, StoreError> {
    let mut figures = Vec::new();
    for (what, sql) in [
        ("ended tasks", "SELECT count(*) AS rows, min(finished_at) AS oldest FROM ended"),
        ("timelines of tasks", "SELECT count(*) AS rows, min(at) AS oldest FROM event"),
        (
            "cool-downs",
            "SELECT count(*) AS rows, min(until) AS oldest FROM target WHERE task IS NULL AND until IS NOT NULL",
        ),
        ("deduplication keys", "SELECT count(*) AS rows, min(until) AS oldest FROM mark"),
        ("ledger", "SELECT count(*) AS rows, min(at) AS oldest FROM ledger"),
        ("acts", "SELECT count(*) AS rows, min(at) AS oldest FROM act"),
    ] {
        let found = rows(client.query(sql, &[]).await)?;
        let row = found.first().ok_or_else(|| StoreError::Corrupt(format!("{what} cannot be counted")))?;
        let oldest: Option<i64> = get(row, "oldest")?;
        let oldest: Option<Timestamp> = oldest.map(moment);
        figures.push(Figure { what, rows: get::<i64>(row, "rows")?.cast_unsigned(), oldest });
    }
    Ok(figures)
}
