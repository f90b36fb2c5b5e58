//! `cloudphone`: cloud phones as tools for AI agents. ARCHITECTURE.md is the map.
//!
//! [`framework`] serves any contract; [`phones`] fulfils the one in `spec/`; [`app`] puts them together, and [`admin`] is what
//! its operator asks.

pub mod admin;
pub mod app;
pub mod clock;
pub mod data;
pub mod framework;
pub mod hex;
pub mod phones;
pub mod random;
pub mod store;
pub mod tasks;
pub mod telemetry;
pub mod vault;
