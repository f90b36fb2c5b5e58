//! The thread that copies the log into the database and raises the watermark: on request, and every
//! minute if something was committed since. It has its own connection and its checkpoints are
//! passive, so it and the writer do not wait for each other. Start at [`Keeper::start`].

use super::watermark;
use super::writer::Writer;
use rusqlite::Connection;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use toolwarrant_base::clock::{Clock, Timestamp};

pub(super) const EVERY: Duration = Duration::from_mins(1);

/// Dropping it raises the watermark once more if anything was committed since.
pub(super) struct Keeper {
    asked: Option<Sender<oneshot::Sender<()>>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Takes a `connection` that can write.
    pub(super) fn start(
        database: &Path,
        connection: Connection,
        writer: Arc<Writer>,
        every: Duration,
    ) -> io::Result<Self> {
        let (asked, asks) = mpsc::channel::<oneshot::Sender<()>>();
        let runtime = Builder::new_current_thread().build()?;
        let mut work =
            KeeperState { database: database.to_owned(), connection, writer, runtime, failing: false, raised: 0 };
        work.raised = work.writer.counts.commits.get();
        let thread = thread::Builder::new().name("store-keeper".to_owned()).spawn(move || {
            loop {
                match asks.recv_timeout(every) {
                    Ok(done) => {
                        work.raise();
                        let _ = done.send(());
                    }
                    Err(RecvTimeoutError::Timeout) => work.raise_if_due(),
                    Err(RecvTimeoutError::Disconnected) => return work.raise_if_due(),
                }
            }
        })?;
        Ok(Self { asked: Some(asked), thread: Some(thread) })
    }

    pub(super) async fn raise(&self) {
        let (done, told) = oneshot::channel();
        if self.asked.as_ref().is_some_and(|asked| asked.send(done).is_ok()) {
            let _ = told.await;
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.asked = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that raises the watermark has panicked");
        }
    }
}

/// Leaves out the pages that a reader still needs.
pub(super) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

pub(super) fn now() -> Timestamp {
    Clock::system().wall()
}

struct KeeperState {
    database: PathBuf,
    connection: Connection,
    writer: Arc<Writer>,
    runtime: Runtime,
    /// A burst of failures is logged once.
    failing: bool,
    /// In commits.
    raised: u64,
}

impl KeeperState {
    fn raise_if_due(&mut self) {
        if self.writer.counts.commits.get() > self.raised {
            self.raise();
        }
    }

    fn raise(&mut self) {
        let (at, before) = (now(), self.writer.counts.commits.get());
        let raised = self.runtime.block_on(self.writer.write(move |db| Ok(watermark::raise(db, at)?)));
        // Also on a full disk, where it makes room in the log.
        let checkpointed = checkpoint(&self.connection).map_err(|error| error.to_string());
        let done = raised.map_err(|error| error.to_string());
        let done = done.and_then(|raised| raised.write(&self.database).map_err(|error| error.to_string()));
        match done.and(checkpointed) {
            Ok(()) => {
                // Commits made in between may be above the watermark, so they need another raise.
                self.raised = before + 1;
                self.failing = false;
            }
            Err(why) if !self.failing => {
                self.failing = true;
                tracing::warn!(%why, "the watermark of the database could not be raised; retrying");
            }
            Err(_) => {}
        }
    }
}
