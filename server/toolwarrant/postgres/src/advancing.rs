//! Steps: many tasks move to their next versions in one statement. A task that ends moves from
//! `task` to `ended`, without its arguments, and frees its target.

use crate::column::{IdColumn, get, json, millis, write_state};
use crate::connection::{describe, unavailable};
use crate::lane::{Parameter, Work, column};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row};
use toolwarrant_core::store::StoreError;
use toolwarrant_tasks::machine::{Entry, TimelineEntry};
use toolwarrant_tasks::store::{Advance, Advanced};
use toolwarrant_tasks::task::TaskStatus;

pub(crate) struct Advancing;

pub(crate) struct Advancement {
    step: Advance,
    state: String,
    what: String,
}

impl Advancement {
    pub(crate) fn new(step: Advance) -> Result<Self, StoreError> {
        let state = write_state(step.id, &step.task)?;
        let what = match &step.what {
            TimelineEntry::Sentence(sentence) => sentence.clone(),
            TimelineEntry::Event(noted) => json(noted).map_err(|error| {
                StoreError::Unavailable(format!("the event of {} cannot be written: {error}", step.id))
            })?,
        };
        Ok(Self { step, state, what })
    }

    fn release(&self) -> Option<i64> {
        self.step.entries.iter().find_map(|entry| match entry {
            Entry::Release(until) => Some(millis(*until)),
            _ => None,
        })
    }
}

/// A plan that was made while `task` was small would go through all tasks for each step. These
/// conditions leave it only the index by id: no other one has the id as a key, and `ANY` rules out
/// a join of sorted or hashed rows.
const SQL: &str = ",
    input AS MATERIALIZED (
        SELECT given.* FROM turn, unnest($4::uuid[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::text[], $10::text[],
                                         $11::boolean[], $12::text[], $13::bigint[], $14::bigint[])
            AS given (id, version, wake_at, state, at, phase, what, is_event, status, finished_at, release)),
    stepped AS (
        UPDATE task SET version = task.version + 1, wake_at = input.wake_at, state = input.state FROM input
            WHERE input.status IS NULL AND task.id = ANY (ARRAY[input.id]) AND task.version = input.version
        RETURNING task.id, task.application, task.version),
    gone AS (
        DELETE FROM task USING input
            WHERE input.status IS NOT NULL AND task.id = ANY (ARRAY[input.id]) AND task.version = input.version
        RETURNING task.*),
    kept AS (
        INSERT INTO ended (id, created_at, finished_at, application, tool, resource, target, request_id, key_id, arguments,
                           version, status, state)
        SELECT gone.id, gone.created_at, input.finished_at, gone.application, gone.tool, gone.resource, gone.target,
               gone.request_id, gone.key_id, gone.arguments, gone.version + 1, input.status, input.state
            FROM gone JOIN input ON input.id = gone.id),
    freed AS (
        UPDATE target SET task = NULL,
               since = CASE WHEN input.release IS NULL THEN target.since WHEN input.release > input.at THEN input.at END,
               until = CASE WHEN input.release IS NULL THEN target.until WHEN input.release > input.at THEN input.release END
            FROM gone JOIN input ON input.id = gone.id
            WHERE target.target = ANY (ARRAY[gone.target]) AND target.resource = gone.resource AND target.task = gone.id),
    moved AS (
        SELECT id, application, version FROM stepped UNION ALL SELECT id, application, version + 1 FROM gone),
    happened AS (
        INSERT INTO event (task, version, at, phase, what, is_event)
        SELECT moved.id, moved.version, input.at, input.phase, input.what, input.is_event
            FROM input JOIN moved ON moved.id = input.id),
    booked AS (
        INSERT INTO ledger (task, kind, application, at, number)
        SELECT entry.task, entry.kind, moved.application, entry.at,
               (pg_current_xact_id()::text::bigint << 10) | entry.place
            FROM unnest($15::uuid[], $16::text[], $17::bigint[], $18::bigint[]) AS entry (task, kind, at, place)
            JOIN moved ON moved.id = entry.task)
    SELECT turn.one, moved.id FROM turn LEFT JOIN moved ON true";

impl Work for Advancing {
    type Request = Advancement;
    type Answer = Advanced;

    fn sql(_: &[&Advancement]) -> String {
        SQL.to_owned()
    }

    fn parameters(batch: &[&Advancement]) -> Vec<Parameter> {
        // Two replicas may end tasks whose targets follow each other, so both go by the id.
        let mut batch = batch.to_vec();
        batch.sort_by_key(|one| one.step.id);
        let entries = batch.iter().flat_map(|one| {
            let kinds = one.step.entries.iter().filter_map(|entry| entry.kind());
            kinds.map(|kind| (one.step.id, kind, millis(one.step.at)))
        });
        let entries: Vec<_> = (0_i64..).zip(entries).collect();
        vec![
            column(&batch, |one| IdColumn(one.step.id)),
            column(&batch, |one| i64::from(one.step.version)),
            column(&batch, |one| one.step.task.wake_at.map(millis)),
            column(&batch, |one| one.state.clone()),
            column(&batch, |one| millis(one.step.at)),
            column(&batch, |one| one.step.task.phase.as_str().to_owned()),
            column(&batch, |one| one.what.clone()),
            column(&batch, |one| matches!(one.step.what, TimelineEntry::Event(_))),
            column(&batch, |one| one.step.task.status().map(TaskStatus::as_str)),
            column(&batch, |one| one.step.task.finished_at.map(millis)),
            column(&batch, |one| one.release()),
            column(&entries, |(_, (id, ..))| IdColumn(*id)),
            column(&entries, |(_, (_, kind, _))| (*kind).to_owned()),
            column(&entries, |(_, (.., at))| *at),
            column(&entries, |(place, _)| *place),
        ]
    }

    fn names(one: &Advancement) -> Vec<String> {
        vec![one.step.id.to_string()]
    }

    fn answers(batch: &[&Advancement], rows: &[Row]) -> Vec<Option<Result<Advanced, StoreError>>> {
        let moved: Vec<_> =
            rows.iter().filter_map(|row| get::<Option<IdColumn>>(row, "id").ok()?).map(|id| id.0).collect();
        let answer = |one: &&Advancement| match moved.contains(&one.step.id) {
            true => Advanced::Written,
            false => Advanced::Fenced,
        };
        batch.iter().map(|one| Some(Ok(answer(one)))).collect()
    }

    async fn recall(client: &Client, one: &Advancement) -> Result<Advanced, StoreError> {
        let sql = "SELECT 1 FROM task WHERE id = $1 AND version = $2
                   UNION ALL SELECT 1 FROM ended WHERE id = $1 AND version = $2";
        let version = i32::try_from(one.step.version.saturating_add(1)).unwrap_or(i32::MAX);
        let found = client.query(sql, &[&IdColumn(one.step.id), &version]).await;
        // Only this process moves tasks, and no next step begins before this answer.
        let unknown = |error| StoreError::Unanswered(unavailable(error).to_string());
        Ok(if found.map_err(unknown)?.is_empty() { Advanced::Fenced } else { Advanced::Written })
    }

    fn refusal(one: &Advancement, error: &Error) -> Option<StoreError> {
        let said = error.as_db_error()?;
        let id = one.step.id;
        match (said.constraint(), said.code()) {
            (Some("ledger_pkey"), _) => {
                let kinds: Vec<_> = one.step.entries.iter().filter_map(|entry| entry.kind()).collect();
                Some(StoreError::Conflict(format!("the ledger has a {} of {id} already", kinds.join(" or "))))
            }
            (_, &SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE) => None,
            _ => Some(StoreError::Unavailable(format!("the step of {id} cannot be stored: {}", describe(error)))),
        }
    }
}
