//! Tasks: writes whose outcome is verified on the target before they end.
//!
//! [`machine`] moves a [`task`] from phase to phase. It is a pure function and reads no clock, so
//! tests can try every order of events. [`engine`] stores each step before it performs the step's
//! effect through an [`executor`]. A send needs a [`leave`]. [`store`] is the port to storage, and
//! [`history`] shows operators what it has of one task. Start at [`engine`].

pub mod command;
pub mod counts;
pub mod engine;
pub mod executor;
pub mod history;
pub mod leave;
pub mod machine;
pub mod polls;
pub mod store;
pub mod task;
