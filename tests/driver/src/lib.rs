//! Starts programs for tests and measurements, operates and watches them, and speaks to a double of a platform.
//!
//! It knows a program by its command line and by what it answers, and depends on no other crate of the workspace. It judges nothing: an
//! error is always a program that cannot be started or reached, or that does not say what its callers expect. Start at [`Start`].

mod double;
mod http;
mod mcp;
mod operator;
mod process;
mod program;

pub use double::DoubleProcess;
pub use http::{HttpAnswer, exchange, get};
pub use mcp::{KeyPair, call, outcome, rpc};
pub use operator::Operator;
pub use process::Process;
pub use program::{Instance, Start};
