//! Packages for Node.js, as a lock file pins them.

use crate::files;
use crate::python::must;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

const LOCKS: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the packages of the lock file in `scripts`, unless they are there, and copies the
/// scripts beside them.
pub(crate) fn install(scripts: &Path, folder: &Path) -> Result<()> {
    let wanted: Vec<_> = LOCKS.iter().map(|lock| fs::read(scripts.join(lock))).collect::<Result<_, _>>()?;
    let mark = folder.join("installed");
    if !fs::read(&mark).is_ok_and(|found| found == wanted.concat()) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for (lock, text) in LOCKS.iter().zip(&wanted) {
            fs::write(folder.join(lock), text)?;
        }
        let flags = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        println!("\n> npm {}", flags.join(" "));
        must(Command::new("npm").args(flags).current_dir(folder))
            .context("Node.js 20 or later, with npm, is needed")?;
        fs::write(mark, wanted.concat())?;
    }
    files::copy_scripts(scripts, folder, "mjs")
}
