//! A trail as it lies in its folder, for whoever reads it: an operator, a doctor. Knows nothing of what is still to be written.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Makes a file in a trail's folder, and removes it.
///
/// # Errors
/// Nothing can be written there.
pub fn try_to_write(dir: &Path) -> io::Result<()> {
    let probe = dir.join(".writable");
    // To open a pipe waits for whoever reads it.
    if probe.symlink_metadata().is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other("`.writable` in it is no file; remove it"));
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(&probe)?;
    fs::remove_file(probe)
}

/// The last lines of a trail, at most `lines`, the latest last. What its writer still holds is not among them.
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

/// The files of a trail, the oldest day first; whatever else lies beside them is left alone.
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
