//! Where lines wait for the writer. Each thread has a shard of its own, so that calls hardly ever wait for each other.
//!
//! A slot is for one line, from before its call runs until the line is in its file. A shard takes slots from the pool in blocks; who
//! finds none there takes those that other shards have left. So a call is refused only if all are taken, but for those that come back
//! at that very moment.
//!
//! A line notes when it was written, and the writer takes the lines of all shards at one moment and in the order of those times. So the
//! lines of who calls one after the other stand in the file in that order, whichever threads have served them.

use super::fold::Folds;
use super::line::{DAY_MILLIS, Line, Pen};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::shards::Shards;
use toolwarrant_base::unpoisoned;

/// Most slots: one for each running call and each line that is not yet in a file.
pub(super) const SLOTS: usize = 65_536;

/// Slots that a shard takes at once, and lines that it counts at once.
const BLOCK: usize = 64;

/// Longest time that a line waits for the writer.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Lines at which the writer starts at once: far below [`SLOTS`], so that a burst does not fill them. Each shard may have up to a block
/// more that is not counted.
pub(super) const FLUSH_AT: usize = SLOTS / 16;

/// How long a line may wait until calls that change something are refused.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// Bytes that a buffer keeps at rest. While it is used, it keeps up to four times what was last in it.
const KEPT: usize = 16 << 10;

/// A slot for one line. It is free again when dropped without a line.
#[derive(Debug)]
#[must_use = "the slot is freed when this is dropped"]
pub struct Slot<'a> {
    queue: &'a Queue,
    /// That of the thread that took it, which mostly is the one that writes the line, too.
    shard: &'a Shard,
}

impl Slot<'_> {
    /// Queues `line`. The slot is free again once the line is in its file.
    pub fn write(self, line: &Line<'_>) {
        self.queue.write(self.shard, line);
        // The line keeps the slot; the writer frees it.
        std::mem::forget(self);
    }

    /// Queues the line of a refused call, which has changed nothing. If its application has been refused often in this minute, the call
    /// is counted instead, and the count is written later.
    pub fn refuse(self, line: &Line<'_>) {
        if !self.queue.folds().take(line, self.queue.clock.now()) {
            self.write(line);
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.shard.free.fetch_add(1, Relaxed);
    }
}

/// Shared by callers and the writer.
#[derive(Debug)]
pub(super) struct Queue {
    shards: Shards<Shard>,
    /// Free slots that no shard has.
    pool: Mutex<usize>,
    /// Lines that wait, in whole blocks of a shard.
    lines: AtomicUsize,
    /// Since when the oldest line waits, in milliseconds; [`NOTHING_WAITS`] if none does. Every call asks, so it takes no lock.
    oldest: AtomicU64,
    /// Whether the writer's latest attempt failed.
    pub(super) failing: AtomicBool,
    folds: Mutex<Folds>,
    control: Mutex<Control>,
    wake: Condvar,
    /// How many of the flushes that were asked for are done.
    pub(super) answered: watch::Sender<u64>,
    pub(super) clock: Clock,
}

const NOTHING_WAITS: u64 = u64::MAX;

/// What is a thread's own.
#[derive(Debug, Default)]
struct Shard {
    /// Slots that it has taken from the pool and not given to a call.
    free: AtomicUsize,
    waiting: Mutex<Lines>,
}

/// What the writer is told. Whoever has this lock may take those of shards, and nobody else may take two.
#[derive(Debug, Default)]
struct Control {
    /// Since when the oldest line waits that the writer has taken.
    held_since: Option<Since>,
    /// Whether so many lines wait that they are to be written at once.
    due: bool,
    reopen: bool,
    /// How often a flush was asked for.
    asked: u64,
    stopping: bool,
}

/// A moment by the process's clock, which a test moves, and by the machine's.
type Since = (Timestamp, Instant);

/// What the writer is woken with.
pub(super) struct Work {
    pub(super) reopen: bool,
    pub(super) asked: u64,
    pub(super) last: bool,
}

impl Queue {
    pub(super) fn new(clock: Clock) -> Self {
        let (shards, lines, failing, folds, control, wake) = Default::default();
        let (pool, oldest, answered) = (Mutex::new(SLOTS), AtomicU64::new(NOTHING_WAITS), watch::Sender::new(0));
        Self { shards, pool, lines, oldest, failing, folds, control, wake, answered, clock }
    }

    /// Takes a slot. `None`: all are taken.
    pub(super) fn reserve(&self) -> Option<Slot<'_>> {
        let shard = self.shards.mine();
        let taken = shard.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(1)).is_ok();
        (taken || self.refill(shard)).then(|| Slot { queue: self, shard })
    }

    /// Takes a slot, and further ones for that shard.
    #[cold]
    fn refill(&self, shard: &Shard) -> bool {
        let mut pool = lock(&self.pool);
        if *pool == 0 {
            *pool = self.shards.iter().map(|other| other.free.swap(0, Relaxed)).sum();
        }
        let block = (*pool).min(BLOCK);
        *pool -= block;
        shard.free.fetch_add(block.saturating_sub(1), Relaxed);
        block > 0
    }

    /// The slots in use, by running calls and by lines that are not yet in a file.
    pub(super) fn taken(&self) -> usize {
        let pool = lock(&self.pool);
        let free = self.shards.iter().map(|shard| shard.free.load(Relaxed)).sum::<usize>();
        SLOTS.saturating_sub(*pool + free)
    }

    fn write(&self, shard: &Shard, line: &Line<'_>) {
        let mut waiting = lock(&shard.waiting);
        let at = Instant::now();
        if waiting.since.is_none() {
            let now = self.clock.now();
            waiting.since = Some((now, at));
            self.oldest.fetch_min(now.0, Relaxed);
        }
        waiting.add(at, line);
        let block = waiting.marks.len().is_multiple_of(BLOCK);
        let full = block && self.lines.fetch_add(BLOCK, Relaxed) + BLOCK == FLUSH_AT;
        drop(waiting);
        if full {
            self.tell(|control| control.due = true);
        }
    }

    /// Tells the writer to open its file by name again, once it has written what waits.
    pub(super) fn reopen(&self) {
        self.tell(|control| control.reopen = true);
    }

    /// Asks for a flush. Returns the number in [`Self::answered`] that says that it is done.
    pub(super) fn flush(&self) -> u64 {
        self.tell(|control| {
            control.asked += 1;
            control.asked
        })
    }

    /// Tells the writer to end once it has written what waits.
    pub(super) fn stop(&self) {
        self.tell(|control| control.stopping = true);
    }

    fn tell<T>(&self, what: impl FnOnce(&mut Control) -> T) -> T {
        let told = what(&mut lock(&self.control));
        self.wake.notify_one();
        told
    }

    fn folds(&self) -> MutexGuard<'_, Folds> {
        lock(&self.folds)
    }

    /// How long the oldest line has waited at `now`, if that is too long: the writer has tried and failed, or is stuck.
    pub(super) fn stale(&self, now: Timestamp) -> Option<Duration> {
        let waited = now.since(Timestamp(self.oldest.load(Relaxed)));
        if waited < STALE_AFTER {
            return None;
        }
        // A test's clock jumps where the writer had no time to try.
        let stuck = || {
            let control = lock(&self.control);
            control.held_since.or_else(|| oldest(&self.all())).is_some_and(|(_, since)| since.elapsed() >= STALE_AFTER)
        };
        (self.failing.load(Relaxed) || stuck()).then_some(waited)
    }

    /// Waits until there is something to do or a flush is due, and takes all lines into `batch`. They count as held.
    pub(super) fn next(&self, batch: &mut Batch) -> Work {
        let idle = |control: &mut Control| {
            let asked = control.reopen || control.asked > *self.answered.borrow();
            !(control.due || control.stopping || asked)
        };
        let waited = self.wake.wait_timeout_while(lock(&self.control), FLUSH_EVERY, idle);
        let (mut control, _) = unpoisoned(waited);
        let mut shards = self.all();
        control.held_since = control.held_since.or_else(|| oldest(&shards));
        self.note_oldest(control.held_since);
        self.lines.store(0, Relaxed);
        batch.taken.resize_with(shards.len(), Lines::default);
        for (waiting, taken) in shards.iter_mut().zip(&mut batch.taken) {
            std::mem::swap(&mut **waiting, taken);
        }
        drop(shards);
        control.due = false;
        let work = Work { reopen: std::mem::take(&mut control.reopen), asked: control.asked, last: control.stopping };
        drop(control);
        batch.merge();
        self.folds().write(self.clock.now(), work.last, |line| {
            let mut text = Vec::new();
            Pen::default().write(line, &mut text);
            batch.add(line.time.0 / DAY_MILLIS, 0, &text);
        });
        work
    }

    /// Frees the slots of lines that are written; nothing is held any more.
    pub(super) fn wrote(&self, lines: usize) {
        *lock(&self.pool) += lines;
        let mut control = lock(&self.control);
        control.held_since = None;
        self.note_oldest(oldest(&self.all()));
    }

    /// All shards at one moment: a line that was written after another is among them only if the other is.
    fn all(&self) -> Vec<MutexGuard<'_, Lines>> {
        self.shards.iter().map(|shard| lock(&shard.waiting)).collect()
    }

    /// Called with the locks of all shards, so that no line begins to wait meanwhile.
    fn note_oldest(&self, since: Option<Since>) {
        self.oldest.store(since.map_or(NOTHING_WAITS, |(at, _)| at.0), Relaxed);
    }
}

/// Since when the oldest of these lines waits.
fn oldest(shards: &[MutexGuard<'_, Lines>]) -> Option<Since> {
    shards.iter().filter_map(|lines| lines.since).min()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(of.lock())
}

/// Lines in the order in which they were written.
#[derive(Debug, Default)]
struct Lines {
    /// Each with its line break.
    text: Vec<u8>,
    marks: Vec<Mark>,
    /// Since when the first one waits.
    since: Option<Since>,
    pen: Pen,
}

/// A line in a text.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// When it was written.
    at: Instant,
    day: u64,
    /// Where it ends.
    end: usize,
}

impl Lines {
    fn add(&mut self, at: Instant, line: &Line<'_>) {
        let Self { text, marks, pen, since: _ } = self;
        pen.write(line, text);
        marks.push(Mark { at, day: line.time.0 / DAY_MILLIS, end: text.len() });
    }

    /// Each line with its mark.
    fn iter(&self) -> impl Iterator<Item = (Mark, &[u8])> {
        self.marks.iter().scan(0, |start, mark| {
            let line = self.text.get(std::mem::replace(start, mark.end)..mark.end)?;
            Some((*mark, line))
        })
    }

    fn clear(&mut self) {
        let Self { text, marks, since, pen: _ } = self;
        empty(text);
        empty(marks);
        *since = None;
    }
}

/// Empties a buffer and gives back what a burst made too much of it.
fn empty<T>(buffer: &mut Vec<T>) {
    let kept = (KEPT / size_of::<T>()).max(4 * buffer.len());
    buffer.clear();
    buffer.shrink_to(kept);
}

/// Lines that the writer has taken, by day.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Lines that have a slot.
    pub(super) lines: usize,
    pub(super) days: BTreeMap<u64, Vec<u8>>,
    /// What was taken of each shard. Empty but for its buffers, which the shards get back.
    taken: Vec<Lines>,
    /// A buffer for the next day.
    spare: Vec<u8>,
}

impl Batch {
    pub(super) fn add(&mut self, day: u64, lines: usize, bytes: &[u8]) {
        self.lines += lines;
        let Self { days, spare, .. } = self;
        days.entry(day).or_insert_with(|| std::mem::take(spare)).extend_from_slice(bytes);
    }

    /// Drops a day of which all is written.
    pub(super) fn done(&mut self, day: u64) {
        self.spare = self.days.remove(&day).unwrap_or_default();
        self.spare.clear();
    }

    /// Adds what was taken, in the order in which it was written.
    fn merge(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        self.spare.shrink_to(KEPT.max(4 * taken.iter().map(|lines| lines.text.len()).sum::<usize>()));
        let mut heads: Vec<_> =
            taken.iter().map(Lines::iter).filter_map(|mut rest| rest.next().map(|head| (head, rest))).collect();
        while let Some(first) = (0..heads.len()).min_by_key(|n| heads[*n].0.0.at) {
            let ((mark, line), rest) = &mut heads[first];
            self.add(mark.day, 1, line);
            match rest.next() {
                Some(next) => heads[first].0 = next,
                None => drop(heads.remove(first)),
            }
        }
        drop(heads);
        taken.iter_mut().for_each(Lines::clear);
        self.taken = taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Line<'_> = Line {
        time: Timestamp(0),
        request_id: "r",
        application: "app",
        key_id: "key_1",
        tool: "print",
        target: None,
        arguments: None,
        outcome: "ok",
        calls: 1,
    };

    fn queue() -> Queue {
        let queue = Queue::new(Clock::manual(Timestamp(0)));
        queue.flush();
        queue
    }

    #[test]
    fn buffers_are_used_again_while_there_is_much_and_are_small_at_rest() {
        let (queue, mut batch) = (queue(), Batch::default());
        let mut bytes_after = |lines: usize| {
            (0..lines).for_each(|_| queue.reserve().expect("a place").write(&LINE));
            queue.next(&mut batch);
            assert_eq!(batch.lines, lines);
            (0..lines.min(1)).for_each(|day| batch.done(day as u64));
            queue.wrote(std::mem::take(&mut batch.lines));
            let of = |lines: &Lines| lines.text.capacity() + lines.marks.capacity() * size_of::<Mark>();
            queue.all().iter().map(|lines| of(lines)).sum::<usize>()
                + batch.taken.iter().map(of).sum::<usize>()
                + batch.spare.capacity()
        };
        let [_, _, third, fourth] = [FLUSH_AT; 4].map(&mut bytes_after);
        assert!(third > 64 * KEPT && third == fourth, "{third} {fourth}");
        let [_, rest] = [0; 2].map(&mut bytes_after);
        assert!(rest <= 5 * KEPT, "{rest}");
        let [little, again] = [3; 2].map(&mut bytes_after);
        assert_eq!((little, again), (rest, rest));
    }

    /// Else a line could be taken while one that was written before it, by another thread, is left.
    #[test]
    fn no_shard_is_emptied_while_another_can_still_be_written_to() {
        let queue = queue();
        let shards: Vec<_> = queue.shards.iter().collect();
        let [first, .., last] = shards[..] else { panic!("several") };
        lock(&first.waiting).add(Instant::now(), &LINE);
        let busy = lock(&last.waiting);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| queue.next(&mut Batch::default()));
            while let Ok(lines) = first.waiting.try_lock() {
                assert!(!lines.marks.is_empty(), "taken before the last shard was held");
                drop(lines);
                std::thread::yield_now();
            }
            drop(busy);
            writer.join().expect("no panic");
        });
        assert!(lock(&first.waiting).marks.is_empty());
    }
}
