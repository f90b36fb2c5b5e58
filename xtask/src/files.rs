//! The files of a checkout.

use crate::cargo::must;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns files that git tracks or would add, relative to `root`, except deleted ones.
pub(crate) fn list_files(root: &Path) -> Result<Vec<PathBuf>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let files = must(Command::new("git").args(arguments).current_dir(root))?;
    Ok(files.lines().map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}
