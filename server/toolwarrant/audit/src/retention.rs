//! The retention of a trail by age and by size: whole files, the oldest first.
//!
//! The newest file is never deleted. A file is deleted only after the last seal in it is recorded,
//! so that [`verify`] does not report it as missing. Start at [`plan`].
//!
//! [`verify`]: super::verify::verify

use super::chain::{End, Head};
use super::trail::{day, day_of, days};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;

pub const DAYS: u32 = 90;

pub const BYTES: u64 = 4 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub days: Option<u32>,
    pub bytes: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct PruningPlan {
    files: Vec<PathBuf>,
    pub pruned: Option<Head>,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub files: usize,
    pub bytes: u64,
    pub oldest: String,
}

pub fn figures(folder: &Path) -> io::Result<Figures> {
    let files = days(folder)?;
    let bytes = files.iter().filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum();
    let oldest = files.first().and_then(|path| day(path)).unwrap_or_default().to_owned();
    Ok(Figures { files: files.len(), bytes, oldest })
}

pub fn plan(folder: &Path, retention: Retention, now: Timestamp) -> io::Result<PruningPlan> {
    let Retention { days: kept_days, bytes: kept_bytes } = retention;
    let oldest = kept_days.map(|kept| day_of(now.minus(Duration::from_hours(24 * u64::from(kept)))));
    let (today, found) = (day_of(now), figures(folder)?);
    if found.bytes <= kept_bytes && oldest.as_ref().is_none_or(|oldest| found.oldest >= *oldest) {
        return Ok(PruningPlan::default());
    }
    let mut files = Vec::new();
    for path in days(folder)? {
        let file = File::open(&path)?;
        let end = End::of(&file)?;
        files.push((end.place(), end.last, path, file.metadata()?.len()));
    }
    // By the order of the chain, because the clock may have been set back. Files without a seal
    // come first.
    files.sort_by_key(|(place, ..)| *place);
    let newest = files.pop().map_or(0, |(.., length)| length);
    let dates: Vec<&str> = files.iter().map(|(.., path, _)| day(path).unwrap_or_default()).collect();
    let is_old = |n: usize| {
        // A name from a day when the clock was ahead does not show the age of the file.
        let day = dates.iter().skip(n).find(|day| **day <= today.as_str());
        oldest.as_deref().zip(day).is_some_and(|(oldest, day)| *day < oldest)
    };
    let mut total = newest + files.iter().map(|(.., length)| length).sum::<u64>();
    let over = files.iter().enumerate().take_while(|(n, (.., length))| {
        let goes = total > kept_bytes || is_old(*n);
        total -= if goes { *length } else { 0 };
        goes
    });
    let mut plan = PruningPlan::default();
    for (_, (_, last, path, length)) in over {
        plan.files.push(path.clone());
        plan.pruned = last.or(plan.pruned);
        plan.bytes += length;
    }
    Ok(plan)
}

impl PruningPlan {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Requires that the caller has recorded [`Self::pruned`].
    pub fn remove(&self) -> io::Result<usize> {
        for path in &self.files {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(self.files.len())
    }
}
