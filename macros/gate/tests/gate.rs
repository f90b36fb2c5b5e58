//! The comparison of records: every fact is watched, and every verdict is true.

#[path = "gate/facts.rs"]
mod facts;
