//! Rules that stored data must keep. Checking them shows an operator that nothing was lost.

use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::Stored;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::task::Task;

/// Checks stored data.
pub trait Integrity: Send + Sync + 'static {
    /// Returns what breaks a rule, in words for the operator; at most [`VIOLATIONS_MAX`]. Does not delay other calls.
    fn violations(&self, rule: IntegrityRule) -> Stored<'_, Vec<String>>;

    /// Returns how much is stored of what is kept for a while, and of the ledger. Does not delay other calls.
    fn figures(&self) -> Stored<'_, Vec<Figure>>;

    /// Writes without changing anything. Shows that the store can write, and to a file that will be found again.
    fn touch(&self) -> Stored<'_, ()>;
}

/// How much is stored of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What, in the plural.
    pub what: &'static str,
    /// How many.
    pub rows: u64,
    /// The oldest moment among them, if there is one.
    pub oldest: Option<Timestamp>,
}

/// Most violations of one rule that are returned.
pub const VIOLATIONS_MAX: usize = 1_000;

/// A rule that holds whenever the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrityRule {
    /// Every page is intact, and every reference leads to a row.
    Integrity,
    /// Tables and indexes are those that this program makes.
    Layout,
    /// A task that ended as `failed_silent` has one refund. No other task has any.
    Refunds,
    /// A task has one charge from its first send on, and one reversal if it ended and nothing had left.
    Charges,
    /// At most one task is in flight on a target.
    TargetLocks,
    /// A task has sealed arguments while it is in flight, and no longer.
    Secrets,
    /// The deadline of every task in flight is after this moment.
    Deadlines(Timestamp),
    /// Columns that repeat a part of a task's state agree with it.
    Records,
}

/// Returns what is wrong with the charges of a task, given the kinds of its ledger entries.
pub(super) fn charged(task: &Task, has: impl Fn(&'static str) -> bool) -> Vec<String> {
    let kinds = [Entry::Charge, Entry::ReverseCharge].into_iter().filter_map(|entry| Some((entry, entry.kind()?)));
    kinds
        .filter_map(|(entry, kind)| match (entry.is_due(task), has(kind)) {
            (true, false) => Some(format!("has no {kind}, and one is due")),
            (false, true) => Some(format!("has a {kind} that is not due")),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests;
