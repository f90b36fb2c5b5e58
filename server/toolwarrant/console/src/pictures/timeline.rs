//! The picture of one task.
