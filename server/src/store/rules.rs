//! What holds of everything that is kept: the rules by which an operator knows that nothing was lost.

use crate::clock::Timestamp;

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
    /// A task is charged once at most, and nothing is taken back that was not charged.
    Charges,
    /// A lane is held by exactly the task in flight on it.
    Lanes,
    /// Sealed arguments are there as long as a task is in flight, and no longer.
    Secrets,
    /// A task in flight has a deadline after this moment.
    Deadlines(Timestamp),
}

#[cfg(test)]
pub(super) mod tests;
