//! The core that every service needs, independent of its contract and its transport.
//!
//! [`pipeline`] holds the order in which a call is checked. [`catalogue`] is the contract as the
//! generator writes it. [`handler`] has the types that handlers use. This crate knows no transport,
//! no database and no command line.

pub mod access;
pub mod act;
pub mod advice;
pub mod args;
pub mod catalogue;
pub mod counts;
pub mod failure;
pub mod files;
#[doc(hidden)]
pub mod generated;
pub mod handler;
pub mod lease;
pub mod limit;
pub mod nonces;
pub mod permissions;
pub mod pipeline;
pub mod reading;
pub mod registry;
pub mod reply;
pub mod report;
pub mod revision;
mod rows;
pub mod store;
pub mod tasks;

/// The parts of the base that generated code needs.
#[doc(hidden)]
pub use toolwarrant_base::{Timestamp, text, wording};
