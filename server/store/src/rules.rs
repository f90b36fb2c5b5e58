//! What holds of everything that is kept: the rules by which an operator knows that nothing was lost.

use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::store::Stored;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::task::Task;

/// Can be asked whether what it keeps is as it must be.
pub trait Integrity: Send + Sync + 'static {
    /// What breaks a rule, each in words for the operator; at most [`VIOLATIONS_MAX`]. Holds up no other call.
    fn violations(&self, rule: Rule) -> Stored<'_, Vec<String>>;

    /// Writes something that changes nothing, which shows that it can, and that it will be found again.
    fn touch(&self) -> Stored<'_, ()>;
}

/// Most violations of a rule that are told at a time.
pub const VIOLATIONS_MAX: usize = 1_000;

/// What holds of everything that is kept, whatever happened to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Every byte can be read and fits the rest, and every reference leads somewhere.
    Integrity,
    /// Tables and indexes are as this program makes them.
    Layout,
    /// A task that ended as `failed_silent` has its one refund, and nothing else has any.
    Refunds,
    /// A task has a charge if it was to be sent, which is taken back if it ended and nothing has left; and no other.
    Charges,
    /// One task at most is in flight on a target.
    Lanes,
    /// Sealed arguments are there as long as a task is in flight, and no longer.
    Secrets,
    /// A task in flight has a deadline after this moment.
    Deadlines(Timestamp),
    /// What is written of a task in several places says the same in all of them.
    Records,
}

/// What is wrong with the charge of a task that has entries of those kinds in the ledger.
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
