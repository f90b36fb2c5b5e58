//! `cargo xtask test`: everything that must pass before a change lands, step by step.

mod build;
mod executables;

use crate::browse::{Browsing, CHROMIUM};
use crate::cargo::{cargo_of_tests, has, runs, step};
use crate::{browse, contract, crates, deny, r#gen, graph};
use anyhow::{Context, Result};
use executables::Ran;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;
use toolwarrant_contract::GateCommand;

const SLOWEST: usize = 10;

#[derive(Default)]
struct Report {
    steps: Vec<(&'static str, f64)>,
    passed: u64,
    /// By reason.
    left_out: BTreeMap<String, u64>,
    tests: Vec<(f64, String)>,
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let begin = Instant::now();
    let mut report = Report::default();
    report.step("format", "rustfmt is not installed", has("fmt"), |_| {
        step(cargo_of_tests(root), &["fmt", "--all", "--check"]).map(drop)
    })?;
    let mut executables = Vec::new();
    let lints = has("clippy");
    if !lints {
        report.leave_out("clippy is not installed: the lints", 1);
    }
    report.step("build and lints", "", true, |_| {
        executables = build::run(root, lints)?;
        Ok(())
    })?;
    report.step("crate graph", "", true, |_| graph::run(root))?;
    report.step("packages", "", true, |_| crates::run(root))?;
    report.step("generated files", "", true, |_| r#gen::run(root, true))?;
    report.step("contract", "", true, |_| contract::run(root, &GateCommand::check()))?;
    report.step("tests", "", true, |report| {
        let Ran { passed, left_out, tests } = executables::run(root, executables)?;
        report.passed += passed;
        report.tests = tests;
        left_out.into_iter().for_each(|(reason, count)| report.leave_out(&reason, count));
        Ok(())
    })?;
    report.step("examples of the documentation", "", true, |report| {
        report.passed += step(cargo_of_tests(root), &["test", "--workspace", "--doc", "--locked", "--quiet"])?;
        Ok(())
    })?;
    let python = runs("python3", &["-c", "import ensurepip, venv"]);
    report.step("dependencies", "Python 3 with venv is not installed", python, |_| deny::run(root))?;
    let browser = Path::new(CHROMIUM).exists() && runs("npm", &["--version"]);
    report.step("page", "Chromium or Node.js with npm is not installed", browser, |report| {
        report.passed += browse::run(root, &Browsing::short())?;
        Ok(())
    })?;
    println!("{}", report.text(begin.elapsed().as_secs()));
    Ok(())
}

impl Report {
    /// Leaves the step out, with the reason, unless it is possible.
    fn step(
        &mut self,
        name: &'static str,
        reason: &str,
        is_possible: bool,
        run: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if !is_possible {
            self.leave_out(&format!("{reason}: {name}"), 1);
            return Ok(());
        }
        println!("\n# {name}");
        let begin = Instant::now();
        run(self).context(name)?;
        self.steps.push((name, begin.elapsed().as_secs_f64()));
        Ok(())
    }

    fn leave_out(&mut self, reason: &str, count: u64) {
        *self.left_out.entry(reason.to_owned()).or_default() += count;
    }

    fn text(&self, seconds: u64) -> String {
        let mut text = format!("\n{:>8}  step\n", "seconds");
        for (name, seconds) in &self.steps {
            let _ = writeln!(text, "{seconds:8.1}  {name}");
        }
        let _ = writeln!(text, "{seconds:6}    all\n\n{:>8}  the slowest tests", "seconds");
        let mut tests: Vec<_> = self.tests.iter().collect();
        tests.sort_by(|one, other| other.0.total_cmp(&one.0));
        for (seconds, name) in tests.into_iter().take(SLOWEST) {
            let _ = writeln!(text, "{seconds:8.1}  {name}");
        }
        for (reason, count) in &self.left_out {
            let _ = write!(text, "\nleft out, {count}: {reason}");
        }
        let _ = write!(text, "\n{} passed, 0 failed", self.passed);
        text
    }
}
