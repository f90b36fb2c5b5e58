//! `cargo xtask drill NAME`: stress tests that take minutes; each drill has its own file.
//!
//! Some drills are tests that other commands skip; `ignored` runs those.

mod crash;
mod endurance;
mod ignored;
mod rack;
mod soak;

use anyhow::Result;
use std::path::Path;

/// The choice of a drill.
#[derive(clap::Subcommand)]
pub(crate) enum Drill {
    /// Simulate the engine in random worlds; prints the history of a world that breaks a promise
    Soak(soak::Worlds),
    /// Kill and stop the program repeatedly under load, and audit its data
    Crash(crash::Load),
    /// Restart phones behind real adb servers while phones, servers and the program fail; needs
    /// root on Debian. With `--simulated`, write to phones of the double instead
    Rack(rack::RackLoad),
    /// Load a replica for a long time, for a part of it beside a transaction that stays open: the
    /// sizes of tables, and the waits
    Endurance(endurance::Endurance),
}

pub(crate) fn run(root: &Path, drill: Drill) -> Result<()> {
    match drill {
        Drill::Soak(worlds) => soak::run(root, &worlds),
        Drill::Crash(load) => crash::run(root, &load),
        Drill::Rack(load) => rack::run(root, &load),
        Drill::Endurance(endurance) => endurance::run(root, &endurance),
    }
}
