//! The framework: everything that any contract needs, and nothing that only one does.
//!
//! [`pipeline`] is the spine: the order in which a call is checked. [`catalogue`] is what the generator writes down,
//! [`handler`] what a handler is given, [`transport`] how bytes come and go. No word here belongs to a particular resource.

pub mod access;
pub mod audit;
pub mod catalogue;
pub mod failure;
pub mod handler;
pub mod limit;
pub mod reply;
pub mod text;
pub mod transport;
