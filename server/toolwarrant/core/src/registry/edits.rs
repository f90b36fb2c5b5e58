//! Rows of the directory, their changes, and changes that are not stored yet.

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
    /// The row before the change; `None` for a new one.
    pub(super) before: Option<DirectoryRow>,
    pub(super) row: DirectoryRow,
    pub(super) act: Act,
    pub(super) effect: Effect,
}

/// The effect of a change on authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It gives no authority: it applies even if it cannot be stored.
    OnlyTakes,
    /// It takes no authority away: it does not wait for a silent replica.
    OnlyGives,
    Both,
}

/// A row that is in force and not stored yet.
pub(super) struct Pending {
    /// The row as it is stored.
    pub(super) before: DirectoryRow,
    /// The acts since then, in order.
    pub(super) acts: Vec<Act>,
}

impl DirectoryRow {
    pub(super) fn id(&self) -> RowId {
        match self {
            Self::Application(row) => RowId::Application(row.id.clone()),
            Self::Key(row) => RowId::Key(row.id.clone()),
        }
    }
}

impl Effect {
    /// Returns the effect of a change. `takes` returns true if a change gives no authority.
    pub(super) fn of<T>(before: &T, after: &T, takes: fn(&T, &T) -> bool) -> Self {
        match (takes(before, after), takes(after, before)) {
            (true, _) => Self::OnlyTakes,
            (false, true) => Self::OnlyGives,
            (false, false) => Self::Both,
        }
    }
}
