//! A store on one disk: an SQLite database in a folder that one process has to itself.
//!
//! One thread writes, and requests that arrive together share a commit (`writer`); a few others read (`readers`). What an
//! answer says is on the disk by then, and survives the loss of power. What is asked of SQL stands in `tasks`, `directory` and
//! `rules`; how the folder is opened and brought up to date, in `open`.

mod directory;
mod open;
mod queue;
mod readers;
mod rules;
mod tasks;
mod writer;

pub use open::OpenError;

use crate::rules::{Integrity, Rule};
use open::Connections;
use readers::Readers;
use rusqlite::InterruptHandle;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::counts::Count;
use toolwarrant_core::store::{ApplicationRow, DirectoryStore, KeyRow, StoreError, Stored};
use toolwarrant_tasks::store::{
    Accepted, Advance, Advanced, Happening, Identity, InFlight, LedgerRow, Mark, NewTask, Record, TaskStore,
    Unfinished, Which,
};
use toolwarrant_tasks::task::TaskId;
use writer::Writer;

/// An open database. Dropping it waits until all that was asked for is done.
///
/// Who gets [`StoreError`] for a write can take it for not written. The one exception is a disk that fails in the middle of a
/// commit and a loss of power right afterwards: then it may turn out to be written after all, as a whole.
pub struct Sqlite {
    // In the order in which they end: the writer is the last to close the database, which empties its log; then the lock.
    readers: Readers,
    /// One that may take minutes, so that no other read waits for it.
    inspector: Readers,
    /// Ends what the inspector is doing.
    interrupt: InterruptHandle,
    writer: Writer,
    path: PathBuf,
    /// The database's file, as it was opened.
    file: FileId,
    /// What keeps other processes away.
    _lock: Box<dyn Send + Sync>,
}

/// How a database is opened.
#[derive(Debug)]
pub struct OpenOptions<'a, Lock> {
    /// Its file.
    pub path: &'a Path,
    /// The resource of all grants up to layout 4, which name none: the first of the contract.
    pub former_resource: &'a str,
    /// Keeps other processes away. Dropped once the database is closed.
    pub lock: Lock,
}

/// Which file lies at a path: its device and inode; `None` if there is none.
type FileId = Option<(u64, u64)>;

impl Sqlite {
    /// Opens the database at `path`, which it makes if it is missing, and brings its layout up to date. Blocks for as long as the
    /// disk takes.
    ///
    /// # Errors
    /// A newer program has written it, or it cannot be opened.
    pub fn open(options: OpenOptions<'_, impl Send + Sync + 'static>) -> Result<Self, OpenError> {
        let OpenOptions { path, former_resource, lock } = options;
        let connections = open::connect(path, former_resource, 0)?;
        open::hold_lanes(&connections.writer)?;
        Self::connected(path, Box::new(lock), connections)
    }

    /// The same, where that changes nothing: of a database that has the latest layout. It takes no task on.
    ///
    /// # Errors
    /// Another program has written it, be it newer or older, or it cannot be opened.
    pub fn open_as_it_is(options: OpenOptions<'_, impl Send + Sync + 'static>) -> Result<Self, OpenError> {
        let OpenOptions { path, former_resource, lock } = options;
        Self::connected(path, Box::new(lock), open::connect(path, former_resource, open::LAYOUT)?)
    }

    fn connected(path: &Path, lock: Box<dyn Send + Sync>, connections: Connections) -> Result<Self, OpenError> {
        let Connections { writer, readers, inspector } = connections;
        let interrupt = inspector.get_interrupt_handle();
        let (readers, inspector) = (Readers::start(readers)?, Readers::start(vec![inspector])?);
        let (writer, file) = (Writer::start(writer)?, file_id(path));
        Ok(Self { readers, inspector, interrupt, writer, path: path.to_owned(), file, _lock: lock })
    }

    /// What it has written, and how many writes wait.
    #[must_use]
    pub fn written(&self) -> (&WriteCounts, usize) {
        (&self.writer.counts, self.writer.waiting())
    }
}

/// What a store has written since it was opened.
#[derive(Debug, Default)]
pub struct WriteCounts {
    /// Transactions that reached the disk.
    pub commits: Count,
    /// Requests in them.
    pub requests: Count,
    /// Transactions that failed.
    pub failures: Count,
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.interrupt.interrupt();
    }
}

impl TaskStore for Sqlite {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<InFlight>> {
        self.writer.write(move |db| tasks::repeat(db, &identity))
    }

    fn accept(&self, new: NewTask) -> Stored<'_, Accepted> {
        Box::pin(async {
            let state = tasks::ready(&new, new.at)?;
            self.writer.write(move |db| tasks::accept(db, &new, &state)).await
        })
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        Box::pin(async {
            let state = tasks::state(advance.id, &advance.task)?;
            self.writer.write(move |db| tasks::advance(db, &advance, &state)).await
        })
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<Unfinished>> {
        self.readers.read(move |db| tasks::in_flight(db, after, limit))
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        self.readers.read(move |db| tasks::task(db, id))
    }

    fn tasks(&self, which: Which) -> Stored<'_, Vec<Record>> {
        self.readers.read(move |db| tasks::tasks(db, &which))
    }

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<Happening>> {
        self.readers.read(move |db| tasks::timeline(db, id))
    }

    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>> {
        self.readers.read(move |db| tasks::ledger(db, after, limit))
    }

    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.writer.write(move |db| tasks::purge(db, before, limit))
    }

    fn mark(&self, marks: Vec<Mark>) -> Stored<'_, ()> {
        self.writer.write(move |db| tasks::mark(db, &marks))
    }

    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.writer.write(move |db| tasks::purge_marks(db, now, limit))
    }
}

impl DirectoryStore for Sqlite {
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)> {
        self.readers.read(directory::directory)
    }

    fn put_application(&self, application: ApplicationRow) -> Stored<'_, ()> {
        self.writer.write(move |db| directory::put_application(db, &application))
    }

    fn put_key(&self, key: KeyRow) -> Stored<'_, ()> {
        self.writer.write(move |db| directory::put_key(db, &key))
    }
}

impl Integrity for Sqlite {
    fn violations(&self, rule: Rule) -> Stored<'_, Vec<String>> {
        self.inspector.read(move |db| rules::violations(db, rule))
    }

    fn touch(&self) -> Stored<'_, ()> {
        let (path, file) = (self.path.clone(), self.file);
        self.writer.write(move |db| {
            if file_id(&path) != file {
                let folder = path.parent().unwrap_or(&path).display();
                let why = "was removed or replaced, and what is written is lost when the server stops";
                return Err(Fault::unavailable(format!("the database that was opened in `{folder}` {why}")));
            }
            open::touch(db)
        })
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sqlite")
    }
}

/// A [`StoreError`] that SQLite's own errors become by `?`.
#[derive(Clone, Debug)]
struct Fault(StoreError);

impl Fault {
    fn conflict(what: String) -> Self {
        Self(StoreError::Conflict(what))
    }

    fn unavailable(what: String) -> Self {
        Self(StoreError::Unavailable(what))
    }

    fn corrupt(what: String) -> Self {
        Self(StoreError::Corrupt(what))
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{ConstraintViolation, DatabaseCorrupt, NotADatabase};
        let what = error.to_string();
        match (&error, error.sqlite_error_code()) {
            (_, Some(ConstraintViolation)) => Self::conflict(what),
            (_, Some(DatabaseCorrupt | NotADatabase)) | (rusqlite::Error::FromSqlConversionFailure(..), _) => {
                Self::corrupt(what)
            }
            _ => Self::unavailable(what),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(Fault(error): Fault) -> Self {
        error
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn file_id(path: &Path) -> FileId {
    path.metadata().ok().map(|about| (about.dev(), about.ino()))
}

/// A moment as a column keeps it.
fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

/// A moment from a column; one before the epoch was never written, and is read as the epoch.
fn moment(millis: i64) -> Timestamp {
    Timestamp(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests;
