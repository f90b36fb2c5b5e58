//! The reasons why stored data cannot be opened.

use crate::data::FolderError;
use crate::error::OperatorError;
use crate::own::Explanation;
use toolwarrant_core::store::StoreError;
use toolwarrant_sqlite::DatabaseError;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Database(DatabaseError),
    #[error(transparent)]
    Content(#[from] StoreError),
    #[error("{0}")]
    Service(Explanation),
}

/// A database that cannot be created is reported as a fault of the folder.
impl From<DatabaseError> for OpenError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::File { path, source } => FolderError::Io(path, source).into(),
            other => Self::Database(other),
        }
    }
}

impl From<OpenError> for OperatorError {
    fn from(error: OpenError) -> Self {
        match &error {
            OpenError::Folder(FolderError::InUse(..)) => Self::unavailable(error.to_string()),
            OpenError::Content(StoreError::Unavailable(why)) => Self::unavailable(why),
            _ => Self::refusal(error.to_string()),
        }
    }
}
