//! The platforms that phones run on. Each is an adapter behind the [port](crate::phones::port): a
//! vendor's interface, the built-in fleet, and several platforms as one fleet.

pub mod adb;
pub mod armcloud;
pub mod several;
pub mod simulator;
