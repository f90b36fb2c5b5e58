//! The comparison of records: every fact is watched, and every verdict is true.

#[path = "gate/cases.rs"]
mod cases;
#[path = "gate/facts.rs"]
mod facts;
#[path = "gate/pairs.rs"]
mod pairs;
