//! `cloudphone`: cloud phones as tools for AI agents.
//!
//! [`phones`] implements the contract in `spec/`. [`program`] builds a service from it and from the
//! platforms that run the phones.

pub mod adapter_kit;
mod commands;
mod composition;
mod configuration;
pub mod phones;
pub mod platforms;

pub use commands::{PhoneCommand, PlatformCommand};
pub use composition::{OwnFlags, ProductFlags, program, run, service};
