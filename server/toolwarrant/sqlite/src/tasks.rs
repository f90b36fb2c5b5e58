//! The SQL of tasks, ledger and deduplication keys, inside a transaction that the caller commits.
//! Only one connection writes, so the result of a read still holds when the same transaction
//! writes. Unique indexes are a second guard. Locks of targets are a table in memory, which a start
//! fills from the tasks in flight; only cool-downs are on the disk.

use super::column::{millis, moment, read};
use super::fault::Fault;
use rusqlite::{Connection, OptionalExtension, Row};
use std::borrow::Cow;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_store::CoolDown;
use toolwarrant_tasks::machine::{Entry, TimelineEntry};
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, CallFacts, DeduplicationKey, Identity, LedgerRow, OpenTask, Record, RefundFilter,
    StatusCount, StatusCounts, TaskFilter, TaskRows, TimelineEvent, WriteAnswer, answer_repeat,
};
use toolwarrant_tasks::task::{Phase, Task, TaskId, TaskStatus};

pub(super) fn repeat(db: &Connection, identity: &Identity) -> Result<Option<WriteAnswer>, Fault> {
    let Identity { application, key, fingerprint, resource, target } = identity;
    let found = |row: &Row<'_>| {
        let (id, tool, target, of) = <(_, _, _, [u8; 32])>::try_from(row)?;
        Ok(answer_repeat(TaskId::from_bytes(id), tool, target, of == *fingerprint))
    };
    let found = if let Some(key) = key {
        let sql = "SELECT id, tool, target, fingerprint FROM task
                   WHERE application = ?1 AND idem_key = ?2 AND terminal = 0";
        db.prepare_cached(sql)?.query_row((application, key), found)
    } else {
        let sql = "SELECT id, tool, task.target, fingerprint FROM target_lock JOIN task ON id = task_id
                   WHERE target_lock.resource = ?1 AND target_lock.target = ?2 AND terminal = 0
                         AND application = ?3 AND idem_key IS NULL AND fingerprint = ?4";
        db.prepare_cached(sql)?.query_row((resource, target, application, fingerprint), found)
    };
    Ok(found.optional()?)
}

/// Runs before the writer's turn, because there are many callers and only one writing thread.
pub(super) fn state(id: TaskId, task: &Task) -> Result<String, Fault> {
    serde_json::to_string(task)
        .map_err(|error| Fault::unavailable(format!("the state of {id} cannot be written: {error}")))
}

/// Takes `state`, the state of the task unless the target is cooling down.
pub(super) fn accept(
    db: &Connection,
    new: &Record,
    marks: &[DeduplicationKey],
    state: &str,
) -> Result<Acceptance, Fault> {
    let Record { id, identity, tool, created_at: at, task, sealed, call, .. } = new;
    let call = call.as_ref().map(|CallFacts { request_id, key_id, arguments }| (request_id, key_id, arguments));
    mark(db, marks)?;
    let Identity { application, key, fingerprint, resource, target } = identity;
    let repeated = || Ok::<_, Fault>(repeat(db, identity)?.map(Acceptance::Hit));
    if key.is_some()
        && let Some(hit) = repeated()?
    {
        return Ok(hit);
    }
    let stored = id.to_bytes();
    let take = "INSERT INTO target_lock (resource, target, task_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    if db.prepare_cached(take)?.execute((resource, target, stored))? == 0 {
        return repeated()?.map_or_else(|| busy(db, resource, target), Ok);
    }

    let settling = "SELECT since, until FROM settling WHERE resource = ?1 AND target = ?2";
    let found = |row: &Row<'_>| Ok(CoolDown { since: moment(row.get(0)?), until: moment(row.get(1)?) });
    let cool_down = db.prepare_cached(settling)?.query_row((resource, target), found).optional()?;
    let start = cool_down.map_or(*at, |cool_down| cool_down.start(*at, *at));
    let later = match start == *at {
        true => None,
        false => Some(self::state(*id, &Task::new_delayed(task.policy.clone(), *at, start))?),
    };
    let insert =
        "INSERT INTO task (id, application, idem_key, fingerprint, tool, resource, target, created_at, version,
                                    terminal, wake_at, state, sealed, request_id, key_id, arguments)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, ?9, ?10, ?11, ?12, ?13, ?14)";
    let (created_at, wake_at, state) = (millis(*at), millis(start), later.as_deref().unwrap_or(state));
    let values = rusqlite::params![
        stored,
        application,
        key,
        fingerprint,
        tool,
        resource,
        target,
        created_at,
        wake_at,
        state,
        sealed,
        call.map(|(request_id, ..)| request_id),
        call.map(|(_, key_id, _)| key_id),
        call.and_then(|(.., arguments)| arguments.as_ref())
    ];
    db.prepare_cached(insert)?.execute(values)?;
    Ok(Acceptance::Fresh { wake_at: start })
}

pub(super) fn advance(db: &Connection, advance: &Advance, state: &str) -> Result<Advanced, Fault> {
    let Advance { id, version, task, entries, what, at } = advance;
    let status = task.status().map(TaskStatus::as_str);
    let update = "UPDATE task SET version = version + 1, terminal = ?3, status = ?4, wake_at = ?5, finished_at = ?6,
                                  state = ?7, sealed = iif(?3, NULL, sealed)
                  WHERE id = ?1 AND version = ?2 AND terminal = 0";
    let (wake_at, finished_at) = (task.wake_at.map(millis), task.finished_at.map(millis));
    let stored = id.to_bytes();
    let values = rusqlite::params![stored, version, status.is_some(), status, wake_at, finished_at, state];
    if db.prepare_cached(update)?.execute(values)? == 0 {
        return Ok(Advanced::Fenced);
    }

    let happened =
        "INSERT INTO task_event (task_id, version, at, phase, what, is_event) VALUES (?1, ?2 + 1, ?3, ?4, ?5, ?6)";
    let (what, is_event) = match what {
        TimelineEntry::Sentence(sentence) => (Cow::Borrowed(sentence), false),
        TimelineEntry::Event(noted) => {
            let unwritten = |error| Fault::unavailable(format!("the event of {id} cannot be written: {error}"));
            (Cow::Owned(serde_json::to_string(noted).map_err(unwritten)?), true)
        }
    };
    db.prepare_cached(happened)?.execute((stored, version, millis(*at), task.phase.as_str(), what, is_event))?;
    if status.is_some() {
        let release = "DELETE FROM target_lock
                       WHERE (resource, target) = (SELECT resource, target FROM task WHERE id = ?1) AND task_id = ?1";
        db.prepare_cached(release)?.execute([stored])?;
    }
    for entry in entries {
        if let Entry::Release(until) = entry {
            if until > at {
                let settle = "INSERT OR REPLACE INTO settling (resource, target, since, until)
                              SELECT resource, target, ?2, ?3 FROM task WHERE id = ?1";
                db.prepare_cached(settle)?.execute((stored, millis(*at), millis(*until)))?;
            } else {
                let settled = "DELETE FROM settling
                               WHERE (resource, target) = (SELECT resource, target FROM task WHERE id = ?1)";
                db.prepare_cached(settled)?.execute([stored])?;
            }
        }
        if let Some(kind) = entry.kind() {
            let enter = "INSERT INTO ledger (task_id, application, kind, at)
                         SELECT id, application, ?2, ?3 FROM task WHERE id = ?1
                         ON CONFLICT (task_id, kind) DO NOTHING";
            if db.prepare_cached(enter)?.execute((stored, kind, millis(*at)))? == 0 {
                return Err(Fault::conflict(format!("the ledger has a {kind} of {id} already")));
            }
        }
    }
    Ok(Advanced::Written)
}

pub(super) fn in_flight(db: &Connection, after: Option<TaskId>, limit: u32) -> Result<Vec<OpenTask>, Fault> {
    let sql = "SELECT id, application, idem_key, fingerprint, resource, target, wake_at, tool, sealed FROM task
               WHERE terminal = 0 AND id > ifnull(?1, x'') ORDER BY id LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let open = |row: &Row<'_>| {
        let (id, application, key, fingerprint, resource, target, wake_at, tool, sealed) = row.try_into()?;
        let identity = Identity { application, key, fingerprint, resource, target };
        Ok(OpenTask { id: TaskId::from_bytes(id), identity, tool, sealed, wake_at: Option::map(wake_at, moment) })
    };
    select.query_and_then((after.map(TaskId::to_bytes), limit), |row| read("task", row, open))?.collect()
}

const RECORD: &str = "SELECT id, application, iif(terminal, NULL, idem_key), iif(terminal, zeroblob(32), fingerprint),
                             resource, target, tool, created_at, version, state, sealed,
                             request_id, key_id, arguments, (SELECT at FROM ledger WHERE task_id = task.id AND kind = 'refund')
                      FROM task";

type Columns = (
    [u8; 16],
    String,
    Option<String>,
    [u8; 32],
    String,
    String,
    String,
    i64,
    u32,
    String,
    Option<Vec<u8>>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<i64>,
);

pub(super) fn task(db: &Connection, id: TaskId) -> Result<Option<Record>, Fault> {
    let mut select = db.prepare_cached(&format!("{RECORD} WHERE id = ?1"))?;
    let row = select.query_and_then([id.to_bytes()], |row| read("task", row, |row| row.try_into()))?.next();
    row.transpose()?.map(record).transpose()
}

/// Returns SQL that uses an index: of the application, of tasks in flight, or of ids. Every id is
/// below a blob of 17 bytes.
pub(super) fn list(filter: &TaskFilter) -> String {
    let application = if filter.application.is_some() { "application = ?1" } else { "?1 IS NULL" };
    let status = match filter.statuses[..] {
        [TaskStatus::Dispatched] => "AND terminal = 0".to_owned(),
        [status] => format!("AND terminal = 1 AND status = '{}'", status.as_str()),
        _ => String::new(),
    };
    format!(
        "SELECT id, tool, resource, target, status FROM task WHERE {application} {status} AND id >= ifnull(?2, x'')
                  AND id < ifnull(?3, x'ffffffffffffffffffffffffffffffffff') ORDER BY id DESC"
    )
}

pub(super) fn tasks(db: &Connection, filter: &TaskFilter) -> Result<TaskRows, Fault> {
    let TaskFilter { application, limit, examine, .. } = filter;
    let (first, end) = filter.ids();
    let mut select = db.prepare_cached(&list(filter))?;
    let mut rows = select.query((application, first.map(TaskId::to_bytes), end.map(TaskId::to_bytes)))?;
    let mut found = TaskRows::default();
    let mut last = None;
    while let Some(row) = rows.next()? {
        if found.records.len() == *limit as usize || found.examined == *examine {
            found.next = last;
            break;
        }
        found.examined += 1;
        let text = |column| row.get_ref(column).and_then(|value| Ok(value.as_str()?));
        let id = TaskId::from_bytes(row.get(0)?);
        last = Some(id);
        let status = match row.get_ref(4)?.as_str_or_null().ok().flatten().and_then(Phase::parse) {
            Some(Phase::Done(status)) => status,
            _ => TaskStatus::Dispatched,
        };
        if filter.admits(text(1)?, text(2)?, text(3)?, status) {
            found.records.extend(task(db, id)?);
        }
    }
    Ok(found)
}

/// Reads the indices alone, unless it needs the targets.
pub(super) fn count(db: &Connection, filter: &TaskFilter) -> Result<StatusCounts, Fault> {
    let (first, end) = filter.ids();
    let count_of = |status: &TaskStatus| {
        let of_status = match status.is_terminal() {
            true => "terminal = 1 AND status = ?5",
            false => "terminal = 0 AND ?5 IS NOT NULL",
        };
        let (target, of_prefix) = match filter.prefix {
            Some(_) => (", target", "substr(target, 1, length(?7)) = ?7"),
            None => ("", "?7 IS NULL"),
        };
        let sql = format!(
            "SELECT count(*) FILTER (WHERE (?3 IS NULL OR application = ?3) AND (?4 IS NULL OR tool = ?4) AND {of_prefix}),
                    count(*) >= ?6 FROM (SELECT application, tool{target} FROM task WHERE {of_status} AND id >= ifnull(?1, x'')
                      AND id < ifnull(?2, x'ffffffffffffffffffffffffffffffffff') ORDER BY id DESC LIMIT ?6)"
        );
        let TaskFilter { application, tool, prefix, examine, .. } = filter;
        let (first, end) = (first.map(TaskId::to_bytes), end.map(TaskId::to_bytes));
        let values = (first, end, application, tool, status.as_str(), examine, prefix);
        let (count, is_cut) = db.prepare_cached(&sql)?.query_row(values, |row| <(i64, bool)>::try_from(row))?;
        Ok::<_, Fault>(StatusCount { count: count.unsigned_abs(), is_cut })
    };
    let mut counts = StatusCounts::default();
    for (count, status) in counts.iter_mut().zip(TaskStatus::ALL) {
        *count = count_of(status)?;
    }
    Ok(counts)
}

pub(super) fn refunds(db: &Connection, filter: &RefundFilter) -> Result<Vec<LedgerRow>, Fault> {
    let RefundFilter { application, since, until, before, limit } = filter;
    let of_application = if application.is_some() { "application = ?1" } else { "?1 IS NULL" };
    let sql = format!(
        "SELECT number, task_id, application, kind, at FROM ledger WHERE kind = 'refund' AND {of_application}
             AND at >= ?2 AND at < ?3 AND number < ?4 ORDER BY number DESC LIMIT ?5"
    );
    let (since, until) = (since.map_or(0, millis), until.map_or(i64::MAX, millis));
    let before = before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
    let mut select = db.prepare_cached(&sql)?;
    let rows = select.query_map((application, since, until, before, limit), |row| row.try_into())?;
    rows.map(|row| entry(row?)).collect()
}

fn record(columns: Columns) -> Result<Record, Fault> {
    let (
        id,
        application,
        key,
        fingerprint,
        resource,
        target,
        tool,
        created_at,
        version,
        state,
        sealed,
        request,
        key_id,
        arguments,
        refunded_at,
    ) = columns;
    let facts = |(request_id, key_id)| CallFacts { request_id, key_id, arguments };
    let call = Option::zip(request, key_id).map(facts);
    let (id, identity) = (TaskId::from_bytes(id), Identity { application, key, fingerprint, resource, target });
    let (created_at, refunded_at, task) = (moment(created_at), refunded_at.map(moment), parse(id, &state)?);
    Ok(Record { id, identity, tool, created_at, version, task, sealed, refunded_at, call })
}

pub(super) fn timeline(db: &Connection, id: TaskId) -> Result<Vec<TimelineEvent>, Fault> {
    let sql = "SELECT at, phase, what, is_event FROM
               (SELECT 0 AS version, created_at AS at, 'ready' AS phase, 'accepted' AS what, 0 AS is_event FROM task WHERE id = ?1
                UNION ALL SELECT version, at, phase, what, is_event FROM task_event WHERE task_id = ?1)
               ORDER BY version";
    let mut select = db.prepare_cached(sql)?;
    let rows = select.query_map([id.to_bytes()], |row| <(i64, String, String, bool)>::try_from(row))?;
    let broken = |why: String| Fault::corrupt(format!("the timeline of {id} cannot be read: {why}"));
    rows.map(|row| {
        let (at, name, what, is_event) = row.map_err(|error| broken(error.to_string()))?;
        let phase = Phase::parse(&name).ok_or_else(|| broken(format!("there is no phase `{name}`")))?.as_str();
        let event = is_event.then(|| json::read(&what).ok()).flatten();
        Ok(TimelineEvent {
            at: moment(at),
            phase,
            what: event.map_or(TimelineEntry::Sentence(what), TimelineEntry::Event),
        })
    })
    .collect()
}

pub(super) fn ledger(db: &Connection, after: u64, limit: u32) -> Result<Vec<LedgerRow>, Fault> {
    let sql = "SELECT number, task_id, application, kind, at FROM ledger WHERE number > ?1 ORDER BY number LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = select.query_map((after, limit), |row| row.try_into())?;
    rows.map(|row| entry(row?)).collect()
}

pub(super) fn entries(db: &Connection, id: TaskId) -> Result<Vec<LedgerRow>, Fault> {
    let sql = "SELECT number, task_id, application, kind, at FROM ledger WHERE task_id = ?1 ORDER BY number";
    let mut select = db.prepare_cached(sql)?;
    let rows = select.query_map([id.to_bytes()], |row| row.try_into())?;
    rows.map(|row| entry(row?)).collect()
}

fn entry((number, id, application, kind, at): (i64, [u8; 16], String, String, i64)) -> Result<LedgerRow, Fault> {
    let unknown = || Fault::corrupt(format!("line {number} of the ledger cannot be read: there is no kind `{kind}`"));
    let kind = Entry::parse_kind(&kind).ok_or_else(unknown)?;
    let number = u64::try_from(number).unwrap_or(0);
    Ok(LedgerRow { number, id: TaskId::from_bytes(id), application, kind, at: moment(at) })
}

/// Deletes timelines with their tasks, and the `surplus` tasks that ended first regardless of age.
pub(super) fn purge(db: &Connection, before: Timestamp, limit: u32, surplus: u32) -> Result<u32, Fault> {
    let old = "DELETE FROM task WHERE id IN
               (SELECT id FROM task WHERE terminal = 1 AND finished_at < ?1 ORDER BY finished_at, id LIMIT ?2)";
    let mut purged = db.prepare_cached(old)?.execute((millis(before), limit))?;
    if purged == 0 && surplus > 0 {
        purged = db.prepare_cached(old)?.execute((i64::MAX, surplus))?;
    }
    Ok(u32::try_from(purged).unwrap_or(u32::MAX))
}

pub(super) fn mark(db: &Connection, marks: &[DeduplicationKey]) -> Result<(), Fault> {
    let insert = "INSERT INTO mark (space, key, until) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    for DeduplicationKey { space, key, until } in marks {
        if db.prepare_cached(insert)?.execute((space, key, millis(*until)))? == 0 {
            return Err(Fault::conflict(format!("a deduplication key of `{space}` exists already")));
        }
    }
    Ok(())
}

pub(super) fn marks(db: &Connection, space: &str, after: Option<&[u8]>, limit: u32) -> Result<Vec<Box<[u8]>>, Fault> {
    let sql = "SELECT key FROM mark WHERE space = ?1 AND key > ifnull(?2, x'') ORDER BY key LIMIT ?3";
    let mut select = db.prepare_cached(sql)?;
    let rows = select.query_map((space, after, limit), |row| row.get::<_, Vec<u8>>(0))?;
    Ok(rows.map(|key| key.map(Vec::into_boxed_slice)).collect::<Result<_, _>>()?)
}

pub(super) fn purge_marks(db: &Connection, now: Timestamp, limit: u32) -> Result<u32, Fault> {
    let sql = "DELETE FROM mark WHERE (space, key) IN
               (SELECT space, key FROM mark WHERE until < ?1 ORDER BY until, space, key LIMIT ?2)";
    let purged = db.prepare_cached(sql)?.execute((millis(now), limit))?;
    Ok(u32::try_from(purged).unwrap_or(u32::MAX))
}

fn busy(db: &Connection, resource: &str, target: &str) -> Result<Acceptance, Fault> {
    let sql = "SELECT id, application, state FROM target_lock JOIN task ON id = task_id
               WHERE target_lock.resource = ?1 AND target_lock.target = ?2";
    let row =
        db.prepare_cached(sql)?.query_row((resource, target), |row| <(_, _, String)>::try_from(row)).optional()?;
    let gone = || Fault::corrupt(format!("the lock of the {resource} {target} is held by a task that does not exist"));
    let (id, application, state) = row.ok_or_else(gone)?;
    let id = TaskId::from_bytes(id);
    let deadline_at = parse(id, &state)?.deadline_at;
    Ok(Acceptance::Busy { id, application, deadline_at })
}

fn parse(id: TaskId, state: &str) -> Result<Task, Fault> {
    json::read(state).map_err(|error| Fault::corrupt(format!("the state of {id} cannot be read: {error}")))
}
