//! Reads of tasks, their timelines and the ledger.

use crate::column::{IdColumn, fingerprint, get, millis, moment, read_state, rows};
use crate::prepared::PreparedClient;
use crate::queue::BatchAnswers;
use crate::runs::NOW;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_core::store::StoreError;
use toolwarrant_tasks::machine::{Entry, TimelineEntry};
use toolwarrant_tasks::store::{
    CallFacts, Identity, LedgerRow, OpenTask, Record, RefundFilter, StatusCounts, TaskFilter, TaskRows, TimelineEvent,
    WriteAnswer, answer_repeat,
};
use toolwarrant_tasks::task::{Phase, TaskId, TaskStatus};

pub(crate) async fn repeats(
    client: Arc<PreparedClient>,
    identities: Vec<Identity>,
) -> BatchAnswers<Option<WriteAnswer>> {
    let sql = "
        SELECT place, found.* FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::text[]) WITH ORDINALITY
            AS asked (application, idem_key, fingerprint, resource, target, place), LATERAL (
            SELECT id, tool, target, fingerprint FROM task
                WHERE task.application = asked.application AND task.idem_key = asked.idem_key
            UNION ALL
            SELECT task.id, task.tool, task.target, task.fingerprint
                FROM target, LATERAL (SELECT * FROM task WHERE id = target.task OFFSET 0) AS task
                WHERE asked.idem_key IS NULL AND target.target = asked.target AND target.resource = asked.resource
                  AND task.application = asked.application AND task.idem_key IS NULL
                  AND task.fingerprint = asked.fingerprint) AS found";
    let [applications, resources, targets] = [
        |asked: &Identity| asked.application.clone(),
        |asked: &Identity| asked.resource.clone(),
        |asked: &Identity| asked.target.clone(),
    ]
    .map(|column| identities.iter().map(column).collect::<Vec<_>>());
    let keys: Vec<_> = identities.iter().map(|asked| asked.key.as_deref()).collect();
    let fingerprints: Vec<_> = identities.iter().map(|asked| asked.fingerprint.as_slice()).collect();
    let found = client.query_again(sql, &[&applications, &keys, &fingerprints, &resources, &targets]).await?;
    let of = |(place, asked): (i64, &Identity)| {
        let row = found.iter().find(|row| get(row, "place") == Ok(place));
        let matches = |row| Ok::<_, StoreError>(get::<&[u8]>(row, "fingerprint")? == asked.fingerprint);
        row.map(|row| {
            Ok(answer_repeat(get::<IdColumn>(row, "id")?.0, get(row, "tool")?, get(row, "target")?, matches(row)?))
        })
        .transpose()
    };
    Ok((1..).zip(&identities).map(of).collect())
}

const IN_FLIGHT: &str = "
    SELECT id, application, idem_key, fingerprint, tool, resource, target, created_at, wake_at, version, state, sealed,
           request_id, key_id, arguments, NULL::bigint AS refunded_at
        FROM task WHERE id = ANY($1)";

const ENDED: &str = "
    SELECT id, application, NULL AS idem_key, NULL::bytea AS fingerprint, tool, resource, target, created_at,
           NULL::bigint AS wake_at, version, state, NULL::bytea AS sealed, request_id, key_id, arguments, (SELECT at FROM ledger WHERE task = ended.id AND kind = 'refund') AS refunded_at
        FROM ended WHERE id = ANY($1)";

pub(crate) async fn tasks_of(client: Arc<PreparedClient>, ids: Vec<TaskId>) -> BatchAnswers<Option<Record>> {
    let found = record_rows(&client, &ids).await?;
    let is = |row: &&Row, id| get::<IdColumn>(row, "id").is_ok_and(|found| found.0 == id);
    Ok(ids.into_iter().map(|id| found.iter().find(|row| is(row, id)).map(record).transpose()).collect())
}

/// Returns the tasks in any order.
pub(crate) async fn records(client: &PreparedClient, ids: &[TaskId]) -> Result<Vec<Record>, StoreError> {
    rows(record_rows(client, ids).await)?.iter().map(record).collect()
}

/// Reads the tables of ended tasks, which are many, only for those that are not in flight.
async fn record_rows(client: &PreparedClient, ids: &[TaskId]) -> Result<Vec<Row>, Error> {
    let mut asked: Vec<_> = ids.iter().copied().map(IdColumn).collect();
    let mut found = Vec::new();
    for sql in [IN_FLIGHT, ENDED] {
        if !asked.is_empty() {
            found.extend(client.query_again(sql, &[&asked]).await?);
            asked.retain(|id| found.iter().all(|row| get::<IdColumn>(row, "id").is_ok_and(|found| found.0 != id.0)));
        }
    }
    Ok(found)
}

fn record(row: &Row) -> Result<Record, StoreError> {
    let id = get::<IdColumn>(row, "id")?.0;
    let (created_at, version) = (get(row, "created_at")?, get::<i32>(row, "version")?);
    Ok(Record {
        id,
        identity: identity(row)?,
        tool: get(row, "tool")?,
        created_at: moment(created_at),
        version: u32::try_from(version).unwrap_or(0),
        task: read_state(id, version, get(row, "state")?, (created_at, get(row, "wake_at")?))?,
        sealed: get(row, "sealed")?,
        refunded_at: get::<Option<i64>>(row, "refunded_at")?.map(moment),
        call: Some(CallFacts {
            request_id: get(row, "request_id")?,
            key_id: get(row, "key_id")?,
            arguments: get(row, "arguments")?,
        }),
    })
}

fn identity(row: &Row) -> Result<Identity, StoreError> {
    Ok(Identity {
        application: get(row, "application")?,
        key: get(row, "idem_key")?,
        fingerprint: get::<Option<&[u8]>>(row, "fingerprint")?.map(fingerprint).transpose()?.unwrap_or_default(),
        resource: get(row, "resource")?,
        target: get(row, "target")?,
    })
}

pub(crate) async fn open_tasks(
    client: &PreparedClient,
    after: Option<TaskId>,
    limit: u32,
) -> Result<Vec<OpenTask>, StoreError> {
    let sql = "SELECT id, application, idem_key, fingerprint, resource, target, wake_at, tool, sealed FROM task
                   WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT $2";
    let found = rows(client.query_again(sql, &[&after.map(IdColumn), &i64::from(limit)]).await)?;
    let open = |row: &Row| {
        Ok(OpenTask {
            id: get::<IdColumn>(row, "id")?.0,
            identity: identity(row)?,
            tool: get(row, "tool")?,
            sealed: get(row, "sealed")?,
            wake_at: get::<Option<i64>>(row, "wake_at")?.map(moment),
        })
    };
    found.iter().map(open).collect()
}

pub(crate) async fn tasks(client: &PreparedClient, filter: TaskFilter) -> Result<TaskRows, StoreError> {
    let TaskFilter { application, limit, examine, .. } = &filter;
    let (first, mut end) = filter.ids();
    let columns = "FROM %s WHERE ($1::text IS NULL OR application = $1) AND ($2::uuid IS NULL OR id >= $2)
                   AND ($3::uuid IS NULL OR id < $3) ORDER BY id DESC LIMIT $4";
    let of_table = |table: &str, status: &str| {
        format!("(SELECT id, tool, resource, target, {status} AS status {})", columns.replacen("%s", table, 1))
    };
    let in_flight = of_table("task", "NULL");
    let sql = match filter.is_in_flight() {
        true => in_flight,
        false => format!("{in_flight} UNION ALL {} ORDER BY id DESC LIMIT $4", of_table("ended", "status")),
    };
    // Most pages need few rows, so the first read asks for few.
    let mut batch = *limit;
    let (mut selected, mut listed, mut last) = (Vec::new(), TaskRows::default(), None);
    'pages: loop {
        let most = i64::from(batch.min(*examine - listed.examined)) + 1;
        let found = rows(client.query(&sql, &[application, &first.map(IdColumn), &end.map(IdColumn), &most]).await)?;
        for row in &found {
            if selected.len() == *limit as usize || listed.examined == *examine {
                listed.next = last;
                break 'pages;
            }
            listed.examined += 1;
            let id = get::<IdColumn>(row, "id")?.0;
            last = Some(id);
            let status = match get::<Option<&str>>(row, "status")?.and_then(Phase::parse) {
                Some(Phase::Done(status)) => status,
                _ => TaskStatus::Dispatched,
            };
            if filter.admits(get(row, "tool")?, get(row, "resource")?, get(row, "target")?, status) {
                selected.push(id);
            }
        }
        if (found.len() as i64) < most {
            break;
        }
        (end, batch) = (last, batch.saturating_mul(16));
    }
    listed.records = records(client, &selected).await?;
    listed.records.sort_by_key(|record| std::cmp::Reverse(record.id));
    Ok(listed)
}

pub(crate) async fn count(client: &PreparedClient, filter: TaskFilter) -> Result<StatusCounts, StoreError> {
    let TaskFilter { application, tool, prefix, examine, .. } = &filter;
    let (first, end) = filter.ids();
    // Only the index of an application has all but the target.
    let (target, of_prefix) = match prefix {
        Some(_) => (", target", "starts_with(target, $6::text)"),
        None => ("", "$6::text IS NULL"),
    };
    let count = |table: &str, status: &str| {
        format!(
            "SELECT status, count(*) FILTER (WHERE ($4::text IS NULL OR tool = $4) AND {of_prefix}) AS count,
                    sum(count(*)) OVER () >= $5::bigint AS is_cut FROM
                 (SELECT {status} AS status, tool{target} FROM {table}
                      WHERE ($1::uuid IS NULL OR id >= $1) AND ($2::uuid IS NULL OR id < $2)
                        AND ($3::text IS NULL OR application = $3) ORDER BY id DESC LIMIT $5::bigint) AS latest GROUP BY status"
        )
    };
    let sql = format!("{} UNION ALL {}", count("task", "NULL::text"), count("ended", "status"));
    let values: [&(dyn ToSql + Sync); 6] =
        [&first.map(IdColumn), &end.map(IdColumn), application, tool, &i64::from(*examine), prefix];
    let mut counts = StatusCounts::default();
    for row in rows(client.query(&sql, &values).await)? {
        let status = match get::<Option<&str>>(&row, "status")?.and_then(Phase::parse) {
            Some(Phase::Done(status)) => status,
            _ => TaskStatus::Dispatched,
        };
        counts[status as usize].count = get::<i64>(&row, "count")?.unsigned_abs();
        // No index has the status, so a cut is one of all that have ended.
        for (count, other) in counts.iter_mut().zip(TaskStatus::ALL) {
            count.is_cut |= get::<bool>(&row, "is_cut")? && other.is_terminal() == status.is_terminal();
        }
    }
    Ok(counts)
}

pub(crate) async fn timeline(client: &Client, id: TaskId) -> Result<Vec<TimelineEvent>, StoreError> {
    let sql = "SELECT 0 AS version, created_at AS at, 'ready' AS phase, 'accepted' AS what, false AS is_event
                   FROM (SELECT id, created_at FROM task UNION ALL SELECT id, created_at FROM ended) AS accepted WHERE id = $1
               UNION ALL SELECT version, at, phase, what, is_event FROM event WHERE task = $1 ORDER BY version";
    let broken = |why: String| StoreError::Corrupt(format!("the timeline of {id} cannot be read: {why}"));
    let event = |row: &Row| {
        let (name, what): (&str, String) = (get(row, "phase")?, get(row, "what")?);
        let phase = Phase::parse(name).ok_or_else(|| broken(format!("there is no phase `{name}`")))?.as_str();
        let event = get::<bool>(row, "is_event")?.then(|| json::read(&what).ok()).flatten();
        let what = event.map_or(TimelineEntry::Sentence(what), TimelineEntry::Event);
        Ok(TimelineEvent { at: moment(get(row, "at")?), phase, what })
    };
    rows(client.query(sql, &[&IdColumn(id)]).await)?.iter().map(event).collect()
}

/// Between two reads of the ledger, while a transaction that may add earlier entries is open.
const LEDGER_PAUSE: Duration = Duration::from_millis(20);
const LEDGER_PAUSES: u32 = 50;

/// Returns only entries before which no other can still come, and waits up to a second for them.
pub(crate) async fn ledger(client: &Client, after: u64, limit: u32) -> Result<Vec<LedgerRow>, StoreError> {
    let sql = "SELECT number, task, application, kind, at,
                      number < pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 10 AS is_complete
               FROM ledger WHERE number > $1 ORDER BY number LIMIT $2";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    for pause in 0.. {
        let found = rows(client.query(sql, &[&after, &i64::from(limit)]).await)?;
        let complete = found.iter().take_while(|row| row.try_get("is_complete").unwrap_or(false)).count();
        if complete == found.len() || pause == LEDGER_PAUSES {
            return found.iter().take(complete).map(entry).collect();
        }
        sleep(LEDGER_PAUSE).await;
    }
    Ok(Vec::new())
}

pub(crate) async fn refunds(client: &Client, filter: RefundFilter) -> Result<Vec<LedgerRow>, StoreError> {
    let RefundFilter { application, since, until, before, limit } = filter;
    let of_application = if application.is_some() { "application = $1" } else { "$1::text IS NULL" };
    let sql = format!(
        "SELECT number, task, application, kind, at FROM ledger WHERE kind = 'refund' AND {of_application}
             AND at >= $2 AND at < $3 AND number < $4 ORDER BY number DESC LIMIT $5"
    );
    let (since, until) = (since.map_or(0, millis), until.map_or(i64::MAX, millis));
    let before = before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
    let found = client.query(&sql, &[&application, &since, &until, &before, &i64::from(limit)]).await;
    rows(found)?.iter().map(entry).collect()
}

pub(crate) async fn entries(client: &Client, id: TaskId) -> Result<Vec<LedgerRow>, StoreError> {
    let sql = "SELECT number, task, application, kind, at FROM ledger WHERE task = $1 ORDER BY number";
    rows(client.query(sql, &[&IdColumn(id)]).await)?.iter().map(entry).collect()
}

fn entry(row: &Row) -> Result<LedgerRow, StoreError> {
    let (number, kind): (i64, &str) = (get(row, "number")?, get(row, "kind")?);
    let unknown =
        || StoreError::Corrupt(format!("line {number} of the ledger cannot be read: there is no kind `{kind}`"));
    Ok(LedgerRow {
        number: number.cast_unsigned(),
        id: get::<IdColumn>(row, "task")?.0,
        application: get(row, "application")?,
        kind: Entry::parse_kind(kind).ok_or_else(unknown)?,
        at: moment(get(row, "at")?),
    })
}

pub(crate) async fn marks(
    client: &Client,
    space: &'static str,
    after: Option<Box<[u8]>>,
    limit: u32,
) -> Result<Vec<Box<[u8]>>, StoreError> {
    let sql = "SELECT key FROM mark WHERE space = $1 AND key > $2 ORDER BY key LIMIT $3";
    let found = client.query(sql, &[&space, &after.as_deref().unwrap_or_default(), &i64::from(limit)]).await;
    rows(found)?.iter().map(|row| get::<Vec<u8>>(row, "key").map(Vec::into_boxed_slice)).collect()
}

pub(crate) async fn time(client: &Client) -> Result<Timestamp, StoreError> {
    let found = rows(client.query(&format!("SELECT {NOW} AS now"), &[]).await)?;
    found.first().map_or(Ok(0), |row| get(row, "now")).map(moment)
}
