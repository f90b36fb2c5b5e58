//! Runs test executables in two lanes. Tests that compute have a thread for each processor, and
//! tests that mostly wait have more.

use crate::cargo::{WRAPPER, count};
use crate::test::build::Executable;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// These tests mostly wait for the programs that they start. They run one after another, in this
/// order.
const WAITING: [&str; 3] = ["cloudphone all", "print-shop all", "toolwarrant-postgres all"];

const THREADS_WAITING: usize = 8;

/// A longer run has hung.
const PATIENCE: Duration = Duration::from_mins(20);

/// A test that cannot do anything on this machine prints this before the reason.
const LEFT_OUT: &str = "left out: ";

#[derive(Default)]
pub(super) struct Ran {
    pub(super) passed: u64,
    /// By reason.
    pub(super) left_out: BTreeMap<String, u64>,
    pub(super) tests: Vec<(f64, String)>,
}

pub(super) fn run(root: &Path, executables: Vec<Executable>) -> Result<Ran> {
    let place = |executable: &Executable| WAITING.iter().position(|name| *name == executable.name);
    let (mut waiting, others): (Vec<_>, Vec<_>) =
        executables.into_iter().partition(|executable| place(executable).is_some());
    waiting.sort_by_key(place);
    let processors = thread::available_parallelism()?.get();
    let ran = Mutex::new(Ran::default());
    let work = |lane: Vec<Executable>| -> Result<Vec<String>> {
        let mut lane = VecDeque::from(lane);
        let mut failed = Vec::new();
        while let Some(executable) = lane.pop_front() {
            let waits = place(&executable).is_some();
            let (said, succeeded) =
                execute(root, &executable, waits, if waits { THREADS_WAITING } else { processors })?;
            let mut ran = ran.lock().map_err(|_| anyhow!("a lane panicked"))?;
            if !ran.read(&executable.name, &said, succeeded) {
                failed.push(executable.name);
            }
        }
        Ok(failed)
    };
    let failed = thread::scope(|scope| {
        let others = scope.spawn(|| work(others));
        let waiting = work(waiting);
        let others = others.join().map_err(|_| anyhow!("a lane panicked"))?;
        Ok::<_, anyhow::Error>([others?, waiting?].concat())
    })?;
    match &failed[..] {
        [] => Ok(ran.into_inner().map_err(|_| anyhow!("a lane panicked"))?),
        failed => bail!("tests of {} failed; their output is above", failed.join(", ")),
    }
}

/// Tests that compute leave the processors to those that wait, whose times are real.
fn execute(root: &Path, executable: &Executable, waits: bool, threads: usize) -> Result<(String, bool)> {
    let Executable { name, path, folder } = executable;
    let log = path.with_extension("log");
    let output = File::create(&log).with_context(|| log.display().to_string())?;
    let mut command = Command::new("nice");
    command.args(["-n", if waits { "0" } else { "10" }]).arg(path);
    // Only with this variable, the harness of a stable compiler says how long each test takes.
    command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time", "--show-output"]);
    command.args(["--test-threads", &threads.to_string()]).current_dir(root.join(folder));
    command.env_remove(WRAPPER).env("CARGO", env!("CARGO")).env("CARGO_MANIFEST_DIR", folder);
    let mut child = command.stdout(output.try_clone()?).stderr(output).spawn().with_context(|| name.clone())?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill()?;
            let said = fs::read(&log)?;
            bail!("{}\n{name} was ended after {PATIENCE:?}", String::from_utf8_lossy(&said));
        }
        thread::sleep(Duration::from_millis(20));
    };
    let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    println!("{name}: {:.1} s", begin.elapsed().as_secs_f64());
    Ok((said, status.success()))
}

impl Ran {
    fn read(&mut self, name: &str, said: &str, succeeded: bool) -> bool {
        // A test may print results of other tests.
        let Some(passed) = said.lines().rev().find_map(count).filter(|_| succeeded) else {
            println!("{said}");
            return false;
        };
        self.passed += passed;
        for reason in said.lines().filter_map(|line| line.strip_prefix(LEFT_OUT)) {
            *self.left_out.entry(reason.to_owned()).or_default() += 1;
            self.passed -= 1;
        }
        let tests = said.lines().filter_map(seconds).map(|(test, seconds)| (seconds, format!("{name} {test}")));
        self.tests.extend(tests);
        true
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
        let mut ran = Ran::default();
        let said = "test a ... ok <0.1s>\nleft out: PostgreSQL is not installed\ntest result: ok. 3 passed; 0 failed\n";
        assert!(ran.read("shop all", said, true));
        assert_eq!((ran.passed, ran.left_out["PostgreSQL is not installed"]), (2, 1));
        assert!(!ran.read("shop all", "test result: FAILED. 3 passed; 1 failed\n", true));
        assert!(!ran.read("shop all", "test result: ok. 3 passed; 0 failed\n", false));
        assert_eq!(ran.passed, 2);
    }
}
