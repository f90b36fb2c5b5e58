//! `cargo xtask drill crash`: the program, optimised, under load; it is killed and stopped again and again, and then audited. In a third
//! round backups are taken meanwhile, and each is restored and looked at. In a fourth, half of the writes are on pads of the double of
//! ARMCloud, which resets connections and loses answers, and the audit reads the double's journal as well.

use super::ignored::{test, tests_of_the_product};
use crate::test::step;
use anyhow::Result;
use serde_json::json;
use std::path::Path;

/// How much.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// Writes that are answered before the clients rest
    #[arg(long, default_value_t = 10_000)]
    tasks: u64,
    /// Writes on two platforms, in the round that has them
    #[arg(long, default_value_t = 2_000)]
    writes: u64,
    /// Kills in each of the two rounds on one platform that kill, at least
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// Decides what clients ask for, when the program dies, and what the double does wrong
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Takes backups while it is killed, kills it, kills it with two platforms, stops it, and prints the figures of each.
pub(crate) fn run(root: &Path, Load { tasks, writes, kills, seed }: &Load) -> Result<()> {
    let packages = ["--package", "cloudphone", "--package", "armcloud-double"];
    step(root, &[&["build", "--release", "--locked", "--bins"], &packages[..]].concat())?;
    let mut command = tests_of_the_product("drills::crash::");
    // The double stands beside it.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    command.env("PROGRAM", root.join(target).join("release/cloudphone"));
    let options = json!({"tasks": tasks, "writes": writes, "kills": kills, "seed": seed});
    test(root, "crash", command, &options, "the accounts of what happened differ; how is above")
}
