//! Code that adapters share: everything between the port of phones and the part that is specific to
//! one platform.
//!
//! [`guard`] limits and protects each call to a platform. [`registry`] is the device registry,
//! which stores the ids of phones. [`shell`] runs commands on a phone. [`readings`] takes
//! measurements on a phone that its output cannot forge, and [`proven`] records which of them are
//! proven. [`host_program`] runs programs of this machine that an operator names. [`check`] tests a
//! platform for its operator. This module contains no code for a particular platform.

pub mod check;
pub mod device_registry;
pub mod guard;
pub mod host_program;
pub mod proven;
pub mod readings;
pub mod shell;
