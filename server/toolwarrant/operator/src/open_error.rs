//! The reasons why stored data cannot be opened.

use crate::data::FolderError;
use crate::error::OperatorError;
use crate::own::Explanation;
use toolwarrant_core::store::StoreError;
use toolwarrant_sqlite::DatabaseError;

/// The reason why a data folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or its master key cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(DatabaseError),
    /// The content of the database cannot be used.
    #[error(transparent)]
    Content(#[from] StoreError),
    /// The service cannot open its own files in the folder.
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
