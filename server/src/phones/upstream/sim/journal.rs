//! The journal: a file from which the truth is restored after a restart. A fleet may also have none.
//!
//! The first line says what the file is; each other line is one command as JSON. A line is written before its command is answered
//! or takes effect, so the end of the process undoes nothing that a client could have seen. The file holds no user name and no
//! password.

use super::DEVICES_MAX;
use super::truth::Taken;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const VERSION: u32 = 1;

/// Where commands are recorded.
#[derive(Debug)]
pub(super) enum Journal {
    /// Nowhere: they are forgotten when the process ends.
    Memory,
    /// In a file. Its first `length` bytes are whole lines.
    File { file: File, length: u64 },
}

/// The first line. The commands make sense for one fleet only, which the seed identifies.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    simulated_phones: u32,
    seed: u64,
}

impl Journal {
    /// Opens the journal of the fleet with this seed, or creates it, and reads its commands. A last line without a line break was never
    /// answered, and is cut off.
    ///
    /// # Errors
    /// The file cannot be read or written, belongs to another fleet, has another version, or is damaged before its last line.
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

    /// Appends a command, to the page cache only: it survives the end of the process, as promised, but not a power cut. In return
    /// nothing waits for the disk, so this may run under a lock and on a thread that serves requests.
    ///
    /// # Errors
    /// The command could not be written. The next line overwrites any part of it.
    pub(super) fn append(&mut self, taken: &Taken) -> Result<()> {
        let Self::File { file, length } = self else { return Ok(()) };
        let line = line(taken)?;
        file.write_all_at(&line, *length)?;
        *length += line.len() as u64;
        Ok(())
    }
}

/// Checks the journal at `path` without changing it; a fleet may have it open. A missing or empty file is sound.
///
/// # Errors
/// The file cannot be read, is no journal, has another version, or is damaged before its last line.
pub(super) fn examine(path: &Path) -> Result<()> {
    match path.metadata() {
        // Reading from a pipe would wait for a writer.
        Ok(about) if !about.is_file() => Err(wrong(path, NO_JOURNAL)),
        Ok(about) if about.len() > 0 => told(path, &fs::read(path)?).map(drop),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The contents of a journal.
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
