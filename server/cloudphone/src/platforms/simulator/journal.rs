//! The journal: the file from which the commands are restored after a restart.
//!
//! The first line has the seed; each other line is one command as JSON. A line is written before
//! its command is answered or takes effect, so a restart undoes nothing that a client could have
//! seen. A file that has grown is written again without the commands that were forgotten.

use super::fleet::{self, DEVICES_MAX};
use super::phone::{PhoneEffect, TakenCommand};
use crate::phones::contract::Command;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::{durable, json};
use toolwarrant::tasks::{TaskId, WriteCommand};

/// In bytes. A longer file has commands of the last two days, and those that states are known from.
const LENGTH_MAX: u64 = 16 << 20;

/// The engine may ask about a command for this long. Tasks end much sooner.
pub(super) const REMEMBERED: Duration = Duration::from_hours(24);

pub(super) struct Journal {
    path: PathBuf,
    pub(super) file: File,
    seed: u64,
    /// Of the whole lines.
    length: u64,
    pub(super) length_max: u64,
    rewritten: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    seed_of_simulated_phones: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalLine {
    at: Timestamp,
    request: String,
    tool: String,
    arguments: Box<RawValue>,
    ok: bool,
    effect: Option<PhoneEffect>,
}

impl Journal {
    /// Opens or creates a journal. A last line without a line break was never answered, and is cut
    /// off.
    pub(super) fn open(path: &Path, seed: u64) -> Result<(Self, Vec<TakenCommand>)> {
        let (file, length, taken) = match read(path)? {
            None => {
                let header = line(&Header { seed_of_simulated_phones: seed })?;
                (durable::replace(path, |file| file.write_all_at(&header, 0))?, header.len() as u64, Vec::new())
            }
            Some((Header { seed_of_simulated_phones: made_with }, ..)) if made_with != seed => {
                let hint = "start with that seed, or with another data folder";
                return Err(wrong(path, &format!("was made with seed {made_with}, not {seed}; {hint}")));
            }
            Some((_, length, taken)) => {
                let file = OpenOptions::new().write(true).open(path)?;
                file.set_len(length)?;
                (file, length, taken)
            }
        };
        let (path, rewritten) = (path.to_owned(), Timestamp(0));
        Ok((Self { path, file, seed, length, length_max: LENGTH_MAX, rewritten }, taken))
    }

    pub(super) fn has_grown(&self, now: Timestamp) -> bool {
        self.length > self.length_max && self.rewritten < now.minus(REMEMBERED)
    }

    /// Writes the whole journal again. After a crash the file is the old or the new one. Waits for
    /// the disk. An error leaves the journal as it is, until another day.
    pub(super) fn rewrite<'a>(&mut self, taken: impl Iterator<Item = &'a TakenCommand>, now: Timestamp) -> Result<()> {
        self.rewritten = now;
        let mut text = line(&Header { seed_of_simulated_phones: self.seed })?;
        for taken in taken {
            text.extend(line(&JournalLine::of(taken)?)?);
        }
        self.file = durable::replace(&self.path, |file| file.write_all_at(&text, 0))?;
        self.length = text.len() as u64;
        Ok(())
    }

    /// Appends a command to the page cache only: it survives the end of the process, but not a
    /// power cut. So the call may run under a lock on a thread that serves requests. After an
    /// error, the next line overwrites any part of this one.
    pub(super) fn append(&mut self, taken: &TakenCommand) -> Result<()> {
        let line = line(&JournalLine::of(taken)?)?;
        self.file.write_all_at(&line, self.length)?;
        self.length += line.len() as u64;
        Ok(())
    }
}

impl JournalLine {
    fn of(TakenCommand { at, request, command, ok, effect }: &TakenCommand) -> Result<Self> {
        let (tool, arguments) = (command.tool().to_owned(), command.arguments()?.expose().clone());
        let arguments = RawValue::from_string(arguments)?;
        Ok(Self { at: *at, request: request.to_string(), tool, arguments, ok: *ok, effect: *effect })
    }

    fn read(line: &[u8]) -> std::result::Result<TakenCommand, String> {
        let Self { at, request, tool, arguments, ok, effect } = json::read_bytes(line).map_err(|why| {
            // The error counts lines from this one.
            why.to_string().split(" at line ").next().unwrap_or_default().to_owned()
        })?;
        let request = TaskId::parse(&request).ok_or("its request is not a task")?;
        let command = Command::read(&tool, arguments.get()).ok_or("its command cannot be read")?;
        fleet::index(command.device().as_str(), DEVICES_MAX).ok_or("it has no simulated phone")?;
        Ok(TakenCommand { at, request, command, ok, effect })
    }
}

type JournalContents = (Header, u64, Vec<TakenCommand>);

/// Reads the first line, the length of the whole lines, and the commands, even if a fleet has the
/// journal open. Returns `None` for a missing or empty file.
pub(super) fn read(path: &Path) -> Result<Option<JournalContents>> {
    let no_journal = || wrong(path, "is not a journal of simulated phones; choose another data folder");
    match path.metadata() {
        // Reading from a pipe would wait for a writer.
        Ok(about) if !about.is_file() => return Err(no_journal()),
        Ok(about) if about.len() == 0 => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let text = fs::read(path)?;
    let length = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = text[..length].split_inclusive(|byte| *byte == b'\n');
    let Some(Ok(header)) = lines.next().map(json::read_bytes) else { return Err(no_journal()) };
    let damaged = |n: u32, why: String| wrong(path, &format!("is damaged in line {n}: {why}"));
    let taken = lines.zip(2..).map(|(line, n)| JournalLine::read(line).map_err(|why| damaged(n, why)));
    Ok(Some((header, length as u64, taken.collect::<Result<_>>()?)))
}

fn wrong(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("`{}` {why}", path.display()))
}

fn line(of: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(of)?;
    line.push(b'\n');
    Ok(line)
}
