//! The result of a check.

use toolwarrant_core::store::StoreError;

/// An error that is no failure to read the store counts as a fault.
pub(super) type Found = Result<Vec<String>, StoreError>;

pub(super) fn unreadable(error: impl ToString) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
