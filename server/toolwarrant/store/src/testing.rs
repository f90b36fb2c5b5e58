//! What tests use in place of a disk.

pub mod memory;
