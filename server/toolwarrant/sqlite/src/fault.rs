//! The failures of requests, made from the errors of SQLite.

use toolwarrant_core::store::StoreError;

/// A [`StoreError`] that `?` makes from an SQLite error.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Fault(pub(super) StoreError);

impl Fault {
    pub(super) fn conflict(what: String) -> Self {
        Self(StoreError::Conflict(what))
    }

    pub(super) fn unavailable(what: String) -> Self {
        Self(StoreError::Unavailable(what))
    }

    pub(super) fn corrupt(what: String) -> Self {
        Self(StoreError::Corrupt(what))
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{ConstraintViolation, DatabaseCorrupt, NotADatabase};
        let what = error.to_string();
        match (&error, error.sqlite_error_code()) {
            (_, Some(ConstraintViolation)) => Self::conflict(what),
            (_, Some(DatabaseCorrupt | NotADatabase)) | (rusqlite::Error::FromSqlConversionFailure(..), _) => {
                Self::corrupt(what)
            }
            _ => Self::unavailable(what),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(Fault(error): Fault) -> Self {
        error
    }
}
