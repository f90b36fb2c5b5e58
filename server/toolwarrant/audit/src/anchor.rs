//! The record of a trail that is stored outside of it.

use crate::chain::Head;

/// The record of a trail that is stored outside of it. It shows if the end of the trail, or a file,
/// is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A seal that is in the trail and has reached the disk.
    pub newest: Head,
    /// The last seal that was pruned. The trail begins after it.
    pub pruned: Head,
}
