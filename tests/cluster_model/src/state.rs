//! The state that the checker explores. States that differ only in the names of replicas have the
//! same hash, so it explores one of them.

use std::hash::{Hash, Hasher};

pub(crate) const REPLICAS: usize = 4; // With the one that starts again under a name.
pub(crate) const TASKS: usize = 2;
pub(crate) const TRANSIT: usize = 1; // Ticks until a command arrives; 10 s in the product.

/// A task as a replica knows it. An odd version is `Ready`, an even one `Sending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Known {
    pub task: usize,
    pub version: u8,
}

/// A statement that writes. It takes effect when it reaches the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Write {
    Accept { was_cool: bool }, // Only a mutant uses what it read when it began.
    Adopt(usize),
    Advance(Known), // `Ready` becomes `Sending`, or the other way round if nothing has left.
    End(Known),
    EndWithRefund(Known),
}

/// The activity of a replica. It may be late with each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Job {
    #[default]
    NotStarted,
    Idle,
    Ready(Known),
    Committed(Known),   // `Sending` is stored; the store has not been asked.
    Cleared(Known, u8), // The store has said yes, which holds for this number of ticks.
    Sent(Known),
    Waiting(Known, u8), // An adopter of a task in `Sending` waits for this number of ticks.
    Decided(Write),     // The write follows from a reading that may be out of date when it lands.
    Unanswered(Write),  // The write has landed, and the standby does not have it.
    Gone,               // The replica has crashed, or has found itself evicted.
}

/// The membership of an epoch. The store has rows of `writer` for those that stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Member {
    #[default]
    Unknown,
    Stands,
    Evicted,
}

/// The tables. A task in flight has an owner, and its row also locks the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rows {
    pub members: [Member; REPLICAS],
    pub owners: [Option<usize>; TASKS],
    pub versions: [u8; TASKS],
    pub cool: u8, // Ticks until the target has cooled down.
    pub ends: [u8; TASKS],
    pub refunds: [u8; TASKS],
}

/// The facts about a task that no replica knows for sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Truth {
    pub under_way: [u8; TRANSIT + 1], // Commands, by the ticks that they have left.
    pub arrivals: u8,
    pub acted: bool,    // A command has an effect, or will have one.
    pub was_left: bool, // A replica that is gone has left it to an adopter.
    pub stamp: u8,      // Ticks until `send_not_after + QUIESCE`, for mutants that use clocks.
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub jobs: [Job; REPLICAS],
    pub are_ahead: [bool; REPLICAS], // A replica has an acknowledgement that the standby lacks.
    pub copies: [Option<usize>; REPLICAS], // Acceptances that were repeated under another number.
    pub rows: Rows,
    pub standby: Option<Rows>, // The tables of a standby that receives nothing more.
    pub missed: u8,            // Acknowledged writes that the standby lacks.
    pub has_failed_over: bool,
    pub truths: [Truth; TASKS],
    pub accepted: usize, // Tasks are numbered in the order of their acceptance.
    pub second_was_sent: bool,
    pub has_clash: bool, // Two commands met on the target, or it had not cooled down.
    pub evicted_wrote: bool,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let own = |rows: &Rows, at| (rows.members[at], rows.owners.map(|owner| owner == Some(at)));
        let standby = |at| self.standby.as_ref().map(|rows| own(rows, at));
        let key = |at| (self.jobs[at], self.are_ahead[at], self.copies[at], own(&self.rows, at), standby(at));
        let mut keys: [_; REPLICAS] = std::array::from_fn(key);
        keys.sort_unstable();
        let shared = |rows: &Rows| (rows.versions, rows.cool, rows.ends, rows.refunds);
        (keys, shared(&self.rows), self.standby.as_ref().map(shared), self.has_failed_over, self.missed).hash(hasher);
        (self.truths, self.accepted, self.second_was_sent, self.has_clash, self.evicted_wrote).hash(hasher);
    }
}
