//! Values of columns: times, ids of tasks, and states.

use crate::connection::unavailable;
use bytes::{BufMut, BytesMut};
use std::error::Error;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_core::store::StoreError;
use toolwarrant_tasks::task::{Task, TaskId, TaskPolicy};

#[derive(Clone, Copy, Debug)]
pub(crate) struct IdColumn(pub(crate) TaskId);

impl ToSql for IdColumn {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0.to_bytes());
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for IdColumn {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(TaskId::from_bytes(raw.try_into()?)))
    }

    accepts!(UUID);
}

pub(crate) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

pub(crate) fn moment(millis: i64) -> Timestamp {
    Timestamp(u64::try_from(millis).unwrap_or(0))
}

pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| StoreError::Corrupt(format!("a row cannot be read: {error}")))
}

pub(crate) fn fingerprint(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes.try_into().map_err(|_| StoreError::Corrupt("a fingerprint does not have 32 bytes".to_owned()))
}

pub(crate) fn write_state(id: TaskId, task: &Task) -> Result<String, StoreError> {
    json(task).map_err(|error| StoreError::Unavailable(format!("the state of {id} cannot be written: {error}")))
}

/// Takes the policy for the state of version 0.
pub(crate) fn read_state(
    id: TaskId,
    version: i32,
    state: &str,
    (created_at, wake_at): (i64, Option<i64>),
) -> Result<Task, StoreError> {
    let broken = |error| StoreError::Corrupt(format!("the state of {id} cannot be read: {error}"));
    if version > 0 {
        return json::read(state).map_err(broken);
    }
    let policy: TaskPolicy = json::read(state).map_err(broken)?;
    let start = moment(wake_at.unwrap_or(created_at));
    Ok(Task::new_delayed(policy, moment(created_at), start))
}

pub(crate) fn json(value: &impl serde::Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value)
}

pub(crate) fn rows(read: Result<Vec<Row>, tokio_postgres::Error>) -> Result<Vec<Row>, StoreError> {
    read.map_err(unavailable)
}
