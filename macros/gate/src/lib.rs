//! The gate of a contract: it compares two records and says whom a change hurts.
//!
//! ```text
//! (old Record, new Record) --compare--> [Change], each with its Rule
//! [Change], accepted.toml, versions --check--> Check: what is to do before the contract may land
//! ```

mod change;
mod compare;
mod rules;

pub use change::{Audience, Bump, Change, ListChange, Verdict};
pub use compare::compare;
pub use rules::{Rule, rule, rules};
