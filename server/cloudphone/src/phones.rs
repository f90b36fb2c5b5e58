//! Cloud phones: everything that turns the framework into a service for this resource.
//!
//! [`contract`] is generated from `spec/` and defines the tools. [`tools`] implements them.
//! [`port`] is the interface to the platforms that run the phones. [`devices`] connects the two: it
//! selects the phones that an application sees, and [`views`] limits the age of what it shows.
//! [`inventory`] lists the phones for the operator. The framework has already checked keys,
//! arguments and limits, so this module does not.

pub mod contract;
pub mod devices;
pub mod inventory;
pub mod port;
pub mod proxy_hosts;
pub mod tools;
pub mod views;
pub mod writes;
