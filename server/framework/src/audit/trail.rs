//! Reads a trail from its folder, for the operator and the doctor. Does not see lines that the writer still holds.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Checks that a trail's folder is writable: creates a file in it and removes that.
///
/// # Errors
/// The folder is not writable.
pub fn try_to_write(dir: &Path) -> io::Result<()> {
    let probe = dir.join(".writable");
    // Opening a pipe would wait for a reader.
    if probe.symlink_metadata().is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other("`.writable` in it is no file; remove it"));
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(&probe)?;
    fs::remove_file(probe)
}

/// Returns the last lines of a trail, at most `lines`, the latest last.
///
/// # Errors
/// The folder cannot be read.
pub fn tail(folder: &Path, lines: usize) -> io::Result<Vec<String>> {
    let mut files = days(folder)?;
    let mut last: Vec<String> = Vec::new();
    while last.len() < lines
        && let Some(file) = files.pop()
    {
        let text = fs::read_to_string(file)?;
        let wanted = lines - last.len();
        let mut earlier: Vec<String> = text.lines().rev().take(wanted).map(str::to_owned).collect();
        earlier.reverse();
        earlier.append(&mut last);
        last = earlier;
    }
    Ok(last)
}

/// Returns the files of a trail, the oldest day first. Ignores other files.
///
/// # Errors
/// The folder cannot be read.
pub fn days(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_day = |name: &str| name.starts_with("audit-") && name.ends_with(".jsonl");
    files.retain(|path| path.file_name().and_then(OsStr::to_str).is_some_and(is_day) && path.is_file());
    files.sort();
    Ok(files)
}
