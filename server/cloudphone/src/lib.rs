//! `cloudphone`: cloud phones as tools for AI agents. ARCHITECTURE.md is the map.
//!
//! [`phones`] fulfils the contract in `spec/`. [`program`] puts a service together from that and from whoever runs the phones.

pub mod adapter_kit;
mod commands;
mod composition;
mod configuration;
pub mod phones;
pub mod platforms;

pub use commands::{PhoneCommand, PlatformCommand};
pub use composition::{OwnFlags, ProductFlags, configured, program, service};
