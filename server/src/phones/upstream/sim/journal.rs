//! The file from which the truth is told again after a restart, or no file at all.
//!
//! One JSON line a command, after one that says what the file is. A line is written before the command is answered or takes
//! effect, so that the end of the process at any moment undoes nothing that a client could have seen. It holds no user name
//! and no password.

use super::DEVICES_MAX;
use super::truth::Taken;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const VERSION: u32 = 1;

/// Where commands are written down.
#[derive(Debug)]
pub(super) enum Journal {
    /// Nowhere: they end with the process.
    Memory,
    /// In a file, which is good up to `length`.
    File { file: File, length: u64 },
}

/// The first line. The truth is told in terms of a fleet, and the seed is the fleet.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    simulated_phones: u32,
    seed: u64,
}

impl Journal {
    /// Opens or begins the journal of the fleet of that seed, and reads what is in it. A last line without an end was never
    /// answered, and is cut off.
    ///
    /// # Errors
    /// It cannot be read or written; or it is another fleet's, of another version, or damaged before its last line.
    pub(super) fn open(path: &Path, seed: u64) -> Result<(Self, Vec<Taken>)> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(wrong(path, NO_JOURNAL));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let header = line(&Header { simulated_phones: VERSION, seed })?;
        if header.starts_with(&text) {
            file.write_all_at(&header, 0)?;
            return Ok((Self::File { file, length: header.len() as u64 }, Vec::new()));
        }
        let Told { seed: made_with, length, taken } = told(path, &text)?;
        if made_with != seed {
            let hint = "start with that seed, or with another data folder";
            return Err(wrong(path, &format!("was made with seed {made_with}, not {seed}; {hint}")));
        }
        file.set_len(length)?;
        Ok((Self::File { file, length }, taken))
    }

    /// Writes a command down. It is then in the page cache: that outlives the process, which is what is promised. It does not
    /// outlive the machine, but neither do phones that are simulated on it; and a write that waits for no disk may be made
    /// under a lock and on a thread that serves requests.
    ///
    /// # Errors
    /// It cannot be written, and has not been: the next line takes the place of whatever part of this one was.
    pub(super) fn append(&mut self, taken: &Taken) -> Result<()> {
        let Self::File { file, length } = self else { return Ok(()) };
        let line = line(taken)?;
        file.write_all_at(&line, *length)?;
        *length += line.len() as u64;
        Ok(())
    }
}

/// Reads the journal at `path`, which a fleet may have open, and leaves it as it is; one that was not begun is sound.
///
/// # Errors
/// It cannot be read; or it is none, of another version, or damaged before its last line.
pub(super) fn examine(path: &Path) -> Result<()> {
    match path.metadata() {
        // To read from a pipe waits for whoever writes to it.
        Ok(about) if !about.is_file() => Err(wrong(path, NO_JOURNAL)),
        Ok(about) if about.len() > 0 => told(path, &fs::read(path)?).map(drop),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What a journal tells.
struct Told {
    seed: u64,
    /// Where its last whole line ends.
    length: u64,
    taken: Vec<Taken>,
}

const NO_JOURNAL: &str = "is no journal of simulated phones; choose another data folder";

fn told(path: &Path, text: &[u8]) -> Result<Told> {
    let length = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = text[..length].split_inclusive(|byte| *byte == b'\n');
    let Some(Ok(Header { simulated_phones, seed })) = lines.next().map(serde_json::from_slice) else {
        return Err(wrong(path, NO_JOURNAL));
    };
    if simulated_phones != VERSION {
        return Err(wrong(path, &format!("has version {simulated_phones}, and only {VERSION} is known here")));
    }
    let taken = lines.zip(2..).map(|(line, n)| match serde_json::from_slice::<Taken>(line) {
        Ok(taken) if (1..=DEVICES_MAX).contains(&taken.phone) => Ok(taken),
        Ok(taken) => Err(wrong(path, &format!("is damaged in line {n}: no phone has index {}", taken.phone))),
        Err(why) => {
            // It counts lines from the beginning of this one.
            let why = why.to_string();
            let why = why.split(" at line ").next().unwrap_or_default();
            Err(wrong(path, &format!("is damaged in line {n}: {why}")))
        }
    });
    Ok(Told { seed, length: length as u64, taken: taken.collect::<Result<_>>()? })
}

fn wrong(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("`{}` {why}", path.display()))
}

fn line(of: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(of)?;
    line.push(b'\n');
    Ok(line)
}
