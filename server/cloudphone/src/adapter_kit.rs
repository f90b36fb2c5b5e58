//! Code that adapters share: everything between the port of phones and the part that is specific to
//! one platform.
//!
//! [`guard`] limits and protects each call to a platform. [`phone_ledger`] stores what is known of
//! phones: their ids, addresses and proofs. [`shell`] runs commands on a phone. [`readings`] takes
//! measurements on a phone that its output cannot forge. [`host_program`] runs programs of this
//! machine that an operator names. [`check`] tests a platform for its operator. This module
//! contains no code for a particular platform.

pub mod check;
pub mod guard;
pub mod host_program;
pub mod phone_ledger;
pub mod readings;
pub mod shell;
