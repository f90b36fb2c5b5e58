//! `cargo xtask drill crash`: the optimised program under load. The drill kills and stops it
//! repeatedly, and then audits its data. In one round operators change applications and keys
//! meanwhile. In one round it takes backups meanwhile, and restores and checks each of them. In
//! another round, half of the writes go to pads of the double of ARMCloud, which resets connections
//! and loses answers. The audit then also reads the double's journal.

use super::ignored::{test, tests_of_the_product};
use crate::test::step;
use anyhow::Result;
use serde_json::json;
use std::path::Path;

/// The extent of a run.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// Writes that are answered before the clients pause
    #[arg(long, default_value_t = 10_000)]
    tasks: u64,
    /// Writes in the round with two platforms
    #[arg(long, default_value_t = 2_000)]
    writes: u64,
    /// Minimum number of kills in each of the three rounds with kills on one platform
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// Minimum number of acts of operators in their round
    #[arg(long, default_value_t = 2_000)]
    acts: u64,
    /// Seed of the clients' requests, the times of kills, and the faults of the double
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs five rounds and prints the figures of each: kills among acts, kills during backups, kills,
/// kills with two platforms, and stops.
pub(crate) fn run(root: &Path, Load { tasks, writes, kills, acts, seed }: &Load) -> Result<()> {
    let packages = ["--package", "cloudphone", "--package", "armcloud-double"];
    step(root, &[&["build", "--release", "--locked", "--bins"], &packages[..]].concat())?;
    let mut command = tests_of_the_product("drills::crash::");
    // The test finds the double in the same folder.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    command.env("PROGRAM", root.join(target).join("release/cloudphone"));
    let options = json!({"tasks": tasks, "writes": writes, "kills": kills, "acts": acts, "seed": seed});
    test(root, "crash", command, &options, "the records of what happened differ; details are above")
}
