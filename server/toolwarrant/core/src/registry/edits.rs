//! Changes of rows.

use crate::act::Act;
use crate::store::{ApplicationRow, KeyRow};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowId {
    Application(String),
    Key(String),
}

#[derive(Clone)]
pub(super) enum DirectoryRow {
    Application(ApplicationRow),
    /// An application with its first key, and the act of that.
    WithKey(ApplicationRow, Box<(KeyRow, Act)>),
    Key(KeyRow),
}

pub(super) struct Edit {
    pub(super) row: DirectoryRow,
    pub(super) act: Act,
    /// True if it gives no authority.
    pub(super) only_takes: bool,
}

impl DirectoryRow {
    pub(super) fn id(&self) -> RowId {
        match self {
            Self::Application(row) | Self::WithKey(row, ..) => RowId::Application(row.id.clone()),
            Self::Key(row) => RowId::Key(row.id.clone()),
        }
    }
}
