//! The lanes of test executables. Tests that compute have a thread for each processor, and tests
//! that mostly wait have more and come first.

use super::build::Executable;
use super::step::{Ran, Step};
use crate::cargo::{WRAPPER, count};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;

/// These tests mostly wait for the programs that they start: what each lane runs, with the
/// arguments that choose tests.
const WAITING: [&[(&str, &[&str])]; 3] = [
    &[("cloudphone all", &["platforms::"])],
    &[("cloudphone all", &["--skip", "platforms::"])],
    &[("toolwarrant-postgres all", &[]), ("print-shop all", &[])],
];

/// Of each such lane. The last one computes most.
const THREADS_WAITING: [usize; 3] = [5, 5, 2];

/// A longer run has hung.
const PATIENCE: &str = "20m";

/// A test that cannot do anything on this machine prints this before the reason.
const LEFT_OUT: &str = "left out: ";

/// The first lane has what computes.
pub(super) fn lanes(root: &Path, executables: Vec<Executable>) -> Result<Vec<Vec<Step<'_>>>> {
    let processors = thread::available_parallelism()?.get();
    let mut lanes = Vec::new();
    for (lane, threads) in WAITING.into_iter().zip(THREADS_WAITING) {
        let parts = lane.iter().map(|(name, chosen)| {
            let executable =
                executables.iter().find(|known| known.name == *name).with_context(|| (*name).to_owned())?;
            Ok(executable.step(root, Extent { nice: "0", threads, chosen }))
        });
        lanes.push(parts.collect::<Result<Vec<_>>>()?);
    }
    let waits = |executable: &&Executable| WAITING.concat().iter().any(|(name, _)| *name == executable.name);
    let (_, others): (Vec<_>, Vec<_>) = executables.iter().partition(waits);
    let extent = Extent { nice: "10", threads: processors, chosen: &[] };
    lanes.insert(0, others.into_iter().map(|executable| executable.step(root, extent)).collect());
    Ok(lanes)
}

#[derive(Clone, Copy)]
struct Extent {
    nice: &'static str,
    threads: usize,
    chosen: &'static [&'static str],
}

impl Executable {
    fn step<'a>(&self, root: &'a Path, extent: Extent) -> Step<'a> {
        let executable = self.clone();
        let name = [&[&*self.name], extent.chosen].concat().join(" ");
        let run = {
            let name = name.clone();
            move || execute(root, &executable, (&name, extent))
        };
        Step { name, run: Box::new(run) }
    }
}

fn execute(root: &Path, executable: &Executable, (name, extent): (&str, Extent)) -> Result<Ran> {
    let Executable { path, folder, .. } = executable;
    let Extent { nice, threads, chosen } = extent;
    let log = path.with_extension(format!("{}.log", chosen.len()));
    let output = File::create(&log).with_context(|| log.display().to_string())?;
    let mut command = Command::new("timeout");
    command.args([PATIENCE, "nice", "-n", nice]).arg(path);
    // Only with this variable, the harness of a stable compiler says how long each test takes.
    command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time", "--show-output"]);
    command.args(["--test-threads", &threads.to_string()]).args(chosen).current_dir(root.join(folder));
    command.env_remove(WRAPPER).env("CARGO", env!("CARGO")).env("CARGO_MANIFEST_DIR", folder);
    let status = command.stdout(output.try_clone()?).stderr(output).status().with_context(|| name.to_owned())?;
    let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    ensure!(status.code() != Some(124), "{said}\n{name} was ended after {PATIENCE}");
    Ran::read(name, &said, status.success())
}

impl Ran {
    fn read(name: &str, said: &str, succeeded: bool) -> Result<Self> {
        // A test may print results of other tests.
        let passed = said.lines().rev().find_map(count).filter(|_| succeeded);
        let Some(passed) = passed else { bail!("{said}") };
        let mut ran = Self { passed, ..Self::default() };
        for reason in said.lines().filter_map(|line| line.strip_prefix(LEFT_OUT)) {
            *ran.left_out.entry(reason.to_owned()).or_default() += 1;
            ran.passed -= 1;
        }
        let tests = said.lines().filter_map(seconds).map(|(test, seconds)| (seconds, format!("{name} {test}")));
        ran.tests.extend(tests);
        Ok(ran)
    }
}

/// Reads `test wire::edge::it_closes ... ok <0.123s>`.
fn seconds(line: &str) -> Option<(&str, f64)> {
    let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.split_once('<')?.1.split_once("s>")?.0;
    Some((test, seconds.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Ran, count, seconds};

    #[test]
    fn only_a_closing_line_counts() {
        assert_eq!(count("test result: ok. 17 passed; 0 failed; 0 ignored; 0 measured"), Some(17));
        assert_eq!(count("test spec::x ... ok"), None);
        assert_eq!(seconds("test spec::x ... ok <1.250s>"), Some(("spec::x", 1.25)));
        assert_eq!(seconds("test spec::x ... ignored"), None);
    }

    #[test]
    fn a_test_that_was_left_out_has_not_passed_and_an_output_without_a_result_is_a_failure() {
        let said = "test a ... ok <0.1s>\nleft out: PostgreSQL is not installed\ntest result: ok. 3 passed; 0 failed\n";
        let ran = Ran::read("shop all", said, true).expect("a result");
        assert_eq!((ran.passed, ran.left_out["PostgreSQL is not installed"]), (2, 1));
        assert!(Ran::read("shop all", "test result: FAILED. 3 passed; 1 failed\n", true).is_err());
        assert!(Ran::read("shop all", "test result: ok. 3 passed; 0 failed\n", false).is_err());
    }
}
