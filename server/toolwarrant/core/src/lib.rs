//! The core of every service. It knows no contract, transport, database or command line.
//!
//! Start at [`pipeline`], the order in which a call is checked. [`catalogue`] is the contract as
//! the generator writes it.

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
pub mod outside;
pub mod page;
pub mod passes;
pub mod permissions;
pub mod picture;
pub mod pipeline;
pub mod reading;
pub mod registry;
pub mod reply;
pub mod report;
pub mod revision;
mod rows;
pub mod store;
pub mod tasks;
pub mod toolsets;

#[doc(hidden)]
pub use toolwarrant_base::{Timestamp, text, wording};
