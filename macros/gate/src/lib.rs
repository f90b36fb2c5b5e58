//! The comparison of two states of a contract: it says what has changed, and whom a change hurts.
//!
//! ```text
//! (old Record, new Record) --compare--> [Change], each with its Rule
//! ```
//!
//! The code of a service has the changes since its last release, so the macro uses this crate.
//! Start at [`compare`](compare()).

mod access;
mod causes;
mod change;
mod compare;
mod digest;
mod document;
mod forms;
mod pair;
mod renames;
mod rules;
mod severity;
mod shape;
mod texts;
mod tools;
mod units;
mod values;

pub use change::{ContractChange, ListChange, change_json};
pub use compare::compare;
pub use digest::{digest, sha256};
pub use document::{document, read_record};
pub use forms::forms_to_keep;
pub use rules::{ChangeRule, Watch, When, rule, rules};
pub use severity::{Audience, Bump, Severity};
