//! Whether what is committed will be found again, and belongs to this process: checked before each commit.
//!
//! Files can be moved, replaced or removed while they are open. SQLite writes on to what nobody will find, so such a commit must not
//! be acknowledged. Another process that opens the database becomes its owner, whatever became of the locks between the two.

use super::fault::Fault;
use rusqlite::Connection;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The database that a process has opened, and that it owns.
#[derive(Debug)]
pub(super) struct Ownership {
    folder: PathBuf,
    /// The database, its log and the index of that.
    files: [(PathBuf, FileId); 3],
    /// `None` for who only looks.
    owner: Option<[u8; 16]>,
}

/// A file by its file system and inode.
type FileId = (u64, u64);

impl Ownership {
    /// Becomes the owner of an open database, in the transaction that `writer` is in.
    pub(super) fn take(writer: &Connection) -> rusqlite::Result<[u8; 16]> {
        writer.query_row("UPDATE identity SET owner = randomblob(16) RETURNING owner", [], |row| row.get(0))
    }

    /// Remembers the files of the database, which has been written to by now.
    ///
    /// # Errors
    /// One of them is not there.
    pub(super) fn of(database: &Path, owner: Option<[u8; 16]>) -> io::Result<Self> {
        let file = |end: &str| {
            let mut name = database.as_os_str().to_owned();
            name.push(end);
            let path = PathBuf::from(name);
            let id = id(&path)?;
            io::Result::Ok((path, id))
        };
        let folder = database.parent().unwrap_or(database).to_owned();
        Ok(Self { folder, files: [file("")?, file("-wal")?, file("-shm")?], owner })
    }

    /// Checks both inside a transaction that is about to be committed.
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
        Err(Fault::unavailable(format!("another process has the database in `{folder}`; stop this one")))
    }
}

fn id(path: &Path) -> io::Result<FileId> {
    path.metadata().map(|about| (about.dev(), about.ino()))
}
