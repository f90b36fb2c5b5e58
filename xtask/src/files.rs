//! The files of a checkout.

use crate::python::must;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns files that git tracks or would add, relative to `root`, except deleted ones.
pub(crate) fn list_files(root: &Path) -> Result<Vec<PathBuf>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let files = must(Command::new("git").args(arguments).current_dir(root))?;
    Ok(files.lines().map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}

/// Copies the files with this ending.
pub(crate) fn copy_scripts(from: &Path, to: &Path, ending: &str) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == ending) {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}
