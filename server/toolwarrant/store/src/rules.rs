//! Rules whose check shows that no data was lost.

use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::Stored;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::task::Task;

pub trait Integrity: Send + Sync + 'static {
    /// Returns at most [`VIOLATIONS_MAX`] texts for the operator.
    fn violations(&self, rule: IntegrityRule) -> Stored<'_, Vec<String>>;

    /// Returns the data that expires, and the ledger.
    fn figures(&self) -> Stored<'_, Vec<Figure>>;

    fn writes(&self) -> WriteFigures {
        WriteFigures::default()
    }

    /// Shows that the store can write to the file that the next start will open, without a change.
    fn touch(&self) -> Stored<'_, ()>;
}

/// Since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFigures {
    pub commits: u64,
    /// In committed transactions.
    pub requests: u64,
    pub failures: u64,
    pub waiting: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// In the plural.
    pub what: &'static str,
    pub rows: u64,
    pub oldest: Option<Timestamp>,
}

/// Most texts about one rule.
pub const VIOLATIONS_MAX: usize = 1_000;

/// A rule that holds also after the process was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrityRule {
    /// Every page is intact, and every reference leads to a row.
    Integrity,
    /// Tables and indexes are as this program creates them.
    Layout,
    /// The database contains nothing that another program created.
    Foreign,
    /// A task that ended as `failed_silent` has one refund. Other tasks have no refund.
    Refunds,
    /// A task has one charge from its first send on. It has one reversal if it has failed, and
    /// nothing had left or an upstream that was busy measurably did nothing.
    Charges,
    /// At most one task is in flight on a target.
    TargetLocks,
    /// A task has sealed arguments exactly while it is in flight.
    Secrets,
    /// The deadline of every task in flight is later than this time.
    Deadlines(Timestamp),
    /// Columns that repeat a part of a task's state agree with it.
    Records,
}

#[must_use]
pub fn check_charges(task: &Task, has: impl Fn(&'static str) -> bool) -> Vec<String> {
    let kinds = [Entry::Charge, Entry::ReverseCharge].into_iter().filter_map(|entry| Some((entry, entry.kind()?)));
    kinds
        .filter_map(|(entry, kind)| match (entry.is_due(task), has(kind)) {
            (true, false) => Some(format!("has no {kind}, and one is due")),
            (false, true) => Some(format!("has a {kind} that is not due")),
            _ => None,
        })
        .collect()
}
