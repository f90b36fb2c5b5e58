//! The gate of a contract: it compares two records and says whom a change hurts.
//!
//! ```text
//! (old Record, new Record) --compare--> [Change], each with its Rule
//! [Change], accepted.toml, versions --check--> Check: what is to do before the contract may land
//! ```

mod accepted;
mod access;
mod base;
mod causes;
mod change;
mod check;
mod command;
mod compare;
mod digest;
mod document;
mod forms;
mod pair;
mod release;
mod report;
mod rules;
#[cfg(feature = "cli")]
mod scaffold;
mod severity;
mod shape;
mod source;
mod texts;
mod values;
mod version;

pub use change::{ContractChange, ListChange};
pub use command::{GateAnswer, GateCommand, GateContext, ReportFormat, execute};
pub use compare::compare;
pub use digest::{digest, sha256};
pub use document::{document, read_record};
pub use report::change_json;
pub use rules::{ChangeRule, Watch, When, rule, rules};
#[cfg(feature = "cli")]
pub use scaffold::{NewTool, Question, new_tool};
pub use severity::{Audience, Bump, Severity};
