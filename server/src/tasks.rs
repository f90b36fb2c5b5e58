//! Tasks: writes whose outcome is verified on the target before they end.
//!
//! [`task`] is what is known of one, [`machine`] how it goes from phase to phase. The machine is pure: it performs nothing and
//! reads no clock, so that every order of events can be tried.

pub mod machine;
pub mod task;
