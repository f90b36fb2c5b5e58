//! Tasks: writes whose outcome is verified on the target before they end.
//!
//! [`task`] is the state of one task. [`machine`] moves it from phase to phase. It is a pure
//! function and reads no clock, so tests can try every order of events. [`engine`] drives the
//! machine: it stores each step before it performs the step's effect through an [`executor`], and
//! owns the index of due times. A send needs a [`leave`]. [`command`] opens stored commands.
//! [`polls`] delays clients that poll too early. [`store`] is the port to storage.

pub mod command;
pub mod counts;
pub mod engine;
pub mod executor;
pub mod leave;
pub mod machine;
pub mod polls;
pub mod store;
pub mod task;
