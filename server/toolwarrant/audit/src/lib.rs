//! The audit trail: one line of JSON for every tool call, in files of one day each, chained by
//! seals.
//!
//! A call reserves a slot before it runs and is refused if there is none. So an effect never
//! happens without room for its line. Lines wait in memory for at most a second; one thread appends
//! them. The caller decides what a line contains. Start at [`Audit`]. `queue` explains how threads
//! queue lines without waiting for each other. `chain` makes a change of the trail visible, and
//! [`verify`](verify::verify) finds it.

mod anchor;
mod chain;
mod fold;
mod line;
mod queue;
pub mod retention;
mod trail;
pub mod verify;
mod writer;

pub use anchor::Anchor;
pub use chain::{Head, is_chain_line};
pub use line::Line;
pub use queue::Slot;
pub use trail::{TAIL_MAX, TrailPlace, VisitedPart, days, end_of_trail, read_after, tail, try_to_write, visit_back};

use queue::Queue;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::ChainKey;
use writer::Writer;

/// Time for which [`AuditHandle::flush`] waits at most.
const FLUSH_PATIENCE: Duration = Duration::from_secs(3);

/// The trail. When dropped, it writes the waiting lines and ends the writer.
#[derive(Debug)]
pub struct Audit {
    queue: Arc<Queue>,
    sealed: watch::Receiver<Head>,
    writer: Option<JoinHandle<()>>,
}

/// The arguments for starting a trail.
pub struct AuditParts<'a> {
    /// Its folder.
    pub folder: &'a Path,
    /// The key of the chain's hashes.
    pub key: ChainKey,
    /// The clock by which lines wait.
    pub clock: Clock,
    /// The record of the trail that is stored elsewhere, if there is one.
    pub anchor: Option<Anchor>,
    /// The size in bytes from which a file gets no further lines. The day then has another file.
    pub file_max: u64,
}

impl Audit {
    /// Starts the writer, which continues the chain. Creates the folder if it is missing, readable
    /// only by its owner. Blocks on the disk.
    ///
    /// # Errors
    /// The folder or the thread cannot be created, or the folder cannot be read or written.
    pub fn start(parts: AuditParts<'_>) -> io::Result<Self> {
        let AuditParts { folder, key, clock, anchor, file_max } = parts;
        writer::create(folder)?;
        try_to_write(folder)?;
        let queue = Arc::new(Queue::new(clock));
        let (mut writer, sealed) = Writer::open(folder, key, Arc::clone(&queue), anchor.map(|anchor| anchor.newest))?;
        writer.file_max = file_max;
        let writer = thread::Builder::new().name("audit".to_owned()).spawn(|| writer.run())?;
        Ok(Self { queue, sealed, writer: Some(writer) })
    }

    /// Returns the record to store before the first line is written, if none is stored yet.
    #[must_use]
    pub fn first_anchor(&self) -> Anchor {
        Anchor { newest: *self.sealed.borrow(), pruned: Head::START }
    }

    /// Reserves a slot for one line. Returns `None` if all are taken; the call must then not run.
    #[must_use]
    pub fn reserve(&self) -> Option<Slot<'_>> {
        self.queue.reserve()
    }

    /// Returns true if calls that change something must be refused: at `now`, a line has waited for
    /// 10 seconds, because the disk fails or the writer is stuck.
    #[must_use]
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.queue.stale(now).is_some()
    }

    /// Returns a handle for monitoring the trail.
    #[must_use]
    pub fn handle(&self) -> AuditHandle {
        AuditHandle { queue: Arc::clone(&self.queue), sealed: self.sealed.clone() }
    }

    /// Writes the waiting lines and ends the writer. Blocks until the disk is done.
    pub fn stop(self) {
        drop(self);
    }
}

/// Reports the state of an audit. It may outlive the audit.
#[derive(Clone, Debug)]
pub struct AuditHandle {
    queue: Arc<Queue>,
    sealed: watch::Receiver<Head>,
}

impl AuditHandle {
    /// Returns the number of slots in use by running calls and by lines that are not in a file yet.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.queue.slots_in_use()
    }

    /// Returns how long the oldest waiting line has waited, if that is long enough to refuse calls.
    #[must_use]
    pub fn stale(&self) -> Option<Duration> {
        self.queue.stale(self.queue.clock.now())
    }

    /// Makes the writer write what waits and then open its file by name again. Does not block.
    pub fn reopen(&self) {
        self.queue.reopen();
    }

    /// Makes the writer write all waiting lines. Waits for that, but only for a few seconds,
    /// because the disk may be slow or full. Returns true if they are in their files.
    pub async fn flush(&self) -> bool {
        let asked = self.queue.flush();
        let mut answered = self.queue.answered.subscribe();
        let written = tokio::time::timeout(FLUSH_PATIENCE, answered.wait_for(|answered| *answered >= asked)).await;
        written.is_ok() && !self.queue.failing.load(Relaxed)
    }

    /// Queues a line that is not about a call: `json` is one object without line breaks. It goes
    /// into the file of the day of `time`. Returns false if all slots are taken.
    #[must_use]
    pub fn write_json(&self, time: Timestamp, json: &str) -> bool {
        self.queue.reserve().map(|slot| slot.write_json(time, json)).is_some()
    }

    /// Queues the line of a refused command as [`Self::write_json`] does. If its operator was
    /// refused often in this minute, the command is only counted, and the second line is written
    /// later with the count. `command` names the commands that are counted together.
    #[must_use]
    pub fn refuse_json(&self, time: Timestamp, (operator, command): (&str, &str), lines: [&str; 2]) -> bool {
        self.queue.reserve().map(|slot| slot.refuse_json(time, (operator, command), lines)).is_some()
    }

    /// Returns a receiver of the newest seal that is on the disk. It is updated each minute while
    /// lines are written, and when the writer stops. It closes when the writer has ended.
    #[must_use]
    pub fn seals(&self) -> watch::Receiver<Head> {
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
