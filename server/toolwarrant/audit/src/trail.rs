//! Reads a trail from its folder, for the operator and the doctor. It does not see lines that the
//! writer still holds.

use super::anchor::Birth;
use super::chain::is_chain_line;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use toolwarrant_base::clock::Timestamp;

/// Most lines that [`tail`] returns.
pub const TAIL_MAX: usize = 10_000;

/// Most bytes of lines that [`tail`] returns, and the longest line. A longer line is left out.
const TAIL_BYTES: usize = 16 << 20;
const TAIL_LINE: usize = 64 << 10;

/// Bytes that are read at a time, from the end.
const BLOCK: u64 = 64 << 10;

/// Checks that a trail's folder is writable, by creating a file in it and removing it.
///
/// # Errors
/// The folder is not writable.
pub fn try_to_write(dir: &Path) -> io::Result<()> {
    let probe = dir.join(".writable");
    // Opening a pipe would wait for a reader.
    if probe.symlink_metadata().is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other("`.writable` in it is not a file; remove it"));
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(&probe)?;
    fs::remove_file(probe)
}

/// Returns the last lines about calls, the latest last: at most `lines`, at most [`TAIL_MAX`], and
/// at most 16 MiB. Reads files from their ends.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn tail(folder: &Path, lines: usize) -> io::Result<Vec<String>> {
    let mut tail = Tail { wanted: lines.min(TAIL_MAX), bytes: 0, lines: Vec::new() };
    for path in days(folder)?.iter().rev() {
        tail.read(&File::open(path)?)?;
    }
    tail.lines.reverse();
    Ok(tail.lines)
}

/// Returns the files of a trail, the oldest day first. Ignores links and all other files.
///
/// # Errors
/// The folder cannot be read.
pub fn days(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_file());
    files.retain(|path| date(path).is_some() && is_file(path));
    files.sort();
    Ok(files)
}

/// Returns the name of a file of a trail.
pub(super) fn name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// Returns the day in the name of a file of a trail, as text; `None` for other files.
pub(super) fn date(path: &Path) -> Option<&str> {
    name(path).strip_prefix("audit-")?.strip_suffix(".jsonl")
}

/// Returns the name of the file of a day.
pub(super) fn file_name(day: Timestamp) -> String {
    let time = day.to_string();
    format!("audit-{}.jsonl", time.split('T').next().unwrap_or_default())
}

/// Returns the birth of a chain that begins now: after everything in the folder.
pub(super) fn birth(folder: &Path) -> io::Result<Birth> {
    let Some(last) = days(folder)?.pop() else { return Ok(Birth::default()) };
    Ok(Birth { file: name(&last).to_owned(), length: last.metadata()?.len() })
}

/// Lines from the ends of files, the latest first.
struct Tail {
    wanted: usize,
    bytes: usize,
    lines: Vec<String>,
}

impl Tail {
    fn read(&mut self, file: &File) -> io::Result<()> {
        let mut at = file.metadata()?.len();
        // The part of a line that was read so far, and true if the line is to be dropped: it is too
        // long, or the incomplete one at the end.
        let (mut rest, mut dropped) = (Vec::new(), true);
        while at > 0 && !self.is_full() {
            let size = at.min(BLOCK);
            at -= size;
            let mut block = vec![0; usize::try_from(size).unwrap_or(0)];
            file.read_exact_at(&mut block, at)?;
            block.append(&mut rest);
            let mut lines: Vec<&[u8]> = block.split(|byte| *byte == b'\n').collect();
            let first = if at > 0 { lines.drain(..1).next().unwrap_or_default() } else { &[] };
            for line in lines.into_iter().rev() {
                if !std::mem::take(&mut dropped) {
                    self.take(line);
                }
            }
            rest = first.to_vec();
            if rest.len() > TAIL_LINE {
                dropped = true;
                rest.clear();
            }
        }
        Ok(())
    }

    fn take(&mut self, line: &[u8]) {
        if self.is_full() || line.is_empty() || line.len() > TAIL_LINE || is_chain_line(line) {
            return;
        }
        self.bytes += line.len();
        self.lines.push(String::from_utf8_lossy(line).into_owned());
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= self.wanted || self.bytes >= TAIL_BYTES
    }
}
