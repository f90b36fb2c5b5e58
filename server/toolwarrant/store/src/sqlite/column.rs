//! Moments as columns hold them.

use toolwarrant_base::clock::Timestamp;

/// A moment as a column stores it.
pub(super) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

/// A moment from a column. Negative values are never written; they read as the epoch.
pub(super) fn moment(millis: i64) -> Timestamp {
    Timestamp(u64::try_from(millis).unwrap_or(0))
}
