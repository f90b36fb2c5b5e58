//! `cloudphone`: cloud phones as tools for AI agents. ARCHITECTURE.md is the map.
//!
//! [`phones`] fulfils the contract in `spec/`. [`program`] puts a service together from that and from whoever runs the phones.

mod composition;
pub mod phones;

pub use composition::{OwnFlags, Simulated, program, service, simulated};
