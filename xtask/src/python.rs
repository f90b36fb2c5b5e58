//! A Python environment for a tool, with the packages of a lock file that contains their hashes.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the folder of its programs.
pub(crate) fn python(lock: &Path, folder: &Path) -> Result<PathBuf> {
    let (programs, mark) = (folder.join("bin"), folder.join("installed"));
    let wanted = fs::read_to_string(lock).with_context(|| lock.display().to_string())?;
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(programs);
    }
    let _ = fs::remove_dir_all(folder);
    must(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let flags = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"];
    must(Command::new(programs.join("python")).args(flags).arg(lock))?;
    fs::write(mark, wanted)?;
    Ok(programs)
}

pub(crate) fn must(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(output.status.success(), "{command:?} failed; the reason is above");
    Ok(String::from_utf8(output.stdout)?)
}
