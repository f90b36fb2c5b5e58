//! The audit trail: one line of JSON for every tool call, one file a day, chained by seals.
//!
//! A call reserves a slot before it runs and is refused if there is none, so no line is lost for want of room after an effect.
//! Lines wait in memory for at most a second; one thread appends them. The caller decides what may stand in a line. Start at
//! [`Audit`]; `queue` says how threads queue lines without waiting for each other, `chain` what makes a change of the trail show, which
//! [`verify`](verify::verify) finds.

mod anchor;
mod chain;
mod fold;
mod line;
mod queue;
pub mod retention;
mod trail;
pub mod verify;
mod writer;

pub use anchor::{Anchor, Birth};
pub use chain::{Head, is_chain_line};
pub use line::Line;
pub use queue::Slot;
pub use trail::{TAIL_MAX, days, tail, try_to_write};

use queue::Queue;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::ChainKey;
use writer::Writer;

/// How long [`AuditHandle::flush`] waits.
const FLUSH_PATIENCE: Duration = Duration::from_secs(3);

/// The trail. When dropped, it writes the waiting lines and ends the writer.
#[derive(Debug)]
pub struct Audit {
    queue: Arc<Queue>,
    sealed: watch::Receiver<Head>,
    birth: Option<Birth>,
    writer: Option<JoinHandle<()>>,
}

/// What a trail is started with.
pub struct AuditParts<'a> {
    /// Its folder.
    pub folder: &'a Path,
    /// Makes its hashes.
    pub key: ChainKey,
    /// Tells how long lines wait.
    pub clock: Clock,
    /// What is recorded of it elsewhere, if anything is.
    pub anchor: Option<Anchor>,
}

impl Audit {
    /// Creates the folder if it is missing, readable by the owner alone, and starts the writer, which continues the chain. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// The folder or the thread cannot be created, or the folder cannot be read or written.
    pub fn start(parts: AuditParts<'_>) -> io::Result<Self> {
        let AuditParts { folder, key, clock, anchor } = parts;
        writer::create(folder)?;
        try_to_write(folder)?;
        let queue = Arc::new(Queue::new(clock));
        let unknown = anchor.is_none();
        let (writer, sealed) = Writer::open(folder, key, Arc::clone(&queue), anchor.map(|anchor| anchor.newest))?;
        let begins = *sealed.borrow() == Head::START;
        let birth = match unknown {
            true if begins => Some(trail::birth(folder)?),
            true => Some(Birth::default()),
            false => None,
        };
        let writer = thread::Builder::new().name("audit".to_owned()).spawn(|| writer.run())?;
        Ok(Self { queue, sealed, birth, writer: Some(writer) })
    }

    /// What has to be recorded before the first line, if nothing was.
    #[must_use]
    pub fn first_anchor(&self) -> Option<Anchor> {
        let newest = *self.sealed.borrow();
        self.birth.clone().map(|birth| Anchor { newest, pruned: Head::START, birth })
    }

    /// Reserves a slot for one line. `None`: all are taken, and the call must not run.
    #[must_use]
    pub fn reserve(&self) -> Option<Slot<'_>> {
        self.queue.reserve()
    }

    /// Whether calls that change something must be refused: a line has waited for 10 seconds at `now`, because the disk fails or the
    /// writer is stuck.
    #[must_use]
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.queue.stale(now).is_some()
    }

    /// Returns a handle for those who watch over the trail.
    #[must_use]
    pub fn handle(&self) -> AuditHandle {
        AuditHandle { queue: Arc::clone(&self.queue), sealed: self.sealed.clone() }
    }

    /// Writes the waiting lines and ends the writer. Blocks for as long as the disk takes.
    pub fn stop(self) {
        drop(self);
    }
}

/// Tells how an audit does. It may outlive it.
#[derive(Clone, Debug)]
pub struct AuditHandle {
    queue: Arc<Queue>,
    sealed: watch::Receiver<Head>,
}

impl AuditHandle {
    /// Returns the slots in use, by running calls and by lines that are not yet in a file.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.queue.taken()
    }

    /// How long the line that waits for longest has not been written, if that is so long that calls are refused.
    #[must_use]
    pub fn stale(&self) -> Option<Duration> {
        self.queue.stale(self.queue.clock.now())
    }

    /// Makes the writer open its file by name again, once it has written what waits. Does not block.
    pub fn reopen(&self) {
        self.queue.reopen();
    }

    /// Makes the writer write all lines that wait, and waits for that, up to a few seconds: a disk may be slow or full.
    pub async fn flush(&self) {
        let asked = self.queue.flush();
        let mut answered = self.queue.answered.subscribe();
        let _ = tokio::time::timeout(FLUSH_PATIENCE, answered.wait_for(|answered| *answered >= asked)).await;
    }

    /// Receives the newest seal that is on the disk, each minute while lines are written, and at the stop. Closed once the writer has
    /// ended.
    #[must_use]
    pub fn sealed(&self) -> watch::Receiver<Head> {
        self.sealed.clone()
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.queue.stop();
        if self.writer.take().is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the audit writer has panicked; lines are lost");
        }
    }
}

#[cfg(test)]
mod tests;
