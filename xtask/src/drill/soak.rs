//! `cargo xtask drill soak`: the simulation of the engine, optimised, in the given number of
//! worlds.

use super::commands::test;
use anyhow::Result;
use serde::Serialize;
use std::path::Path;
use std::process::Command;

/// The choice of worlds.
#[derive(clap::Args, Serialize)]
pub(crate) struct Worlds {
    /// Number of worlds
    #[arg(long, default_value_t = 300_000)]
    worlds: u64,
    /// Number of worlds of two processes, by default an eighth
    #[arg(long)]
    pairs: Option<u64>,
    /// Seed of the first world
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run only the world of this seed and print its history
    #[arg(long, conflicts_with_all = ["worlds", "first"])]
    seed: Option<u64>,
    /// Find a world that catches each mutant, and run nothing else
    #[arg(long, conflicts_with_all = ["worlds", "pairs", "first", "seed"])]
    #[serde(skip)]
    mutants: bool,
}

/// Unless it is a single world, also runs the world of every mutant.
pub(crate) fn run(root: &Path, worlds: &Worlds) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--release", "--locked", "--package", "toolwarrant-tasks", "--test", "all"]);
    let tests = if worlds.seed.is_some() { "no_world" } else { "simulation::" };
    command.args(["--", "--nocapture", tests]).args(worlds.mutants.then_some("--ignored"));
    let breaks = "a world broke a promise; its history is above";
    test(root, command, worlds, if worlds.mutants { "a mutant breaks no promise" } else { breaks })
}
