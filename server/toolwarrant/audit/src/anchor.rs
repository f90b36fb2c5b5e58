//! The record of a trail that is stored outside of it.

use crate::chain::Head;

/// The record of a trail that is stored outside of it. It shows if the end of the trail, or a file,
/// is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A seal that is in the trail and has reached the disk.
    pub newest: Head,
    /// The last seal that was pruned. The trail begins after it.
    pub pruned: Head,
    /// The place where the chain began.
    pub birth: Birth,
}

/// The last file from before the chain, which a version without a chain wrote.
///
/// Empty and 0 if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Birth {
    /// The name of the file.
    pub file: String,
    /// The length that it had at that time, in bytes.
    pub length: u64,
}
