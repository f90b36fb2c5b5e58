//! `cargo xtask test`: everything that must pass before a change lands. After the build, its steps
//! run in lanes, all lanes at once.

mod build;
mod executables;
mod step;

use crate::cargo::{cargo_of_tests, has, must, runs, step};
use crate::{contract, crates, r#gen, graph};
use anyhow::{Result, anyhow, ensure};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;
use step::{Ran, Step};
use toolwarrant_contract::GateCommand;

const SLOWEST: usize = 10;

#[derive(Default)]
struct Report {
    steps: Vec<(f64, String)>,
    ran: Ran,
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let begin = Instant::now();
    let mut report = Report::default();
    let clippy = (has("clippy"), "clippy is not installed");
    let mut executables = Vec::new();
    report.run(vec![vec![
        Step::with("format", (has("fmt"), "rustfmt is not installed"), || {
            step(cargo_of_tests(root), &["fmt", "--all", "--check"])
        }),
        Step::with("lints", clippy, || Ok(0)),
        Step::new("build and lints", || {
            executables = build::run(root, &[], clippy.0)?;
            Ok(0)
        }),
        Step::new("crate graph", || graph::run(root).map(|()| 0)),
        Step::new("packages", || crates::run(root).map(|()| 0)),
        Step::new("generated files", || r#gen::run(root, true).map(|()| 0)),
        Step::new("contract", || contract::run(root, &GateCommand::check()).map(|()| 0)),
    ]])?;
    let mut lanes = executables::lanes(root, executables)?;
    // Benches are built apart, because with `--all-targets` cargo builds examples as tests.
    let python = (runs("python3", &["-c", "import ensurepip, venv"]), "Python 3 with venv is not installed");
    let browser = Path::new("/usr/bin/chromium").exists() && runs("npm", &["--version"]);
    let browser = (browser, "Chromium or Node.js with npm is not installed");
    lanes[0].extend([
        Step::new("benches", || build::run(root, &["--benches"], clippy.0).map(|_| 0)),
        Step::new("examples of the documentation", || {
            step(cargo_of_tests(root), &["test", "--workspace", "--doc", "--locked", "--quiet"])
        }),
        Step::with("dependencies", python, || check_dependencies(root)),
    ]);
    lanes.push(vec![Step::with("page", browser, || look_at_pages(root))]);
    report.run(lanes)?;
    println!("{}", report.text(begin.elapsed().as_secs()));
    Ok(())
}

fn check_dependencies(root: &Path) -> Result<u64> {
    print!("{}", must(Command::new(root.join(".ci/deny/check.sh")).env("CARGO", env!("CARGO")))?);
    Ok(0)
}

fn look_at_pages(root: &Path) -> Result<u64> {
    let output = Command::new("node").args(["tests/browser/run.mjs", "--short"]).current_dir(root).output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("{}", said.trim_end());
    ensure!(output.status.success(), "the pages do not do what they should; the lines above say what");
    Ok(said.lines().filter(|line| line.starts_with("ok ")).count() as u64)
}

impl Report {
    /// Runs the steps of a lane one after another, also after one that fails.
    fn run(&mut self, lanes: Vec<Vec<Step<'_>>>) -> Result<()> {
        let take = |Step { name, run }: Step<'_>| {
            let begin = Instant::now();
            let ran = run();
            let seconds = begin.elapsed().as_secs_f64();
            match &ran {
                Ok(_) => println!("# {name}: {seconds:.1} s"),
                Err(why) => println!("{why:?}\n# {name}: failed after {seconds:.1} s"),
            }
            (seconds, name, ran)
        };
        let ended = thread::scope(|scope| {
            let start = |lane: Vec<_>| scope.spawn(move || lane.into_iter().map(take).collect::<Vec<_>>());
            let lanes: Vec<_> = lanes.into_iter().map(start).collect();
            let ends = lanes.into_iter().map(|lane| lane.join().map_err(|_| anyhow!("a lane panicked")));
            ends.collect::<Result<Vec<_>>>()
        })?;
        let mut failed = Vec::new();
        for (seconds, name, ran) in ended.into_iter().flatten() {
            match ran {
                Ok(ran) => self.ran.add(ran),
                Err(_) => failed.push(name.clone()),
            }
            self.steps.push((seconds, name));
        }
        ensure!(failed.is_empty(), "{} failed; the details are above", failed.join(", "));
        Ok(())
    }

    fn text(&self, all: u64) -> String {
        let Ran { passed, left_out, tests } = &self.ran;
        let mut text = format!("\n{all:8}  seconds\n");
        for (title, rows) in [("steps", &self.steps), ("tests", tests)] {
            let _ = writeln!(text, "\n{:>8}  the slowest {title}", "seconds");
            let mut rows: Vec<_> = rows.iter().collect();
            rows.sort_by(|one, other| other.0.total_cmp(&one.0));
            for (seconds, name) in rows.into_iter().take(SLOWEST) {
                let _ = writeln!(text, "{seconds:8.1}  {name}");
            }
        }
        for (reason, count) in left_out {
            let _ = write!(text, "\nleft out, {count}: {reason}");
        }
        let _ = write!(text, "\n{passed} passed, 0 failed");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, Step};
    use anyhow::bail;
    use std::sync::Barrier;

    #[test]
    fn lanes_run_at_once_and_a_failed_step_stops_no_other() {
        let (mut report, both) = (Report::default(), Barrier::new(2));
        let meet = || {
            both.wait();
            Ok(1)
        };
        let fails = Step::new("deny", || bail!("a licence"));
        let left_out = Step::with("page", (false, "npm is not installed"), || Ok(8));
        let lanes = vec![vec![fails, Step::new("a", meet), left_out], vec![Step::new("b", meet)]];
        assert_eq!(report.run(lanes).expect_err("one failed").to_string(), "deny failed; the details are above");
        assert_eq!((report.ran.passed, report.ran.left_out["npm is not installed: page"]), (2, 1));
    }
}
