//! `cargo xtask soak`: the simulation of the engine, optimised, through as many worlds as are asked for.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Which worlds.
#[derive(clap::Args)]
pub(crate) struct Worlds {
    /// How many
    #[arg(long, default_value_t = Self::USUAL.worlds)]
    worlds: u64,
    /// The seed of the first
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Lives through this one alone and prints its history
    #[arg(long, conflicts_with_all = ["worlds", "first"])]
    seed: Option<u64>,
}

impl Worlds {
    /// Those that every change goes through.
    pub(crate) const USUAL: Self = Self { worlds: 300_000, first: 0, seed: None };
}

/// Lives through the worlds, and with all but a single one through those of every mutant.
pub(crate) fn run(root: &Path, Worlds { worlds, first, seed }: Worlds) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--release", "--locked", "--package", "toolwarrant-tasks", "--test", "simulation"]);
    command.args(["--", "--nocapture"]).args(seed.map(|_| "no_world"));
    command.env("WORLDS", worlds.to_string()).env("FIRST_WORLD", first.to_string());
    command.envs(seed.map(|seed| ("WORLD", seed.to_string())));
    println!("\n> cargo xtask soak: {worlds} worlds from {first} on");
    let status = command.current_dir(root).status().context("cannot run cargo")?;
    ensure!(status.success(), "a world broke a promise; its history is above");
    Ok(())
}
