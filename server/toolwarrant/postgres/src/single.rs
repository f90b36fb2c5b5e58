//! Writes that are seldom: each is a batch of its own.

use crate::connection::describe;
use crate::lane::{Parameter, Work};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row};
use toolwarrant_core::store::StoreError;

pub(crate) struct Single;

/// The statement ends with rows of `turn.one` and a number, the `answer`.
pub(crate) struct WriteStatement {
    pub(crate) sql: String,
    pub(crate) parameters: Box<dyn Fn() -> Vec<Parameter> + Send + Sync>,
    /// By the name of the violated constraint, or else by the code of the error.
    pub(crate) conflicts: Vec<(&'static str, String)>,
}

impl WriteStatement {
    pub(crate) fn new(sql: impl Into<String>, parameters: impl Fn() -> Vec<Parameter> + Send + Sync + 'static) -> Self {
        Self { sql: sql.into(), parameters: Box::new(parameters), conflicts: Vec::new() }
    }
}

impl Work for Single {
    type Request = WriteStatement;
    type Answer = Vec<i64>;

    fn sql(batch: &[&WriteStatement]) -> String {
        batch.iter().map(|write| &*write.sql).collect()
    }

    fn parameters(batch: &[&WriteStatement]) -> Vec<Parameter> {
        batch.iter().flat_map(|write| (write.parameters)()).collect()
    }

    fn names(_: &WriteStatement) -> Vec<String> {
        Vec::new()
    }

    fn is_alone(_: &WriteStatement) -> bool {
        true
    }

    fn answers(_: &[&WriteStatement], rows: &[Row]) -> Vec<Option<Result<Vec<i64>, StoreError>>> {
        vec![Some(Ok(rows.iter().filter_map(|row| row.try_get("answer").ok()?).collect()))]
    }

    // It has landed, and no writer needs more than that.
    async fn recall(_: &Client, _: &WriteStatement) -> Result<Vec<i64>, StoreError> {
        Ok(Vec::new())
    }

    fn refusal(WriteStatement { conflicts, .. }: &WriteStatement, error: &Error) -> Option<StoreError> {
        let said = error.as_db_error()?;
        let violated = said.constraint().unwrap_or(said.code().code());
        if let Some((_, why)) = conflicts.iter().find(|(name, _)| *name == violated) {
            return Some(StoreError::Conflict(why.clone()));
        }
        match *said.code() {
            SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE => None,
            _ => Some(StoreError::Unavailable(format!("PostgreSQL: {}", describe(error)))),
        }
    }
}
