//! The crates for a registry: cargo can make a package of each, and warns of nothing, such as a
//! missing description.

use crate::cargo::cargo;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Cargo takes no lock file for crates with `publish = false` that need each other.
const ARGUMENTS: [&str; 8] = [
    "package",
    "--package=toolwarrant*",
    "--no-verify",
    "--exclude-lockfile",
    "--locked",
    "--offline",
    "--allow-dirty",
    "--color=never",
];

pub(crate) fn run(root: &Path) -> Result<()> {
    println!("> cargo {}", ARGUMENTS.join(" "));
    let output = cargo(root).args(ARGUMENTS).output().context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{}", said.trim_end());
    let is_sound = output.status.success() && !said.contains("warning: ");
    ensure!(is_sound, "`cargo package` has a fault or a warning; it is above");
    Ok(())
}
