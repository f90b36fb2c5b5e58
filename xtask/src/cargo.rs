//! Commands of cargo and of other programs.

use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).env_remove(WRAPPER);
    command
}

pub(crate) const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Lets Clippy, if it is installed, compile the workspace's own crates, so that lints need no
/// compilation of their own.
pub(crate) fn cargo_of_tests(root: &Path) -> Command {
    let mut command = cargo(root);
    if has("clippy") {
        command.env(WRAPPER, "clippy-driver");
    }
    command
}

/// Returns the number of passed tests.
pub(crate) fn step(mut cargo: Command, arguments: &[&str]) -> Result<u64> {
    println!("> cargo {}", arguments.join(" "));
    let output = cargo.args(arguments).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run `cargo {}`", arguments.join(" ")))?;
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{}", said.trim_end());
    if !output.status.success() {
        bail!("`cargo {}` failed; the reason is above", arguments.join(" "));
    }
    Ok(said.lines().filter_map(count).sum())
}

/// Reads `test result: ok. 3 passed; ...`.
pub(crate) fn count(line: &str) -> Option<u64> {
    line.strip_prefix("test result: ok. ")?.split_once(" passed")?.0.parse().ok()
}

pub(crate) fn has(subcommand: &str) -> bool {
    runs(env!("CARGO"), &[subcommand, "--version"])
}

pub(crate) fn runs(program: &str, arguments: &[&str]) -> bool {
    let quiet = || Stdio::null();
    Command::new(program).args(arguments).stdout(quiet()).stderr(quiet()).status().is_ok_and(|status| status.success())
}

/// Returns its output.
pub(crate) fn must(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(output.status.success(), "{command:?} failed; the reason is above");
    Ok(String::from_utf8(output.stdout)?)
}
