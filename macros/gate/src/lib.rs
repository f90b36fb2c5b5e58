//! The gate of a contract: it compares two records and says whom a change hurts.
//!
//! ```text
//! (old Record, new Record) --compare--> [Change], each with its Rule
//! [Change], accepted.toml, versions --check--> Check: what is to do before the contract may land
//! ```

mod access;
mod causes;
mod change;
mod compare;
mod digest;
mod pair;
mod rules;
mod texts;
mod values;

pub use change::{Audience, Bump, Change, ListChange, Verdict};
pub use compare::compare;
pub use digest::digest;
pub use rules::{Rule, Watch, When, rule, rules};
