//! Tasks: writes whose outcome is verified on the target before they end.
//!
//! [`task`] is what is known of one, [`machine`] how it goes from phase to phase. The machine is pure: it performs nothing and
//! reads no clock, so that every order of events can be tried. [`engine`] drives it: it writes each step down, performs what
//! the step asks of an [`executor`], and keeps the one index of what is due when. [`polls`] holds those who ask too early.

pub mod counts;
pub mod engine;
pub mod executor;
pub mod machine;
pub mod polls;
pub mod store;
pub mod task;
