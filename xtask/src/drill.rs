//! `cargo xtask drill`: stress tests of minutes. They are tests that other runs skip, and get their
//! options as one JSON value in an environment variable.

mod commands;
mod crash;
mod rack;
mod soak;

use anyhow::Result;
use clap::Subcommand;
use std::path::Path;

/// A stress test.
#[derive(Subcommand)]
pub(crate) enum Drill {
    /// Simulate the engine in many worlds that a seed decides; fails if one breaks a promise.
    /// `--seed` prints the history of a world that breaks a promise
    Soak(soak::Worlds),
    /// Kill and stop the program repeatedly under load, and audit its data
    Crash(crash::Load),
    /// The same with replicas on one PostgreSQL that has a standby, which fail too
    Cluster(crash::ClusterLoad),
    /// Restart phones behind real adb servers while phones, servers and the program fail; needs
    /// root on Debian. With `--simulated`, write to phones of the double instead
    Rack(rack::RackLoad),
}

pub(crate) fn run(root: &Path, drill: Drill) -> Result<()> {
    match drill {
        Drill::Soak(worlds) => soak::run(root, &worlds),
        Drill::Crash(load) => crash::run(root, &load),
        Drill::Cluster(load) => crash::run_cluster(root, &load),
        Drill::Rack(load) => rack::run(root, load),
    }
}
