//! Replacements for a disk, for tests.

pub mod memory;
