//! A store on disk: an SQLite database that only one process uses.
//!
//! One thread writes; requests that arrive together share a commit (`writer`). Other threads read
//! (`readers`). When a call returns, its changes are on the disk and survive a power cut.
//! `ownership` refuses a commit to files that the next start would not find. `keeper` and
//! `watermark` let the next start detect a loss. Start at [`Sqlite::open`].

mod acts;
mod column;
mod connection;
mod directory;
mod error;
mod fault;
mod keeper;
mod kept;
mod open;
mod ownership;
mod queue;
mod readers;
mod recovery;
mod rules;
mod tasks;
mod watermark;
mod writer;

pub use error::DatabaseError;
use open::EarlierLayout;
pub use open::{FIRST_LAYOUT, LAYOUT};
pub use recovery::{RestoredData, restore};
pub use watermark::path_of as watermark;

use fault::Fault;
use keeper::Keeper;
use open::Connections;
use ownership::Ownership;
use readers::Readers;
use rusqlite::{Connection, InterruptHandle};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolwarrant_audit::Anchor;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::{Act, ActFilter, StoredAct};
use toolwarrant_core::files::FileStore;
use toolwarrant_core::store::{ApplicationRow, AuditStore, DirectoryStore, KeyRow, RequestCount, SecretUse, Stored};
use toolwarrant_store::{Figure, Integrity, IntegrityRule, Recovery, WriteFigures};
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, DeduplicationKey, Identity, LedgerRow, OpenTask, Record, RefundFilter, StatusCounts,
    TaskFilter, TaskRows, TaskStore, TimelineEvent, WriteAnswer,
};
use toolwarrant_tasks::task::TaskId;
use writer::{WriteCounts, Writer};

/// An open database. Dropping it finishes all requests first.
///
/// A write that fails with a [`StoreError`](toolwarrant_core::store::StoreError) did not happen,
/// with one exception: the disk fails in the middle of a commit and the power is cut right
/// afterwards.
pub struct Sqlite {
    // Dropped in this order: the writer closes the database last, which empties the log; then the
    // lock is released.
    readers: Readers,
    /// Reads that may take minutes.
    inspector: Readers,
    interrupt: InterruptHandle,
    /// `None` after [`Self::open_as_it_is`].
    keeper: Option<Keeper>,
    writer: Arc<Writer>,
    restored_at: Option<Timestamp>,
    _lock: Box<dyn Send + Sync>,
}

impl Sqlite {
    /// Opens a database, creates it if it is missing, and migrates it to the latest layout. Blocks.
    /// Drops `lock`, which keeps other processes away, after the database is closed.
    pub fn open(path: &Path, lock: impl Send + Sync + 'static) -> Result<Self, DatabaseError> {
        let mut connections = open::connect(path, EarlierLayout::Migrate)?;
        let owner = open::take_over(path, &mut connections.writer)?;
        open::load_target_locks(&connections.writer)?;
        Self::connect(path, Box::new(lock), connections, Some(owner))
    }

    /// Opens a database of the latest layout without changing it. The store accepts no tasks.
    pub fn open_as_it_is(path: &Path, lock: impl Send + Sync + 'static) -> Result<Self, DatabaseError> {
        Self::connect(path, Box::new(lock), open::connect(path, EarlierLayout::Refuse)?, None)
    }

    fn connect(
        path: &Path,
        lock: Box<dyn Send + Sync>,
        connections: Connections,
        owner: Option<[u8; 16]>,
    ) -> Result<Self, DatabaseError> {
        let Connections { writer, keeper, readers, inspector } = connections;
        let failed = |source| DatabaseError::Database { path: path.to_owned(), source };
        let restored_at = recovery::restored_at(&writer).map_err(failed)?;
        let interrupt = inspector.get_interrupt_handle();
        let ownership = Ownership::of(path, owner);
        let ownership = ownership.map_err(|source| DatabaseError::File { path: path.to_owned(), source })?;
        let (readers, inspector) = (Readers::start(readers)?, Readers::start(vec![inspector])?);
        let writer = Arc::new(Writer::start(writer, ownership)?);
        let keeper = owner.map(|_| Keeper::start(path, keeper, Arc::clone(&writer), keeper::EVERY)).transpose()?;
        Ok(Self { readers, inspector, interrupt, keeper, writer, restored_at, _lock: lock })
    }

    /// Raises the watermark above a write whose loss must be detected, before it returns.
    fn write_below_watermark<'a, T, F>(&'a self, work: F) -> Stored<'a, T>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        Box::pin(async {
            let written = self.writer.write(work).await?;
            if let Some(keeper) = &self.keeper {
                keeper.raise().await;
            }
            Ok(written)
        })
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.interrupt.interrupt();
    }
}

impl TaskStore for Sqlite {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<WriteAnswer>> {
        self.writer.write(move |db| tasks::repeat(db, &identity))
    }

    fn accept(&self, new: Record, marks: Vec<DeduplicationKey>) -> Stored<'_, Acceptance> {
        Box::pin(async {
            let state = tasks::state(new.id, &new.task)?;
            self.writer.write(move |db| tasks::accept(db, &new, &marks, &state)).await
        })
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        Box::pin(async {
            let state = tasks::state(advance.id, &advance.task)?;
            self.writer.write(move |db| tasks::advance(db, &advance, &state)).await
        })
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        self.readers.read(move |db| tasks::in_flight(db, after, limit))
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        self.readers.read(move |db| tasks::task(db, id))
    }

    fn refunds(&self, filter: RefundFilter) -> Stored<'_, Vec<LedgerRow>> {
        self.readers.read(move |db| tasks::refunds(db, &filter))
    }

    fn count_tasks(&self, filter: TaskFilter) -> Stored<'_, StatusCounts> {
        self.readers.read(move |db| tasks::count(db, &filter))
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, TaskRows> {
        self.readers.read(move |db| tasks::tasks(db, &filter))
    }

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>> {
        self.readers.read(move |db| tasks::timeline(db, id))
    }

    fn entries(&self, id: TaskId) -> Stored<'_, Vec<LedgerRow>> {
        self.readers.read(move |db| tasks::entries(db, id))
    }

    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>> {
        self.readers.read(move |db| tasks::ledger(db, after, limit))
    }

    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32> {
        Box::pin(async move {
            let over = self.readers.read(move |db| kept::cool_downs(db, before, limit)).await?;
            self.writer
                .write(move |db| {
                    kept::purge_cool_downs(db, &over, before)?;
                    let surplus = kept::surplus(db, kept::TASKS_MAX, limit)?;
                    tasks::purge(db, before, limit, surplus)
                })
                .await
        })
    }

    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()> {
        self.writer.write(move |db| tasks::mark(db, &marks))
    }

    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>> {
        self.readers.read(move |db| tasks::marks(db, space, after.as_deref(), limit))
    }

    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.writer.write(move |db| tasks::purge_marks(db, now, limit))
    }
}

impl AuditStore for Sqlite {
    fn audit_anchor(&self) -> Stored<'_, Option<Anchor>> {
        self.readers.read(kept::anchor)
    }

    fn put_audit_anchor(&self, anchor: Anchor) -> Stored<'_, ()> {
        self.writer.write(move |db| kept::put_anchor(db, &anchor))
    }
}

impl FileStore for Sqlite {
    fn files(&self) -> Stored<'_, HashMap<String, Vec<u8>>> {
        self.readers.read(kept::files)
    }

    fn put_files(&self, files: Vec<(String, Vec<u8>)>) -> Stored<'_, ()> {
        self.writer.write(move |db| kept::put_files(db, &files))
    }
}

impl DirectoryStore for Sqlite {
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)> {
        self.readers.read(directory::directory)
    }

    fn latest_time(&self) -> Stored<'_, Option<Timestamp>> {
        self.readers.read(directory::latest_time)
    }

    fn see(&self, now: Timestamp) -> Stored<'_, ()> {
        self.writer.write(move |db| directory::see(db, now))
    }

    fn put_application(&self, application: ApplicationRow, acts: Vec<Act>) -> Stored<'_, ()> {
        self.write_below_watermark(move |db| {
            directory::put_application(db, &application)?;
            acts::put(db, &acts)
        })
    }

    fn put_application_with_key(&self, application: ApplicationRow, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()> {
        self.write_below_watermark(move |db| {
            directory::put_application(db, &application)?;
            directory::put_key(db, &key)?;
            acts::put(db, &acts)
        })
    }

    fn put_key(&self, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()> {
        self.write_below_watermark(move |db| {
            directory::put_key(db, &key)?;
            acts::put(db, &acts)
        })
    }

    fn put_uses(&self, uses: Vec<SecretUse>) -> Stored<'_, ()> {
        self.writer.write(move |db| directory::put_uses(db, &uses))
    }

    fn uses(&self, keys: Option<Vec<String>>) -> Stored<'_, Vec<SecretUse>> {
        self.readers.read(move |db| directory::uses(db, keys))
    }

    fn put_requests(&self, requests: Vec<RequestCount>, since: u64) -> Stored<'_, ()> {
        self.writer.write(move |db| kept::put_requests(db, &requests, since))
    }

    fn requests(&self) -> Stored<'_, Vec<RequestCount>> {
        self.readers.read(kept::requests)
    }

    fn put_acts(&self, acts: Vec<Act>) -> Stored<'_, ()> {
        self.write_below_watermark(move |db| acts::put(db, &acts))
    }

    fn acts(&self, filter: ActFilter) -> Stored<'_, Vec<StoredAct>> {
        self.readers.read(move |db| acts::acts(db, &filter))
    }

    fn acts_of_trail(&self, after: u64, limit: u32) -> Stored<'_, Vec<StoredAct>> {
        self.readers.read(move |db| acts::after(db, after, limit))
    }
}

impl Integrity for Sqlite {
    fn violations(&self, rule: IntegrityRule) -> Stored<'_, Vec<String>> {
        self.inspector.read(move |db| rules::violations(db, rule))
    }

    fn figures(&self) -> Stored<'_, Vec<Figure>> {
        self.inspector.read(kept::figures)
    }

    fn writes(&self) -> WriteFigures {
        let WriteCounts { commits, requests, failures } = &*self.writer.counts;
        let waiting = self.writer.queue_length();
        WriteFigures { commits: commits.get(), requests: requests.get(), failures: failures.get(), waiting }
    }

    fn touch(&self) -> Stored<'_, ()> {
        self.writer.write(open::touch)
    }
}

impl Recovery for Sqlite {
    fn copy_to(&self, path: PathBuf) -> Stored<'_, ()> {
        self.inspector.read(move |db| recovery::copy_to(db, &path))
    }

    fn restored_at(&self) -> Option<Timestamp> {
        self.restored_at
    }

    fn keys_to_confirm(&self) -> Stored<'_, Vec<String>> {
        self.readers.read(recovery::keys_to_confirm)
    }

    fn confirm_keys(&self, keys: Vec<String>, acts: Vec<Act>) -> Stored<'_, ()> {
        self.write_below_watermark(move |db| {
            recovery::confirm_keys(db, &keys)?;
            acts::put(db, &acts)
        })
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sqlite")
    }
}

#[cfg(test)]
mod tests;
