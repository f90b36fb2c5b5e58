//! Rules that hold for stored data. Checking them shows an operator that no data was lost.

use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::Stored;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::task::Task;

/// Checks stored data.
pub trait Integrity: Send + Sync + 'static {
    /// Returns the violations of a rule, as texts for the operator; at most [`VIOLATIONS_MAX`].
    /// Does not delay other calls.
    fn violations(&self, rule: IntegrityRule) -> Stored<'_, Vec<String>>;

    /// Returns the amount of stored data that expires, and of the ledger. Does not delay other
    /// calls.
    fn figures(&self) -> Stored<'_, Vec<Figure>>;

    /// Returns the counts of transactions. Default: the store does not count them.
    fn writes(&self) -> WriteFigures {
        WriteFigures::default()
    }

    /// Writes without changing anything. A success shows that the store can write, and that it
    /// writes to the file that the next start will open.
    fn touch(&self) -> Stored<'_, ()>;
}

/// Transactions since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFigures {
    /// Committed transactions.
    pub commits: u64,
    /// Requests in committed transactions.
    pub requests: u64,
    /// Failed transactions.
    pub failures: u64,
    /// Requests that wait for the next transaction.
    pub waiting: usize,
}

/// The amount of stored data of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The kind of data, in the plural.
    pub what: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// The oldest time among them, if there is one.
    pub oldest: Option<Timestamp>,
}

/// Maximum number of violations of one rule that are returned.
pub const VIOLATIONS_MAX: usize = 1_000;

/// A rule that holds at any time, also after the process was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrityRule {
    /// Every page is intact, and every reference leads to a row.
    Integrity,
    /// Tables and indexes are the ones that this program creates.
    Layout,
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

/// Returns the faults in the charges of a task, given the kinds of its ledger entries.
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
