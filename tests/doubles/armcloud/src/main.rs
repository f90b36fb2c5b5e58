//! A double of VMOS Cloud and VSPhone, and of an adb server: it simulates a fleet of pads on one
//! machine. Switches make it deviate from the originals. A journal records every effect. The
//! product uses nothing of this crate.

// Requests and their authentication.
mod endpoints;
mod requests;
mod sign;
// The state of the pads.
mod addresses;
mod display;
mod scene;
mod truth;
// Switches and the journal.
mod journal;
mod switches;
mod world;
// Answers.
mod acts;
mod adb;
mod answers;
mod faults;
mod operations;
mod platform;
mod reads;
mod tasks;
mod wire;
// Phones and proxies.
mod host;
mod net;
mod shell;
mod tools;
mod traffic;
// The program.
mod control;
mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::run()
}
