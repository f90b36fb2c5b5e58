//! Rows of the directory, and their changes.

use crate::act::Act;
use crate::store::{ApplicationRow, KeyRow};

/// The id of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowId {
    Application(String),
    Key(String),
}

/// A row of the directory.
#[derive(Clone)]
pub(super) enum DirectoryRow {
    Application(ApplicationRow),
    Key(KeyRow),
}

/// A planned change of a row.
pub(super) struct Edit {
    pub(super) row: DirectoryRow,
    pub(super) act: Act,
    /// True if it gives no authority: it applies even if it cannot be stored.
    pub(super) only_takes: bool,
}

impl DirectoryRow {
    pub(super) fn id(&self) -> RowId {
        match self {
            Self::Application(row) => RowId::Application(row.id.clone()),
            Self::Key(row) => RowId::Key(row.id.clone()),
        }
    }
}
