//! `cargo xtask drill`: stress tests of minutes. They are tests that other runs skip, and get their
//! options as one JSON value in an environment variable.

mod crash;
mod rack;
mod soak;

use crate::cargo::{cargo, step};
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const OPTIONS: &str = "DRILL";

/// A stress test.
#[derive(Subcommand)]
pub(crate) enum Drill {
    /// Simulate the engine in many worlds that a seed decides; fails if one breaks a promise.
    /// `--seed` prints the history of a world that breaks a promise
    Soak(soak::Worlds),
    /// Kill and stop the program repeatedly under load, and audit its data
    Crash(crash::Load),
    /// Restart phones behind real adb servers while phones, servers and the program fail; needs
    /// root on Debian. With `--simulated`, write to phones of the double instead
    Rack(rack::RackLoad),
}

pub(crate) fn run(root: &Path, drill: Drill) -> Result<()> {
    match drill {
        Drill::Soak(worlds) => soak::run(root, &worlds),
        Drill::Crash(load) => crash::run(root, &load),
        Drill::Rack(load) => rack::run(root, &load),
    }
}

/// Names no package, so that it needs no other build than `cargo test`.
fn tests_of_the_product(prefix: &str) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--locked", "--test", "all", "--", "--ignored", "--nocapture"]);
    command.args(["--test-threads", "1", prefix]);
    command
}

/// Builds the double too, which tests find in the same folder.
fn build(root: &Path) -> Result<PathBuf> {
    let packages = ["--package", "cloudphone", "--package", "armcloud-double"];
    step(cargo(root), &[&["build", "--release", "--locked", "--bins"], &packages[..]].concat())?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root.join(target).join("release/cloudphone"))
}

fn test(root: &Path, name: &str, mut command: Command, options: &Value, failure: &'static str) -> Result<()> {
    println!("\n> cargo xtask drill {name}: {options}");
    let status = command.env(OPTIONS, options.to_string()).current_dir(root).status().context("cannot run cargo")?;
    ensure!(status.success(), failure);
    Ok(())
}
