//! Checks before each commit that the next start will find the committed data, and that the
//! database still belongs to this process.
//!
//! Files can be moved, replaced or removed while they are open. SQLite then writes to files that no
//! path leads to, so such a commit must not be acknowledged. Another process that opens the
//! database becomes its owner, even if a lock should have prevented that.

use super::fault::Fault;
use rusqlite::Connection;
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Ownership {
    folder: PathBuf,
    /// The database, its log and the index of the log.
    files: Vec<(PathBuf, FileId)>,
    owner: Cell<Owner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The process only reads.
    Nobody,
    /// This process, under this mark.
    Us([u8; 16]),
    /// This process, from its first commit on.
    UsLater,
}

/// File system and inode.
type FileId = (u64, u64);

impl Ownership {
    /// Runs in the transaction that `writer` is in.
    pub(super) fn take(writer: &Connection) -> rusqlite::Result<[u8; 16]> {
        writer.query_row("UPDATE identity SET owner = randomblob(16) RETURNING owner", [], |row| row.get(0))
    }

    /// Takes a database that has been written to before.
    pub(super) fn of(database: &Path, owner: Owner) -> io::Result<Self> {
        let file = |end: &str| {
            let mut name = database.as_os_str().to_owned();
            name.push(end);
            let path = PathBuf::from(name);
            let id = id(&path)?;
            io::Result::Ok((path, id))
        };
        let folder = database.parent().unwrap_or(database).to_owned();
        let mut files = vec![file("")?, file("-wal")?];
        match file("-shm") {
            // It is in memory.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            index => files.push(index?),
        }
        Ok(Self { folder, files, owner: Cell::new(owner) })
    }

    /// Runs inside a transaction that is about to be committed. Returns the owner to
    /// [set](Self::set) afterwards.
    pub(super) fn check(&self, transaction: &Connection, is_changed: bool) -> Result<Owner, Fault> {
        let Self { folder, files, owner } = self;
        if files.iter().any(|(path, was)| !id(path).is_ok_and(|is| is == *was)) {
            let folder = folder.display();
            let why = "was removed or replaced, and nothing is written until it is back";
            return Err(Fault::unavailable(format!("the database that was opened in `{folder}` {why}")));
        }
        let mark = match owner.get() {
            Owner::Us(mark) => mark,
            Owner::UsLater if is_changed => return Ok(Owner::Us(Self::take(transaction)?)),
            owner => return Ok(owner),
        };
        let ours = "SELECT owner IS ?1 FROM identity";
        if transaction.prepare_cached(ours)?.query_row([mark], |row| row.get(0))? {
            return Ok(Owner::Us(mark));
        }
        let folder = folder.display();
        Err(Fault::unavailable(format!("another process has taken over the database in `{folder}`; stop this one")))
    }

    pub(super) fn set(&self, owner: Owner) {
        self.owner.set(owner);
    }
}

fn id(path: &Path) -> io::Result<FileId> {
    path.metadata().map(|about| (about.dev(), about.ino()))
}
