//! The work of a contract's author: generated code for people, new tools, the check against the
//! released contract, and releases.
//!
//! ```text
//! [Change], accepted.toml, versions --check--> Judgement: what is to do before the contract may land
//! ```
//!
//! The program `toolwarrant` is its command line. No server contains this crate. Start at
//! [`execute`].

mod accepted;
mod base;
mod check;
mod command;
mod expand;
mod release;
mod report;
mod scaffold;
mod source;
mod verify;
mod version;

pub use command::{GateAnswer, GateCommand, GateContext, execute, today};
pub use expand::{expand, format_code};
pub use scaffold::{NewTool, Question, new_tool};
pub use verify::{NotCompared, VerifyOptions, verify};
