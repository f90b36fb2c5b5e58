//! `cargo xtask test`: all checks that must pass before a change lands, step by step, with a count
//! at the end.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use toolwarrant_contract::GateCommand;

/// Runs every step, stops at the first that fails, and prints the number of tests at the end.
pub(crate) fn run(root: &Path) -> Result<()> {
    let begin = Instant::now();
    step(root, &["fmt", "--all", "--check"])?;
    step(root, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    println!("\n> cargo xtask graph");
    crate::graph::run(root)?;
    println!("\n> cargo xtask gen --check");
    crate::r#gen::run(root, true)?;
    println!("\n> cargo xtask contract check");
    crate::contract::run(root, &GateCommand::check())?;
    let passed = step(root, &["test", "--locked"])?;
    let left_out = count_left_out(root)?;
    let passed = passed - left_out;
    println!("\nall steps done in {} s", begin.elapsed().as_secs());
    println!("{passed} passed, 0 failed");
    Ok(())
}

/// Returns the number of cases that did nothing because PostgreSQL is not installed, and says so.
fn count_left_out(root: &Path) -> Result<u64> {
    let mut versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    if versions.any(|version| version.path().join("bin/postgres").exists()) {
        return Ok(0);
    }
    let mut cases = 0;
    for tests in
        [&["toolwarrant-postgres", "--test", "*", "--", "--list"][..], &["print-shop", "replicas", "--", "--list"]]
    {
        let listed = Command::new(env!("CARGO"))
            .args(["test", "--locked", "--package"])
            .args(tests)
            .current_dir(root)
            .output()?;
        cases += String::from_utf8_lossy(&listed.stdout).lines().filter(|line| line.ends_with(": test")).count() as u64;
    }
    println!("\nPostgreSQL is not installed (package postgresql): {cases} cases were left out");
    Ok(cases)
}

/// Runs one cargo command and passes its output on. Returns the number of tests that passed.
pub(crate) fn step(root: &Path, arguments: &[&str]) -> Result<u64> {
    println!("\n> cargo {}", arguments.join(" "));
    let mut child = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `cargo {}`", arguments.join(" ")))?;
    let mut passed = 0;
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line?;
        passed += count(&line).unwrap_or(0);
        println!("{line}");
    }
    if !child.wait()?.success() {
        bail!("`cargo {}` failed; the reason is above", arguments.join(" "));
    }
    Ok(passed)
}

/// Reads the number in libtest's last line: `test result: ok. 3 passed; ...`.
fn count(line: &str) -> Option<u64> {
    line.strip_prefix("test result: ok. ")?.split_once(" passed")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn only_a_closing_line_counts() {
        assert_eq!(count("test result: ok. 17 passed; 0 failed; 0 ignored; 0 measured"), Some(17));
        assert_eq!(count("test spec::x ... ok"), None);
    }
}
