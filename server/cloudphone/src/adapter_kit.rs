//! Code that adapters share, between the port of phones and what is specific to one platform. It
//! has no code for a particular platform.

pub mod check;
pub mod guard;
pub mod host_program;
pub mod ledger_adapter;
pub mod phone_ledger;
pub mod readings;
pub mod shell;
