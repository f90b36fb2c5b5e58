//! The platforms that phones run on. Each is an adapter behind the [port](crate::phones::port).

pub mod adb;
pub mod armcloud;
pub mod simulator;
