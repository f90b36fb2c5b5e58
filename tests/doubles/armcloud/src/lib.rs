//! A double of VMOS Cloud, VSPhone and ARMCloud: a program with a fleet of pads on one machine, which answers as that platform does,
//! departs from it by switches, and keeps a journal of what was really done.
//!
//! [`main`] is the program. [`addresses`] says where requests of its pads and proxies leave from. Nothing here is used by the product.

// What is asked, and by whom.
mod endpoints;
mod requests;
mod sign;
// What is.
pub mod addresses;
mod truth;
// What departs from the usual, and what was done.
mod journal;
mod switches;
mod world;
// What is answered.
mod answers;
mod faults;
mod operations;
mod platform;
mod reads;
mod tasks;
mod wire;
// What a phone does, and a proxy.
mod net;
mod proxies;
mod shell;
mod tools;
mod traffic;
// The program.
mod control;
mod program;

pub use program::main;
