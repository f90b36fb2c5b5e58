//! `cargo xtask drill rack`: phones and adb servers that are real programs of AOSP and Debian, each
//! phone in namespaces of its own. It needs root on Debian, and packages that apt downloads into
//! `target/rack` once, without installing them.

use super::commands::{build, test, tests_of_the_product};
use crate::cargo::{cargo, step};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The extent of a run. Without options, only the short part runs.
#[derive(clap::Args, Serialize)]
pub(crate) struct RackLoad {
    /// The roots of the programs of phones and servers
    #[arg(skip)]
    roots: PathBuf,
    /// Restarts of phones that freeze, are cut off or die meanwhile
    #[arg(long)]
    restarts: Option<u64>,
    /// Writes while the adb servers and the program are killed repeatedly
    #[arg(long)]
    writes: Option<u64>,
    /// Rounds in which readings are measured while nobody, one and ten people watch a phone
    #[arg(long)]
    screens: Option<u64>,
    /// Writes on phones of the double while its adb server and the program are killed repeatedly,
    /// in place of the other parts; this needs neither root nor Debian
    #[arg(long)]
    simulated: Option<u64>,
    /// Seed of the faults and their times
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Every process in the namespaces ends with the drill.
const UNSHARE: [&str; 7] = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

pub(crate) fn run(root: &Path, load: RackLoad) -> Result<()> {
    const BROKEN: &str = "a promise about phones behind adb was broken; details are above";
    let home = root.join("target/rack");
    let load = RackLoad { roots: home.clone(), ..load };
    if load.simulated.is_some() {
        let mut command = tests_of_the_product(&["drills::rack::simulated::"]);
        command.env("PROGRAM", build(root)?);
        return test(root, command, &load, BROKEN);
    }
    fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    if let Some(missing) = find_missing(&home) {
        println!("\nthe rack was left out: {missing}");
        return Ok(());
    }
    step(cargo(root), &["test", "--no-run", "--locked", "--test", "all"])?;
    let long = [(load.restarts, "restarts"), (load.writes, "writes"), (load.screens, "screens")];
    let mut wanted: Vec<_> = long.iter().filter(|(load, _)| load.is_some()).map(|(_, part)| *part).collect();
    if wanted.is_empty() {
        wanted = vec!["short", "short_programs", "copies", "stdio"];
    }
    // Each part has namespaces of its own, so they run at once. Cargo needs no network for tests
    // that are built.
    let run = |part: &str| {
        let tests = tests_of_the_product(&[&format!("drills::rack::{part}::")]);
        let mut command = Command::new(UNSHARE[0]);
        command.args(&UNSHARE[1..]).arg(tests.get_program()).args(tests.get_args());
        test(root, command, &load, BROKEN)
    };
    thread::scope(|scope| {
        let parts: Vec<_> = wanted.iter().map(|part| scope.spawn(|| run(part))).collect();
        parts.into_iter().try_for_each(|part| part.join().unwrap_or_else(|_| bail!("a part of the drill has panicked")))
    })
}

fn find_missing(home: &Path) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it needs root".to_owned());
    }
    let is_absent = |program: &&str| Command::new(program).arg("--version").output().is_err();
    if let Some(absent) = ["apt-get", "dpkg", "unshare", "ip"].iter().find(|program| is_absent(program)) {
        return Some(format!("`{absent}` is not installed"));
    }
    let succeeds = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    if !succeeds(Command::new(UNSHARE[0]).args(&UNSHARE[1..]).arg("true")) {
        return Some("this machine does not permit namespaces".to_owned());
    }
    let roots = succeeds(Command::new("sh").arg("-c").arg(include_str!("rack/roots.sh")).current_dir(home));
    (!roots).then(|| "the packages of Debian could not be downloaded; the reason is above".to_owned())
}
