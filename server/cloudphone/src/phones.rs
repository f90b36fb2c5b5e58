//! Cloud phones: everything that turns the framework into a service for this resource.
//!
//! [`contract`] is generated from `spec/` and defines the tools. [`tools`] implements them.
//! [`port`] is the interface to the platforms that run the phones, and [`platforms`] finds the one
//! of a phone. [`devices`] selects the phones that an application sees, and [`views`] limits the
//! age of what it shows. `inventory` lists the phones for the operator. The framework has already
//! checked keys, arguments and limits, so this module does not.

pub mod contract;
pub mod devices;
mod inventory;
pub mod platforms;
pub mod port;
pub mod proxy_hosts;
#[cfg(test)]
mod testing;
pub mod tools;
pub mod views;
pub mod writes;
