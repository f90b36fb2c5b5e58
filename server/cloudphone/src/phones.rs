//! Cloud phones: everything that turns the framework into a service for this resource.
//!
//! [`contract`] is generated from `spec/` and defines the tools, [`tools`] implements them, and
//! [`port`] is the interface to the platforms. The framework has checked keys, arguments and
//! limits.

pub mod contract;
pub mod devices;
mod inventory;
pub mod platforms;
pub mod port;
pub mod proxy_hosts;
mod reader;
pub mod screens;
pub mod tools;
pub mod views;
pub mod writes;

#[cfg(test)]
pub(crate) mod tests;
