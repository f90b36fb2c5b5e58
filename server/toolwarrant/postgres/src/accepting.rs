//! Acceptance: many tasks, or deduplication keys alone, in one statement.
//!
//! The statement takes a target by one row, which is its lock and its cool-down. It must not read
//! the cool-down in the snapshot of a statement that has waited for the lock. If it has taken a
//! target and made no task, it fails by a division by zero: the key was given away on another
//! target at the same moment.
//!
//! `OFFSET 0` keeps a look for one row apart. In a join, a plan that was made while `task` was
//! small would compare all tasks with the batch.
//!
//! A task that was called long ago still starts after the cool-down: the limit for clocks that went
//! back counts from the time of the server.

use crate::column::{IdColumn, get, json, millis, moment, read_state};
use crate::connection::{describe, unavailable};
use crate::lane::{Parameter, Work, column};
use crate::runs::NOW;
use std::collections::HashMap;
use std::sync::LazyLock;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row};
use toolwarrant_core::store::StoreError;
use toolwarrant_tasks::store::{Acceptance, CallFacts, DeduplicationKey, Record, answer_repeat};
use toolwarrant_tasks::task::TaskId;

pub(crate) struct Accepting;

pub(crate) struct Accept {
    pub(crate) task: Option<Record>,
    pub(crate) marks: Vec<DeduplicationKey>,
}

static SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        ",
    input AS MATERIALIZED (
        SELECT given.* FROM turn, unnest($4::uuid[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::text[], $10::text[],
                                         $11::bigint[], $12::bytea[], $13::text[], $14::text[], $15::text[], $16::text[])
            AS given (id, application, idem_key, fingerprint, tool, resource, target, created_at, sealed, state, request_id,
                      key_id, arguments)),
    marked AS (
        INSERT INTO mark (space, key, until)
        SELECT given.* FROM turn, unnest($17::text[], $18::bytea[], $19::bigint[]) AS given),
    held AS MATERIALIZED (
        SELECT input.id AS asked, known.* FROM input, LATERAL (
            SELECT id, tool, target, fingerprint FROM task
                WHERE application = input.application AND idem_key = input.idem_key OFFSET 0) AS known),
    taken AS (
        INSERT INTO target (resource, target, task)
        SELECT resource, target, id FROM input WHERE NOT EXISTS (SELECT FROM held WHERE asked = input.id)
            ORDER BY target, resource
        ON CONFLICT (target, resource) DO UPDATE SET task = excluded.task WHERE target.task IS NULL
        RETURNING task, since, until),
    made AS (
        INSERT INTO task (id, created_at, fingerprint, application, tool, resource, target, idem_key, request_id, key_id,
                          arguments, sealed, version, wake_at, state)
        SELECT id, created_at, fingerprint, application, tool, resource, target, idem_key, request_id, key_id,
               arguments, sealed, 0,
               CASE WHEN until IS NULL THEN created_at
                    ELSE greatest(created_at, least(
                        until, greatest(created_at, {NOW})
                             + greatest(until - since, 0) + 60000)) END,
               state
            FROM input JOIN taken ON taken.task = input.id
        ON CONFLICT DO NOTHING RETURNING id, wake_at)
    SELECT turn.one, made.wake_at, held.id AS held, held.tool AS held_tool, held.target AS held_target,
           held.fingerprint AS held_fingerprint, input.id AS asked, holder.*
        FROM turn LEFT JOIN input ON true LEFT JOIN made ON made.id = input.id LEFT JOIN held ON held.asked = input.id
        LEFT JOIN LATERAL (
            SELECT task.id AS holder, task.application AS holder_application, task.idem_key AS holder_key,
                   task.tool AS holder_tool, task.target AS holder_target, task.fingerprint AS holder_fingerprint,
                   task.version AS holder_version, task.state AS holder_state, task.created_at AS holder_created_at,
                   task.wake_at AS holder_wake_at
                FROM target, LATERAL (SELECT * FROM task WHERE id = target.task OFFSET 0) AS task
                WHERE made.id IS NULL AND target.target = input.target AND target.resource = input.resource OFFSET 0) holder ON true
        WHERE 1 / (CASE WHEN (SELECT count(*) FROM taken) = (SELECT count(*) FROM made) THEN 1 ELSE 0 END) = 1"
    )
});

impl Work for Accepting {
    type Request = Accept;
    type Answer = Option<Acceptance>;

    fn sql(_: &[&Accept]) -> String {
        SQL.clone()
    }

    fn parameters(batch: &[&Accept]) -> Vec<Parameter> {
        let mut tasks: Vec<&Record> = batch.iter().filter_map(|accept| accept.task.as_ref()).collect();
        // Two statements that take targets in this order do not wait for each other.
        tasks.sort_by_key(|task| (&task.identity.target, &task.identity.resource));
        let marks: Vec<_> = batch.iter().flat_map(|accept| &accept.marks).collect();
        let call = |of: fn(&CallFacts) -> Option<String>| column(&tasks, move |task| task.call.as_ref().and_then(of));
        vec![
            column(&tasks, |task| IdColumn(task.id)),
            column(&tasks, |task| task.identity.application.clone()),
            column(&tasks, |task| task.identity.key.clone()),
            column(&tasks, |task| task.identity.fingerprint.to_vec()),
            column(&tasks, |task| task.tool.clone()),
            column(&tasks, |task| task.identity.resource.clone()),
            column(&tasks, |task| task.identity.target.clone()),
            column(&tasks, |task| millis(task.created_at)),
            column(&tasks, |task| task.sealed.clone()),
            column(&tasks, |task| json(&task.task.policy).unwrap_or_default()),
            call(|call| Some(call.request_id.clone())),
            call(|call| Some(call.key_id.clone())),
            call(|call| call.arguments.clone()),
            column(&marks, |mark| mark.space.to_owned()),
            column(&marks, |mark| mark.key.to_vec()),
            column(&marks, |mark| millis(mark.until)),
        ]
    }

    fn names(Accept { task, marks, .. }: &Accept) -> Vec<String> {
        let marks = marks.iter().map(|mark| format!("mark {} {:?}", mark.space, mark.key));
        let task = task.iter().flat_map(|Record { id, identity, .. }| {
            let key = identity.key.as_ref().map(|key| format!("key {} {key}", identity.application));
            [Some(format!("id {id}")), Some(format!("target {} {}", identity.resource, identity.target)), key]
        });
        marks.chain(task.flatten()).collect()
    }

    fn answers(batch: &[&Accept], rows: &[Row]) -> Vec<Option<Result<Option<Acceptance>, StoreError>>> {
        let asked = |row: &'_ Row| row.try_get::<_, Option<IdColumn>>("asked").ok().flatten();
        let rows: HashMap<TaskId, &Row> = rows.iter().filter_map(|row| Some((asked(row)?.0, row))).collect();
        let answer_one = |Accept { task, .. }: &&Accept| {
            let Some(task) = task else { return Some(Ok(None)) };
            let answer = rows.get(&task.id).and_then(|row| answer(task, row).transpose());
            answer.map(|answer| answer.map(Some))
        };
        batch.iter().map(answer_one).collect()
    }

    // Otherwise its own keys would refuse it.
    fn note_landing(Accept { marks, .. }: &mut Accept) {
        marks.clear();
    }

    async fn recall(client: &Client, Accept { task, .. }: &Accept) -> Result<Option<Acceptance>, StoreError> {
        let Some(task) = task else { return Ok(None) };
        let sql = "SELECT wake_at FROM task WHERE id = $1 AND version = 0
                   UNION ALL SELECT created_at FROM task WHERE id = $1 AND version > 0
                   UNION ALL SELECT created_at FROM ended WHERE id = $1";
        let unknown = |error| StoreError::Unanswered(unavailable(error).to_string());
        match client.query_opt(sql, &[&IdColumn(task.id)]).await.map_err(unknown)? {
            Some(row) => Ok(Some(Acceptance::Fresh { wake_at: moment(row.get(0)) })),
            None => Err(StoreError::Unavailable("the write was not accepted, and the reason was lost".to_owned())),
        }
    }

    fn refusal(Accept { task, marks, .. }: &Accept, error: &Error) -> Option<StoreError> {
        let said = error.as_db_error()?;
        match (said.constraint(), said.code()) {
            (Some("mark_pkey"), _) => {
                let space = marks.first().map_or("", |mark| mark.space);
                Some(StoreError::Conflict(format!("a deduplication key of `{space}` exists already")))
            }
            (_, &SqlState::DIVISION_BY_ZERO) => None,
            (_, &SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE) => None,
            _ => {
                let id = task.as_ref().map(|task| task.id.to_string()).unwrap_or_default();
                Some(StoreError::Unavailable(format!("the task {id} cannot be stored: {}", describe(error))))
            }
        }
    }

    fn failure(Accept { task, .. }: &Accept) -> StoreError {
        let id = task.as_ref().map(|task| task.id.to_string()).unwrap_or_default();
        StoreError::Conflict(format!("there is a task {id} already"))
    }
}

/// Returns `None` if the row does not say who holds the target.
fn answer(new: &Record, row: &Row) -> Result<Option<Acceptance>, StoreError> {
    if let Some(wake_at) = get::<Option<i64>>(row, "wake_at")? {
        return Ok(Some(Acceptance::Fresh { wake_at: moment(wake_at) }));
    }
    let duplicate = |id: TaskId, prefix: &str| {
        let column = |name: &str| format!("{prefix}_{name}");
        let matches = get::<&[u8]>(row, &column("fingerprint"))? == new.identity.fingerprint;
        let (tool, target) = (get(row, &column("tool"))?, get(row, &column("target"))?);
        Ok::<_, StoreError>(Acceptance::Hit(answer_repeat(id, tool, target, matches)))
    };
    if let Some(IdColumn(id)) = get::<Option<IdColumn>>(row, "held")? {
        return duplicate(id, "held").map(Some);
    }
    let Some(IdColumn(id)) = get::<Option<IdColumn>>(row, "holder")? else { return Ok(None) };
    let application: String = get(row, "holder_application")?;
    let (key, asked) = (get::<Option<String>>(row, "holder_key")?, &new.identity);
    let is_same = key.is_none() && asked.key.is_none() && application == asked.application;
    if is_same && get::<&[u8]>(row, "holder_fingerprint")? == asked.fingerprint {
        return duplicate(id, "holder").map(Some);
    }
    let times = (get(row, "holder_created_at")?, get(row, "holder_wake_at")?);
    let task = read_state(id, get(row, "holder_version")?, get(row, "holder_state")?, times)?;
    Ok(Some(Acceptance::Busy { id, application, deadline_at: task.deadline_at }))
}
