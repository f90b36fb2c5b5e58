//! The audit trail: one line of JSON for every tool call, one file a day, chained by seals.
//!
//! A call reserves a slot before it runs and is refused if there is none, so no line is lost for want of room after an effect.
//! Lines wait in memory for at most a second; one thread appends them. The caller decides what may stand in a line. Start at
//! [`Audit`]; `chain` says what makes a change of the trail show, and [`verify`](verify::verify) finds it.

mod chain;
mod fold;
pub mod retention;
mod trail;
pub mod verify;
mod writer;

pub use chain::{Head, is_chain_line};
pub use trail::{TAIL_MAX, days, tail, try_to_write};

use crate::clock::{Clock, Timestamp};
use crate::keyring::ChainKey;
use fold::Folds;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use writer::Writer;

/// Most slots: one for each running call and each line that is not yet in a file.
const SLOTS: usize = 65_536;

/// Longest time that a line waits for the writer.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Lines at which the writer starts at once: far below [`SLOTS`], so that a burst does not fill them.
const FLUSH_AT: usize = SLOTS / 16;

/// How long a line may wait until calls that change something are refused.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// How long [`AuditHandle::flush`] waits.
const FLUSH_PATIENCE: Duration = Duration::from_secs(3);

/// Capacity that fits most lines, in bytes.
const USUAL_LINE: usize = 512;

/// Longest line, in bytes. A longer one is written without its arguments.
const LINE_MAX: usize = 8 << 10;

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// The trail. When dropped, it writes the waiting lines and ends the writer.
#[derive(Debug)]
pub struct Audit {
    queue: Arc<Queue>,
    sealed: watch::Receiver<Head>,
    birth: Option<Birth>,
    writer: Option<JoinHandle<()>>,
}

/// What a trail is started with.
#[derive(Debug)]
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

/// What is recorded of a trail outside of it, so that a missing end or file shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A seal that is in the trail and on the disk.
    pub newest: Head,
    /// The last seal that was pruned: the trail begins after it.
    pub pruned: Head,
    /// Where the chain began.
    pub birth: Birth,
}

/// The last file from before the chain, which a program without one wrote, and how much of it that wrote, in bytes. Empty and 0 if
/// there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Birth {
    /// The name of the file.
    pub file: String,
    /// Its length at that time.
    pub length: u64,
}

/// A slot for one line. It is free again when dropped without a line.
#[derive(Debug)]
#[must_use = "the slot is freed when this is dropped"]
pub struct Slot<'a>(&'a Queue);

/// The audit line of one call.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Line<'a> {
    /// When the call arrived. Its UTC day names the file.
    pub time: Timestamp,
    /// The id of the request, as in answers and logs.
    pub request_id: &'a str,
    /// The caller's application.
    pub application: &'a str,
    /// The caller's key.
    pub key_id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The id of the target, if there is one.
    pub target: Option<&'a str>,
    /// The arguments as JSON without secrets; only their names if they were refused.
    pub arguments: Option<&'a RawValue>,
    /// `ok`, an error code, or `cancelled` if the client went away.
    pub outcome: &'a str,
    /// The calls that this line stands for: more than one only for refused calls.
    #[serde(skip_serializing_if = "is_one")]
    pub calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(calls: &u64) -> bool {
    *calls == 1
}

impl Line<'_> {
    /// The line as JSON, with a line break at its end and nowhere else. `None` if it has none, which is logged.
    fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(USUAL_LINE);
        if let Err(error) = serde_json::to_writer(&mut bytes, self) {
            tracing::error!(%error, "an audit line cannot be written as JSON");
            return None;
        }
        if bytes.len() > LINE_MAX && self.arguments.is_some() {
            return Self { arguments: None, ..*self }.bytes();
        }
        // Raw arguments may span lines. In JSON, a line break is only layout.
        for byte in &mut bytes {
            *byte = if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
        }
        bytes.push(b'\n');
        Some(bytes)
    }
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
        let mut queue = self.queue.lock();
        (queue.taken < SLOTS).then(|| {
            queue.taken += 1;
            Slot(&self.queue)
        })
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
        self.queue.lock().taken
    }

    /// How long the line that waits for longest has not been written, if that is so long that calls are refused.
    #[must_use]
    pub fn stale(&self) -> Option<Duration> {
        self.queue.stale(self.queue.clock.now())
    }

    /// Makes the writer open its file by name again, once it has written what waits. Does not block.
    pub fn reopen(&self) {
        self.queue.lock().reopen = true;
        self.queue.wake.notify_one();
    }

    /// Makes the writer write all lines that wait, and waits for that, up to a few seconds: a disk may be slow or full.
    pub async fn flush(&self) {
        let asked = {
            let mut queue = self.queue.lock();
            queue.asked += 1;
            queue.asked
        };
        self.queue.wake.notify_one();
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
        self.queue.lock().stopping = true;
        self.queue.wake.notify_one();
        if self.writer.take().is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the audit writer has panicked; lines are lost");
        }
    }
}

impl Slot<'_> {
    /// Queues `line`. The slot is free again once the line is in its file.
    pub fn write(self, line: &Line<'_>) {
        // Serialised outside the lock, which every call takes.
        let Some(bytes) = line.bytes() else { return };
        let mut queue = self.0.lock();
        queue.waiting.add(line.time.0 / DAY_MILLIS, 1, &bytes);
        if queue.waiting_since.is_none() {
            queue.waiting_since = Some((self.0.clock.now(), Instant::now()));
            self.0.note_oldest(&queue);
        }
        if queue.waiting.lines == FLUSH_AT {
            self.0.wake.notify_one();
        }
        drop(queue);
        // The line keeps the slot; the writer frees it.
        std::mem::forget(self);
    }

    /// Queues the line of a refused call, which has changed nothing. If its application has been refused often in this minute, the call
    /// is counted instead, and the count is written later.
    pub fn refuse(self, line: &Line<'_>) {
        if !self.0.folds().take(line, self.0.clock.now()) {
            self.write(line);
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.lock().taken -= 1;
    }
}

/// Shared by callers and the writer.
#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    folds: Mutex<Folds>,
    wake: Condvar,
    clock: Clock,
    /// Since when the oldest line waits, in milliseconds; [`NOTHING_WAITS`] if none does. Every call asks, so it takes no lock.
    oldest: AtomicU64,
    /// Whether the writer's latest attempt failed.
    failing: AtomicBool,
    /// How many of the flushes that were asked for are done.
    answered: watch::Sender<u64>,
}

const NOTHING_WAITS: u64 = u64::MAX;

#[derive(Debug, Default)]
struct State {
    /// Slots in use, by running calls and by lines that are not yet in a file.
    taken: usize,
    waiting: Batch,
    waiting_since: Option<(Timestamp, Instant)>,
    /// The same of the lines that the writer has taken.
    held_since: Option<(Timestamp, Instant)>,
    reopen: bool,
    /// How often a flush was asked for.
    asked: u64,
    stopping: bool,
}

/// What the writer is woken with.
struct Work {
    batch: Batch,
    reopen: bool,
    asked: u64,
    last: bool,
}

impl Queue {
    fn new(clock: Clock) -> Self {
        let (state, folds, wake, failing) = Default::default();
        Self {
            state,
            folds,
            wake,
            clock,
            failing,
            oldest: AtomicU64::new(NOTHING_WAITS),
            answered: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folds(&self) -> MutexGuard<'_, Folds> {
        self.folds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the oldest line has waited at `now`, if that is too long: the writer has tried and failed, or is stuck.
    fn stale(&self, now: Timestamp) -> Option<Duration> {
        let waited = now.since(Timestamp(self.oldest.load(Relaxed)));
        if waited < STALE_AFTER {
            return None;
        }
        // A test's clock jumps where the writer had no time to try.
        let stuck = || {
            let state = self.lock();
            state.held_since.or(state.waiting_since).is_some_and(|(_, since)| since.elapsed() >= STALE_AFTER)
        };
        (self.failing.load(Relaxed) || stuck()).then_some(waited)
    }

    fn note_oldest(&self, state: &State) {
        let oldest = state.held_since.or(state.waiting_since);
        self.oldest.store(oldest.map_or(NOTHING_WAITS, |(at, _)| at.0), Relaxed);
    }

    /// Waits until there is something to do or a flush is due. The lines that it returns count as held.
    fn next(&self) -> Work {
        let idle = |state: &mut State| {
            let asked = state.reopen || state.asked > *self.answered.borrow();
            state.waiting.lines < FLUSH_AT && !state.stopping && !asked
        };
        let waited = self.wake.wait_timeout_while(self.lock(), FLUSH_EVERY, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let since = state.waiting_since.take();
        state.held_since = state.held_since.or(since);
        let (mut batch, last) = (std::mem::take(&mut state.waiting), state.stopping);
        let (reopen, asked) = (std::mem::take(&mut state.reopen), state.asked);
        drop(state);
        self.folds().write(self.clock.now(), last, |line| {
            if let Some(bytes) = line.bytes() {
                batch.add(line.time.0 / DAY_MILLIS, 0, &bytes);
            }
        });
        Work { batch, reopen, asked, last }
    }

    /// Frees the slots of lines that are written; nothing is held any more.
    fn wrote(&self, lines: usize) {
        let mut state = self.lock();
        state.taken -= lines;
        state.held_since = None;
        self.note_oldest(&state);
    }
}

/// Lines by day, each with its line break.
#[derive(Debug, Default)]
struct Batch {
    /// Lines that have a slot.
    lines: usize,
    days: BTreeMap<u64, Vec<u8>>,
}

impl Batch {
    fn add(&mut self, day: u64, lines: usize, bytes: &[u8]) {
        self.lines += lines;
        self.days.entry(day).or_default().extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests;
