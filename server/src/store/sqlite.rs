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

use super::{
    Accepted, Advance, Advanced, Answer, ApplicationRow, Broken, Happening, Identity, InFlight, KeyRow, LedgerRow,
};
use super::{NewTask, Record, Rule, Store, Unfinished, Which};
use crate::clock::Timestamp;
use crate::data::DataFolder;
use crate::tasks::task::TaskId;
use crate::telemetry::Written;
use open::Connections;
use readers::Readers;
use rusqlite::InterruptHandle;
use std::fmt;
use writer::Writer;

/// An open database. Dropping it waits until all that was asked for is done.
///
/// Who gets [`Broken`] for a write can take it for not written. The one exception is a disk that fails in the middle of a
/// commit and a loss of power right afterwards: then it may turn out to be written after all, as a whole.
pub struct Sqlite {
    // In the order in which they end: the writer is the last to close the database, which empties its log; then the lock.
    readers: Readers,
    /// One that may take minutes, so that no other read waits for it.
    inspector: Readers,
    /// Ends what the inspector is doing.
    interrupt: InterruptHandle,
    writer: Writer,
    folder: DataFolder,
    /// The database's file, as it was opened.
    file: Option<(u64, u64)>,
}

impl Sqlite {
    /// Opens the database of `folder`, which it keeps for itself, and brings its layout up to date. Blocks for as long as
    /// the disk takes.
    ///
    /// # Errors
    /// A newer program has written it, or it cannot be opened.
    pub fn open(folder: &DataFolder) -> Result<Self, OpenError> {
        let connections = open::connect(folder, 0)?;
        open::hold_lanes(&connections.writer)?;
        Self::connected(folder, connections)
    }

    /// The same, where that changes nothing: of a database that has the latest layout. It takes no task on.
    ///
    /// # Errors
    /// Another program has written it, be it newer or older, or it cannot be opened.
    pub fn open_as_it_is(folder: &DataFolder) -> Result<Self, OpenError> {
        Self::connected(folder, open::connect(folder, open::LAYOUT)?)
    }

    fn connected(folder: &DataFolder, connections: Connections) -> Result<Self, OpenError> {
        let Connections { writer, readers, inspector } = connections;
        let interrupt = inspector.get_interrupt_handle();
        let (readers, inspector) = (Readers::start(readers)?, Readers::start(vec![inspector])?);
        let (writer, file) = (Writer::start(writer)?, folder.database_file());
        Ok(Self { readers, inspector, interrupt, writer, folder: folder.clone(), file })
    }
}

impl Sqlite {
    /// What it has written, and how many writes wait.
    #[must_use]
    pub fn written(&self) -> (&Written, usize) {
        (&self.writer.counts, self.writer.waiting())
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.interrupt.interrupt();
    }
}

impl Store for Sqlite {
    fn repeat(&self, identity: Identity) -> Answer<'_, Option<InFlight>> {
        self.writer.write(move |db| tasks::repeat(db, &identity))
    }

    fn accept(&self, new: NewTask) -> Answer<'_, Accepted> {
        Box::pin(async {
            let state = tasks::ready(&new, new.at)?;
            self.writer.write(move |db| tasks::accept(db, &new, &state)).await
        })
    }

    fn advance(&self, advance: Advance) -> Answer<'_, Advanced> {
        Box::pin(async {
            let state = tasks::state(advance.id, &advance.task)?;
            self.writer.write(move |db| tasks::advance(db, &advance, &state)).await
        })
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Answer<'_, Vec<Unfinished>> {
        self.readers.read(move |db| tasks::in_flight(db, after, limit))
    }

    fn task(&self, id: TaskId) -> Answer<'_, Option<Record>> {
        self.readers.read(move |db| tasks::task(db, id))
    }

    fn tasks(&self, which: Which) -> Answer<'_, Vec<Record>> {
        self.readers.read(move |db| tasks::tasks(db, &which))
    }

    fn timeline(&self, id: TaskId) -> Answer<'_, Vec<Happening>> {
        self.readers.read(move |db| tasks::timeline(db, id))
    }

    fn ledger(&self, after: u64, limit: u32) -> Answer<'_, Vec<LedgerRow>> {
        self.readers.read(move |db| tasks::ledger(db, after, limit))
    }

    fn purge(&self, before: Timestamp, limit: u32) -> Answer<'_, u32> {
        self.writer.write(move |db| tasks::purge(db, before, limit))
    }

    fn directory(&self) -> Answer<'_, (Vec<ApplicationRow>, Vec<KeyRow>)> {
        self.readers.read(directory::directory)
    }

    fn put_application(&self, application: ApplicationRow) -> Answer<'_, ()> {
        self.writer.write(move |db| directory::put_application(db, &application))
    }

    fn put_key(&self, key: KeyRow) -> Answer<'_, ()> {
        self.writer.write(move |db| directory::put_key(db, &key))
    }

    fn violations(&self, rule: Rule) -> Answer<'_, Vec<String>> {
        self.inspector.read(move |db| rules::violations(db, rule))
    }

    fn touch(&self) -> Answer<'_, ()> {
        let (folder, file) = (self.folder.clone(), self.file);
        self.writer.write(move |db| {
            if folder.database_file() != file {
                let folder = folder.path().display();
                let why = "was removed or replaced, and what is written is lost when the server stops";
                return Err(Broken(format!("the database that was opened in `{folder}` {why}")));
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

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
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
