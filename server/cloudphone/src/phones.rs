//! Cloud phones: everything that makes the framework a service for this one resource.
//!
//! [`contract`] is what may be called, generated from `spec/`; [`tools`] is what each tool does. [`port`] is what is
//! asked of whoever runs the phones, and [`devices`] stands between the two: which phones an application sees, and how old
//! a view of one may be ([`views`]); [`inventory`] shows them to the operator. Nothing here checks a key, an argument or a limit: the framework did.

pub mod contract;
pub mod devices;
pub mod inventory;
pub mod port;
pub mod proxy_hosts;
pub mod tools;
pub mod views;
pub mod writes;
