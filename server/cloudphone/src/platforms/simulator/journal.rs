//! The journal: the file from which the truth is restored after a restart.
//!
//! The first line identifies the file; each other line is one command as JSON. A line is written
//! before its command is answered or takes effect, so a restart undoes nothing that a client could
//! have seen. A file that has grown is rewritten with the states that old commands led to. It has
//! no user names and passwords.

use super::fleet::DEVICES_MAX;
use super::truth::{Folded, PhoneState, SettledPhone, TakenCommand, Truth};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::{durable, json};

const VERSION: u32 = 1;

/// The second line is a [`Folded`].
const FOLDED: u32 = 2;

/// In bytes. Twice the size after the last fold counts if it is more.
const FOLD_AT: u64 = 16 << 20;

/// The engine may ask about a command this long after its last consequence. Tasks end much sooner.
const REMEMBERED: Duration = Duration::from_hours(24);

#[derive(Debug)]
pub(super) enum Journal {
    /// Forgets the commands when the process ends.
    Memory,
    /// The first `length` bytes are whole lines. The file is folded at `fold_at`.
    File { path: PathBuf, file: File, seed: u64, length: u64, fold_at: u64 },
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    simulated_phones: u32,
    seed: u64,
}

impl Journal {
    /// Opens or creates a journal. `untouched` makes the state of a phone without commands. A last
    /// line without a line break was never answered, and is cut off.
    pub(super) fn open(path: &Path, seed: u64, untouched: impl Fn(u32) -> PhoneState) -> Result<(Self, Truth)> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(wrong(path, NO_JOURNAL));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let header = line(&Header { simulated_phones: VERSION, seed })?;
        if header.starts_with(&text) {
            // A full disk does not keep a journal without commands from being opened.
            if text.len() < header.len() {
                file.write_all_at(&header, 0)?;
            }
            let (path, length) = (path.to_owned(), header.len() as u64);
            return Ok((Self::File { path, file, seed, length, fold_at: FOLD_AT }, Truth::default()));
        }
        let JournalContents { seed: made_with, length, folded, phones, taken } = parse(path, &text)?;
        if made_with != seed {
            let hint = "start with that seed, or with another data folder";
            return Err(wrong(path, &format!("was made with seed {made_with}, not {seed}; {hint}")));
        }
        file.set_len(length)?;
        let mut truth = Truth::after(folded, phones);
        for (n, taken) in taken.into_iter().enumerate() {
            let settled = n < folded.commands && taken.acts_at.is_none_or(|at| at <= folded.settled);
            let (phone, acts) = (taken.phone, taken.acts_at.is_some() && !settled);
            truth.take_settled(taken, acts, || untouched(phone));
        }
        Ok((Self::File { path: path.to_owned(), file, seed, length, fold_at: FOLD_AT }, truth))
    }

    pub(super) fn has_grown(&self) -> bool {
        matches!(self, Self::File { length, fold_at, .. } if length >= fold_at)
    }

    /// Forgets old commands and rewrites the journal. After a crash the file is the old or the new
    /// one. Waits for the disk. An error leaves the journal as it is.
    pub(super) fn fold(&mut self, truth: &mut Truth, now: Timestamp) -> Result<()> {
        let Self::File { path, file, seed, length, fold_at } = self else { return Ok(()) };
        // Raised even if the fold fails, so that it is not tried again with every command.
        *fold_at = fold_at.saturating_mul(2);
        let (folded, phones, taken) = truth.fold(now, now.minus(REMEMBERED));
        let mut text = line(&Header { simulated_phones: FOLDED, seed: *seed })?;
        text.extend(line(&folded)?);
        for phone in &phones {
            text.extend(line(phone)?);
        }
        for taken in taken {
            text.extend(line(taken)?);
        }
        let new = durable::replace(path, |file| file.write_all_at(&text, 0))?;
        (*file, *length) = (new, text.len() as u64);
        *fold_at = FOLD_AT.max(2 * *length);
        Ok(())
    }

    /// Appends a command to the page cache only: it survives the end of the process, but not a
    /// power cut. So the call may run under a lock on a thread that serves requests. After an
    /// error, the next line overwrites any part of this one.
    pub(super) fn append(&mut self, taken: &TakenCommand) -> Result<()> {
        let Self::File { file, length, .. } = self else { return Ok(()) };
        let line = line(taken)?;
        file.write_all_at(&line, *length)?;
        *length += line.len() as u64;
        Ok(())
    }
}

/// Checks a journal without changing it, even if a fleet has it open. A missing or empty file is
/// sound.
pub(super) fn examine(path: &Path) -> Result<()> {
    match path.metadata() {
        // Reading from a pipe would wait for a writer.
        Ok(about) if !about.is_file() => Err(wrong(path, NO_JOURNAL)),
        Ok(about) if about.len() > 0 => parse(path, &fs::read(path)?).map(drop),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

struct JournalContents {
    seed: u64,
    length: u64,
    folded: Folded,
    phones: Vec<SettledPhone>,
    taken: Vec<TakenCommand>,
}

const NO_JOURNAL: &str = "is not a journal of simulated phones; choose another data folder";

fn parse(path: &Path, text: &[u8]) -> Result<JournalContents> {
    let length = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = text[..length].split_inclusive(|byte| *byte == b'\n');
    let Some(Ok(Header { simulated_phones, seed })) = lines.next().map(json::read_bytes) else {
        return Err(wrong(path, NO_JOURNAL));
    };
    let mut lines = lines.zip(2..);
    let folded = match simulated_phones {
        VERSION => Folded { forgotten: 0, settled: Timestamp(0), phones: 0, commands: 0 },
        FOLDED => {
            let (line, n) = lines.next().unwrap_or_default();
            json::read_bytes(line).map_err(|why| damage_error(path, n, &why))?
        }
        other => return Err(wrong(path, &format!("has version {other}; the newest known version is {FOLDED}"))),
    };
    let phones = lines.by_ref().take(folded.phones).map(|(line, n)| {
        let settled = json::read_bytes::<SettledPhone>(line).map_err(|why| damage_error(path, n, &why))?;
        check_phone(path, n, settled.phone).map(|()| settled)
    });
    let phones = phones.collect::<Result<_>>()?;
    let taken = lines.map(|(line, n)| {
        let taken = json::read_bytes::<TakenCommand>(line).map_err(|why| damage_error(path, n, &why))?;
        check_phone(path, n, taken.phone).map(|()| taken)
    });
    Ok(JournalContents { seed, length: length as u64, folded, phones, taken: taken.collect::<Result<_>>()? })
}

fn check_phone(path: &Path, n: u32, phone: u32) -> Result<()> {
    match (1..=DEVICES_MAX).contains(&phone) {
        true => Ok(()),
        false => Err(wrong(path, &format!("is damaged in line {n}: no phone has index {phone}"))),
    }
}

fn damage_error(path: &Path, n: u32, why: &serde_json::Error) -> Error {
    // The error counts lines from this one.
    let why = why.to_string();
    let why = why.split(" at line ").next().unwrap_or_default();
    wrong(path, &format!("is damaged in line {n}: {why}"))
}

fn wrong(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("`{}` {why}", path.display()))
}

fn line(of: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(of)?;
    line.push(b'\n');
    Ok(line)
}
