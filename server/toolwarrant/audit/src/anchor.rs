//! What is recorded of a trail outside of it.

use crate::chain::Head;

/// What is recorded of a trail outside of it, so that a missing end or file shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A seal that is in the trail and on the disk.
    pub newest: Head,
    /// The last seal that was pruned: the trail begins after it.
    pub pruned: Head,
    /// Where the chain began.
    pub birth: Birth,
}

/// The last file from before the chain, which a program without one wrote, and how much of it that wrote, in bytes. Empty and 0 if
/// there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Birth {
    /// The name of the file.
    pub file: String,
    /// Its length at that time.
    pub length: u64,
}
