//! `cargo xtask crash`: the program, optimised, under load; it is killed and stopped again and again, and then audited. In a third
//! round backups are taken meanwhile, and each is restored and looked at.

use crate::test::step;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// How much.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// Writes that are answered before the clients rest
    #[arg(long, default_value_t = 10_000)]
    tasks: u64,
    /// Decides what clients ask for, and when the program dies
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Takes backups while it is killed, kills it, stops it, and prints the figures of each.
pub(crate) fn run(root: &Path, Load { tasks, seed }: Load) -> Result<()> {
    step(root, &["build", "--release", "--locked", "--package", "cloudphone", "--bin", "cloudphone"])?;
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--locked", "--package", "cloudphone", "--test", "all", "--", "--ignored", "--nocapture"]);
    command.args(["--test-threads", "1", "crash::"]);
    command.env("PROGRAM", root.join("target/release/cloudphone"));
    command.env("TASKS", tasks.to_string()).env("SEED", seed.to_string());
    println!("\n> cargo xtask crash: {tasks} tasks, seed {seed}");
    let status = command.current_dir(root).status().context("cannot run cargo")?;
    ensure!(status.success(), "the accounts of what happened differ; how is above");
    Ok(())
}
