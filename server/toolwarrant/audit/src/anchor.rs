//! The record of a trail that is stored outside of it. It shows if the end of the trail, or a file,
//! is missing.

use crate::chain::Head;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    pub newest: Head,
    /// The last seal that was pruned. The trail begins after it.
    pub pruned: Head,
    /// The number of the last act of an operator whose line is in the trail.
    pub acts: u64,
}
