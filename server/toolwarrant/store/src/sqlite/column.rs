//! Times as columns hold them.

use toolwarrant_base::clock::Timestamp;

/// Converts a time to a column value.
pub(super) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

/// Converts a column value to a time. Negative values are never written; they are read as the
/// epoch.
pub(super) fn moment(millis: i64) -> Timestamp {
    Timestamp(u64::try_from(millis).unwrap_or(0))
}
