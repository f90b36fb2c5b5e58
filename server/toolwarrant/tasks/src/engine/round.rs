//! The state of the rounds in which a replica looks for the tasks of others.

use crate::store::OpenTask;
use crate::task::TaskId;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

/// Interval between two rounds.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(800);

/// The knowledge about tasks of other replicas.
#[derive(Debug, Default)]
pub(super) struct Others {
    pub(super) round: tokio::sync::Mutex<Round>,
    /// Orphans whose command the contract cannot read.
    pub(super) unreadable: Mutex<BTreeSet<TaskId>>,
}

/// The state between two rounds.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The last orphan that was read; `None` to begin again.
    pub(super) after: Option<TaskId>,
    /// Orphans to adopt. They stay here until the store has answered, because an adoption whose
    /// answer is lost has to be repeated.
    pub(super) readable: Vec<OpenTask>,
    /// Orphans of this pass whose command the contract cannot read.
    pub(super) unreadable: BTreeSet<TaskId>,
}
