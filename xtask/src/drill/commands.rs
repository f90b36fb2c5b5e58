//! The commands of cargo that drills run.

use crate::cargo::{cargo, step};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;

const OPTIONS: &str = "DRILL";

/// Names no package, so that it needs no other build than `cargo test`.
pub(super) fn tests_of_the_product(chosen: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--locked", "--test", "all", "--", "--ignored", "--nocapture"]);
    command.args(["--test-threads", "1"]).args(chosen);
    command
}

/// Builds the double too, which tests find in the same folder.
pub(super) fn build(root: &Path) -> Result<PathBuf> {
    let packages = ["--package", "cloudphone", "--package", "armcloud-double"];
    step(cargo(root), &[&["build", "--release", "--locked", "--bins"], &packages[..]].concat())?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root.join(target).join("release/cloudphone"))
}

pub(super) fn test(root: &Path, mut command: Command, options: &impl Serialize, failure: &'static str) -> Result<()> {
    let options = serde_json::to_string(options)?;
    println!("\n> {OPTIONS}='{options}'");
    let status = command.env(OPTIONS, options).current_dir(root).status().context("cannot run cargo")?;
    ensure!(status.success(), failure);
    Ok(())
}
