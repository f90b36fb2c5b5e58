//! The platforms that phones run on. Each is an adapter behind the [port](crate::phones::port): a
//! vendor's interface, the adb server of this machine, or the built-in fleet.

pub mod adb;
pub mod armcloud;
pub mod simulator;
