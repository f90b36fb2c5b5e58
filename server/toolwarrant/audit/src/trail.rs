//! Reads a trail from its folder. It does not see lines that the writer still holds. Start at
//! [`visit_back`].

use super::chain::is_chain_line;
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use toolwarrant_base::clock::Timestamp;

pub const TAIL_MAX: usize = 10_000;

/// Also the longest line. A longer one is left out.
const TAIL_BYTES: usize = 16 << 20;
const TAIL_LINE: usize = 64 << 10;

const BLOCK: u64 = 64 << 10;

/// A place between two lines of a trail. It stays where it is when lines are appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrailPlace {
    pub day: String,
    pub offset: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitedPart {
    pub bytes: u64,
    pub rest: Option<TrailPlace>,
}

pub fn try_to_write(dir: &Path) -> io::Result<()> {
    let probe = dir.join(".writable");
    // Opening a pipe would wait for a reader.
    if probe.symlink_metadata().is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other("`.writable` in it is not a file; remove it"));
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(&probe)?;
    fs::remove_file(probe)
}

/// Returns the last lines about calls, the latest last, and at most 16 MiB.
pub fn tail(folder: &Path, lines: usize) -> io::Result<Vec<String>> {
    let (wanted, mut bytes, mut tail) = (lines.min(TAIL_MAX), 0, Vec::new());
    if wanted > 0 {
        visit_back(folder, None, u64::MAX, &mut |line| {
            bytes += line.len();
            tail.push(String::from_utf8_lossy(line).into_owned());
            if tail.len() < wanted && bytes < TAIL_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    tail.reverse();
    Ok(tail)
}

/// Calls `visit` for each line about a call or an act, the newest first, until it breaks. Begins
/// before the place `before`, by default at the end. Reads about `most` bytes.
pub fn visit_back(
    folder: &Path,
    before: Option<&TrailPlace>,
    most: u64,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<VisitedPart> {
    let mut part = VisitedPart::default();
    for path in days(folder)?.iter().rev() {
        let day = date(path).unwrap_or_default();
        let file = match before.map(|place| (day.cmp(&place.day), place.offset)) {
            Some((Ordering::Greater, _)) => continue,
            Some((Ordering::Equal, offset)) => (File::open(path)?, offset),
            Some((Ordering::Less, _)) | None => (File::open(path)?, u64::MAX),
        };
        if let Some(offset) = visit_file_back(&file.0, file.1, most, &mut part.bytes, visit)? {
            part.rest = Some(TrailPlace { day: day.to_owned(), offset });
            break;
        }
    }
    Ok(part)
}

fn visit_file_back(
    file: &File,
    end: u64,
    most: u64,
    bytes: &mut u64,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<Option<u64>> {
    let mut at = file.metadata()?.len().min(end);
    let (mut rest, mut dropped) = (Vec::new(), true);
    while at > 0 {
        if *bytes >= most {
            return Ok(Some(at + rest.len() as u64 + 1));
        }
        let size = at.min(BLOCK);
        at -= size;
        *bytes += size;
        let mut block = vec![0; usize::try_from(size).unwrap_or(0)];
        file.read_exact_at(&mut block, at)?;
        block.append(&mut rest);
        let mut lines: Vec<&[u8]> = block.split(|byte| *byte == b'\n').collect();
        let first = if at > 0 { lines.drain(..1).next().unwrap_or_default() } else { &[] };
        let mut start = at + block.len() as u64 + 1;
        for line in lines.into_iter().rev() {
            start -= line.len() as u64 + 1;
            let skipped = std::mem::take(&mut dropped) || line.is_empty() || line.len() > TAIL_LINE;
            if !skipped && !is_chain_line(line) && visit(line).is_break() {
                return Ok(Some(start));
            }
        }
        rest = first.to_vec();
        if rest.len() > TAIL_LINE {
            dropped = true;
            rest.clear();
        }
    }
    Ok(None)
}

/// Returns the files of a trail, the oldest day first. Ignores links and all other files.
pub fn days(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_file());
    files.retain(|path| date(path).is_some() && is_file(path));
    files.sort();
    Ok(files)
}

pub(super) fn name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// Returns the date in the name of a file: `2026-07-28`, or `2026-07-28_000001` for a further file
/// of a day.
pub(super) fn date(path: &Path) -> Option<&str> {
    name(path).strip_prefix("audit-")?.strip_suffix(".jsonl")
}

pub(super) fn day(path: &Path) -> Option<&str> {
    date(path)?.split('_').next()
}

pub(super) fn day_of(moment: Timestamp) -> String {
    moment.to_string().split('T').next().unwrap_or_default().to_owned()
}

/// Returns the last file of a day, or the next one if that has `max` bytes.
pub(super) fn last_file(folder: &Path, of: &str, max: u64) -> io::Result<PathBuf> {
    let Some(last) = days(folder)?.into_iter().rfind(|path| day(path) == Some(of)) else {
        return Ok(folder.join(format!("audit-{of}.jsonl")));
    };
    if last.metadata()?.len() < max {
        return Ok(last);
    }
    let number = date(&last).and_then(|date| date.split_once('_')?.1.parse::<u32>().ok()).unwrap_or(0);
    Ok(folder.join(format!("audit-{of}_{:06}.jsonl", number.saturating_add(1))))
}
