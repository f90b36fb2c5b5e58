//! The watermark: a small file next to a database, by which a loss of its data is detected.
//!
//! SQLite accepts the files that it finds: a log that is missing, or damaged from some byte on,
//! gives an older state. To raise the watermark, the store first increments a number in the
//! database, then, once that is on the disk, the number in the file. Earlier commits precede that
//! increment, so a database with a lower number has lost data. Start at [`raise`].

use super::column::{millis, moment};
use super::connection::{ALONE, connection};
use super::error::DatabaseError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::{durable, hex, json};
use toolwarrant_tasks::task::TaskId;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watermark {
    /// In hexadecimal.
    database: String,
    /// The number of raises.
    sequence: u64,
    /// All earlier commits are in the database.
    at: Timestamp,
    /// For the operator.
    newest_task: Option<String>,
}

#[must_use]
pub fn path_of(database: &Path) -> PathBuf {
    database.with_extension("watermark")
}

/// Returns a watermark that may be written once the transaction is on the disk.
pub(super) fn raise(db: &Connection, at: Timestamp) -> rusqlite::Result<Watermark> {
    let raise = "UPDATE identity SET sequence = sequence + 1, marked_at = ?1
                 RETURNING id, sequence, marked_at, (SELECT max(id) FROM task)";
    db.prepare_cached(raise)?.query_row([millis(at)], watermark)
}

impl Watermark {
    /// Writes durably: after a crash the file is this version or the previous one.
    pub(super) fn write(&self, database: &Path) -> io::Result<()> {
        let line = serde_json::to_string(self)? + "\n";
        durable::replace(&path_of(database), |file| file.write_all(line.as_bytes())).map(drop)
    }
}

/// Checks that a database has the data that its watermark records. Changes nothing, so that the
/// remains of a log can still be examined.
pub(super) fn check(database: &Path, way: &CStr) -> Result<(), DatabaseError> {
    let path = path_of(database);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|source| DatabaseError::File { path: path.clone(), source })?,
    };
    let lost = |what: String| DatabaseError::Lost { path: database.to_owned(), watermark: path.clone(), what };
    let held: Watermark = json::read_bytes(&bytes)
        .map_err(|error| lost(format!("its watermark is damaged, so its former content is not known: {error}")))?;
    let held_until = || match &held.newest_task {
        Some(task) => format!("it held everything until {}, up to {task}", held.at),
        None => format!("it held everything until {}", held.at),
    };
    if !database.exists() {
        return Err(lost(format!("it is missing; {}", held_until())));
    }
    let found = match read(database, way) {
        Ok(found) => found,
        // The code that opens the database reports this.
        Err(error) if error.sqlite_error_code() != Some(ErrorCode::Unknown) => {
            return Err(DatabaseError::Database { path: database.to_owned(), source: error });
        }
        Err(_) => None,
    };
    match found {
        Some(found) if found.database == held.database && found.sequence >= held.sequence => Ok(()),
        Some(found) if found.database == held.database => {
            Err(lost(format!("{}, and the remaining data ends at {}", held_until(), found.at)))
        }
        _ => Err(lost(format!("{}, and this is a different database", held_until()))),
    }
}

fn read(database: &Path, way: &CStr) -> rusqlite::Result<Option<Watermark>> {
    // A connection that only reads does not keep the index in memory.
    let access = if way == ALONE { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    let db = connection(database, access, way)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let newest = "SELECT id, sequence, marked_at, (SELECT max(id) FROM task) FROM identity";
    db.query_row(newest, [], watermark).optional()
}

fn watermark(row: &Row<'_>) -> rusqlite::Result<Watermark> {
    let (id, sequence, at, newest): ([u8; 16], i64, i64, Option<[u8; 16]>) = row.try_into()?;
    let newest_task = newest.map(|id| TaskId::from_bytes(id).to_string());
    Ok(Watermark {
        database: hex::encode(&id),
        sequence: u64::try_from(sequence).unwrap_or(0),
        at: moment(at),
        newest_task,
    })
}
