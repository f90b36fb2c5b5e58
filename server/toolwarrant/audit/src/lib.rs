//! The audit trail: one line of JSON for every tool call, in files of one day each, chained by
//! seals.
//!
//! A call reserves a slot before it runs and is refused if there is none, so an effect never
//! happens without room for its line. Lines wait in memory for at most a second; one thread appends
//! them.
//!
//! Start at [`Audit`]. `chain` makes a change of the trail visible, and [`verify`](verify::verify)
//! finds it.

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
pub use trail::{TAIL_MAX, TrailPlace, VisitedPart, days, tail, try_to_write, visit_back};

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

const FLUSH_PATIENCE: Duration = Duration::from_secs(3);

/// The trail. When dropped, it writes the waiting lines and ends the writer.
#[derive(Debug)]
pub struct Audit {
    queue: Arc<Queue>,
    sealed: watch::Receiver<Head>,
    writer: Option<JoinHandle<()>>,
}

pub struct AuditParts<'a> {
    pub folder: &'a Path,
    pub key: ChainKey,
    pub clock: Clock,
    pub anchor: Option<Anchor>,
    /// In bytes. A larger file gets no further lines, and the day has another file.
    pub file_max: u64,
}

impl Audit {
    /// Continues the chain. Creates a missing folder, readable only by its owner. Blocks on the
    /// disk.
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

    /// Returns the record to store before the first line is written.
    #[must_use]
    pub fn first_anchor(&self) -> Anchor {
        Anchor { newest: *self.sealed.borrow(), pruned: Head::START, acts: 0 }
    }

    /// Returns `None` if all slots are taken; the call must then not run.
    #[must_use]
    pub fn reserve(&self) -> Option<Slot<'_>> {
        self.queue.reserve()
    }

    /// Returns true if calls that change something must be refused: a line has waited for 10
    /// seconds.
    #[must_use]
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.queue.stale(now).is_some()
    }

    #[must_use]
    pub fn handle(&self) -> AuditHandle {
        AuditHandle { queue: Arc::clone(&self.queue), sealed: self.sealed.clone() }
    }

    pub fn stop(self) {
        drop(self);
    }
}

#[derive(Clone, Debug)]
pub struct AuditHandle {
    queue: Arc<Queue>,
    sealed: watch::Receiver<Head>,
}

impl AuditHandle {
    #[must_use]
    pub fn slots(&self) -> usize {
        self.queue.slots_in_use()
    }

    /// Returns the wait of the oldest line, if that is long enough to refuse calls.
    #[must_use]
    pub fn stale(&self) -> Option<Duration> {
        self.queue.stale(self.queue.clock.now())
    }

    /// Returns the age of the newest seal that this process has put on the disk. Before the first,
    /// the time since the start.
    #[must_use]
    pub fn seal_age(&self) -> Duration {
        self.queue.clock.now().since(Timestamp(self.queue.sealed_at.load(Relaxed)))
    }

    pub fn reopen(&self) {
        self.queue.reopen();
    }

    /// Returns true if all waiting lines are in their files. Waits at most a few seconds.
    pub async fn flush(&self) -> bool {
        let turned = tokio::time::timeout(FLUSH_PATIENCE, self.turn()).await;
        turned.is_ok() && !self.queue.failing.load(Relaxed)
    }

    /// Returns once the writer has tried to write all waiting lines.
    pub async fn turn(&self) {
        let asked = self.queue.flush();
        let mut answered = self.queue.answered.subscribe();
        let _ = answered.wait_for(|answered| *answered >= asked).await;
    }

    /// Queues a line that belongs to no request. It is lost if all slots are taken.
    pub fn write(&self, line: &Line<'_>) {
        match self.queue.reserve() {
            Some(slot) => slot.write(line),
            None => tracing::error!(request_id = line.request_id, "a line of the audit is lost: all slots are taken"),
        }
    }

    /// Queues one object without line breaks. Returns false if all slots are taken.
    #[must_use]
    pub fn write_json(&self, time: Timestamp, json: &str) -> bool {
        self.queue.reserve().map(|slot| slot.write_json(time, json)).is_some()
    }

    /// Counts the command if its operator was refused often in this minute. The second line is then
    /// written later with the count. `command` groups the counted commands.
    #[must_use]
    pub fn refuse_json(&self, time: Timestamp, (operator, command): (&str, &str), lines: [&str; 2]) -> bool {
        self.queue.reserve().map(|slot| slot.refuse_json(time, (operator, command), lines)).is_some()
    }

    /// Returns the newest seal that is on the disk, which changes each minute while lines are
    /// written.
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
