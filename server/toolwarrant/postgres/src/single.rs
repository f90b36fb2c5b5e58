//! Writes that are seldom: each is a batch of its own, but documents share one.

use crate::connection::describe;
use crate::documents::{PUT, SpacedDocument, put_parameters};
use crate::lane::{Parameter, Work};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row};
use toolwarrant_core::store::StoreError;

/// Carries out one write at a time, or puts the documents of many requests.
pub(crate) struct Single;

/// A request.
pub(crate) enum SingleRequest {
    Write(Write),
    /// Puts documents. The answer has the places of those that were put, from 1.
    Put(Vec<SpacedDocument>),
}

/// A write. Its statement ends with rows of `turn.one` and a number, the `answer`.
pub(crate) struct Write {
    pub(crate) sql: String,
    pub(crate) parameters: Box<dyn Fn() -> Vec<Parameter> + Send + Sync>,
    /// The conflict that the violation of a constraint stands for, by its name.
    pub(crate) conflicts: Vec<(&'static str, String)>,
}

impl Write {
    /// Returns a write that conflicts with nothing.
    pub(crate) fn new(sql: impl Into<String>, parameters: impl Fn() -> Vec<Parameter> + Send + Sync + 'static) -> Self {
        Self { sql: sql.into(), parameters: Box::new(parameters), conflicts: Vec::new() }
    }
}

impl SingleRequest {
    fn documents(&self) -> &[SpacedDocument] {
        match self {
            Self::Write(_) => &[],
            Self::Put(documents) => documents,
        }
    }
}

impl Work for Single {
    type Request = SingleRequest;
    type Answer = Vec<i64>;

    fn sql(batch: &[&SingleRequest]) -> String {
        match batch {
            [SingleRequest::Write(write), ..] => write.sql.clone(),
            _ => PUT.to_owned(),
        }
    }

    fn parameters(batch: &[&SingleRequest]) -> Vec<Parameter> {
        match batch {
            [SingleRequest::Write(write), ..] => (write.parameters)(),
            puts => put_parameters(&puts.iter().flat_map(|put| put.documents()).collect::<Vec<_>>()),
        }
    }

    fn names(request: &SingleRequest) -> Vec<String> {
        request.documents().iter().map(|(space, document)| format!("{space} {}", document.key)).collect()
    }

    fn is_alone(request: &SingleRequest) -> bool {
        matches!(request, SingleRequest::Write(_))
    }

    fn answers(batch: &[&SingleRequest], rows: &[Row]) -> Vec<Option<Result<Vec<i64>, StoreError>>> {
        let answers: Vec<i64> = rows.iter().filter_map(|row| row.try_get("answer").ok()?).collect();
        if let [SingleRequest::Write(_)] = batch {
            return vec![Some(Ok(answers))];
        }
        let mut before = 0;
        let places = batch.iter().map(|put| {
            let count = put.documents().len() as i64;
            let own = answers.iter().map(|place| place - before).filter(|place| (1..=count).contains(place)).collect();
            before += count;
            Some(Ok(own))
        });
        places.collect()
    }

    async fn recall(_: &Client, _: &SingleRequest) -> Result<Vec<i64>, StoreError> {
        Err(StoreError::Unavailable("the write has landed, and its answer was lost".to_owned()))
    }

    fn refusal(request: &SingleRequest, error: &Error) -> Option<StoreError> {
        let said = error.as_db_error()?;
        if let SingleRequest::Write(Write { conflicts, .. }) = request
            && let Some((_, why)) = conflicts.iter().find(|(name, _)| said.constraint() == Some(name))
        {
            return Some(StoreError::Conflict(why.clone()));
        }
        match *said.code() {
            SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE => None,
            _ => Some(StoreError::Unavailable(format!("PostgreSQL: {}", describe(error)))),
        }
    }
}
