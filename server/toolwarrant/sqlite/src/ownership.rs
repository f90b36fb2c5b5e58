//! Checks before each commit that the next start will find the committed data, and that the
//! database still belongs to this process.
//!
//! Files can be moved, replaced or removed while they are open. SQLite then writes to files that no
//! path leads to, so such a commit must not be acknowledged. Another process that opens the
//! database becomes its owner, even if a lock should have prevented that.

use super::fault::Fault;
use rusqlite::Connection;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Ownership {
    folder: PathBuf,
    /// The database, its log and the index of the log.
    files: Vec<(PathBuf, FileId)>,
    /// `None` if the process only reads.
    owner: Option<[u8; 16]>,
}

/// File system and inode.
type FileId = (u64, u64);

impl Ownership {
    /// Runs in the transaction that `writer` is in.
    pub(super) fn take(writer: &Connection) -> rusqlite::Result<[u8; 16]> {
        writer.query_row("UPDATE identity SET owner = randomblob(16) RETURNING owner", [], |row| row.get(0))
    }

    /// Continues as the former owner, which has ended: on a full disk nothing can be written.
    pub(super) fn inherit(writer: &Connection) -> rusqlite::Result<[u8; 16]> {
        writer.query_row("SELECT owner FROM identity", [], |row| row.get(0))
    }

    /// Takes a database that has been written to before.
    pub(super) fn of(database: &Path, owner: Option<[u8; 16]>) -> io::Result<Self> {
        let file = |end: &str| {
            let mut name = database.as_os_str().to_owned();
            name.push(end);
            let path = PathBuf::from(name);
            let id = id(&path)?;
            io::Result::Ok((path, id))
        };
        let folder = database.parent().unwrap_or(database).to_owned();
        // The index may be in memory.
        let ends = ["", "-wal", "-shm"].into_iter().filter(|end| *end != "-shm" || file(end).is_ok());
        Ok(Self { folder, files: ends.map(file).collect::<io::Result<_>>()?, owner })
    }

    /// Runs inside a transaction that is about to be committed.
    pub(super) fn check(&self, transaction: &Connection) -> Result<(), Fault> {
        let Self { folder, files, owner } = self;
        if files.iter().any(|(path, was)| !id(path).is_ok_and(|is| is == *was)) {
            let folder = folder.display();
            let why = "was removed or replaced, and nothing is written until it is back";
            return Err(Fault::unavailable(format!("the database that was opened in `{folder}` {why}")));
        }
        let Some(owner) = owner else { return Ok(()) };
        let ours = "SELECT owner IS ?1 FROM identity";
        if transaction.prepare_cached(ours)?.query_row([owner], |row| row.get(0))? {
            return Ok(());
        }
        let folder = folder.display();
        Err(Fault::unavailable(format!("another process has taken over the database in `{folder}`; stop this one")))
    }
}

fn id(path: &Path) -> io::Result<FileId> {
    path.metadata().map(|about| (about.dev(), about.ino()))
}
