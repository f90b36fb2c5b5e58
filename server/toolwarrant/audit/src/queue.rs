//! The queue in which lines wait for the writer. Each thread has its own shard, so calls hardly
//! ever wait for each other.
//!
//! A slot is for one line, from before its call runs until the line is in its file. A shard takes
//! slots from the pool in blocks. If the pool is empty, it takes back the slots that other shards
//! have left. So a call is refused only if all slots are taken, except for those that are freed at
//! that very moment.
//!
//! Each line records when it was written. The writer takes the lines of all shards at one moment
//! and in the order of those times. So the lines of a client that calls one after the other stand
//! in the file in that order, whichever threads served it.

use super::fold::Folds;
use super::line::{DAY_MILLIS, Line, Pen};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_base::shards::Shards;

/// Most slots: one for each running call and each line that is not in a file yet.
pub(super) const SLOTS: usize = 65_536;

/// Slots that a shard takes at once. Also, waiting lines are counted in steps of this size.
const BLOCK: usize = 64;

/// Longest time for which a line waits for the writer.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Waiting lines at which the writer starts at once: far below [`SLOTS`], so that a burst does not
/// use all slots. Each shard may hold up to one block more that is not counted yet.
pub(super) const FLUSH_AT: usize = SLOTS / 16;

/// Time for which a line may wait before calls that change something are refused.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// Capacity that a buffer keeps at rest, in bytes. While it is used, it keeps up to four times its
/// last content.
const KEPT: usize = 16 << 10;

/// A slot for one line. It is free again if it is dropped without a line.
#[derive(Debug)]
#[must_use = "the slot is freed when this is dropped"]
pub struct Slot<'a> {
    queue: &'a Queue,
    /// The shard of the thread that took the slot. Mostly the same thread writes the line.
    shard: &'a Shard,
}

impl Slot<'_> {
    /// Queues `line`. The slot is free again once the line is in its file.
    pub fn write(self, line: &Line<'_>) {
        self.add(|lines, at| lines.add(at, line));
    }

    /// Queues `json`, one object without line breaks, into the file of the day of `time`. The slot
    /// is free again once the line is in its file.
    pub(super) fn write_json(self, time: Timestamp, json: &str) {
        self.add(|lines, at| lines.add_json(at, time, json));
    }

    fn add(self, add: impl FnOnce(&mut Lines, Instant)) {
        self.queue.write(self.shard, add);
        // The line now holds the slot; the writer frees it.
        std::mem::forget(self);
    }

    /// Queues the line of a refused call, which has changed nothing. If its application was refused
    /// often in this minute, the call is only counted, and the count is written later.
    pub fn refuse(self, line: &Line<'_>) {
        if !self.queue.folds().take(line, self.queue.clock.now()) {
            self.write(line);
        }
    }
}

impl Slot<'_> {
    /// Queues the line of a refused command, as [`Self::refuse`] does. Its count has the second
    /// line.
    pub(super) fn refuse_json(self, time: Timestamp, (operator, command): (&str, &str), [line, folded]: [&str; 2]) {
        if !self.queue.folds().take_command(operator, command, (time, folded)) {
            self.write_json(time, line);
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.shard.free.fetch_add(1, Relaxed);
    }
}

/// The queue. Callers and the writer share it.
#[derive(Debug)]
pub(super) struct Queue {
    shards: Shards<Shard>,
    /// Free slots that are in no shard.
    pool: Mutex<usize>,
    /// Waiting lines, counted in whole blocks of a shard.
    lines: AtomicUsize,
    /// The time since which the oldest line waits, in milliseconds; [`NOTHING_WAITS`] if no line
    /// waits. Every call reads it, so it has no lock.
    oldest: AtomicU64,
    /// True if the writer's latest attempt failed.
    pub(super) failing: AtomicBool,
    folds: Mutex<Folds>,
    control: Mutex<Control>,
    wake: Condvar,
    /// The number of requested flushes that are done.
    pub(super) answered: watch::Sender<u64>,
    pub(super) clock: Clock,
}

const NOTHING_WAITS: u64 = u64::MAX;

/// The state that belongs to one thread.
#[derive(Debug, Default)]
struct Shard {
    /// Slots that it took from the pool and did not give to a call yet.
    free: AtomicUsize,
    waiting: Mutex<Lines>,
}

/// The instructions for the writer. A thread that holds this lock may lock shards. No other thread
/// may lock two shards.
#[derive(Debug, Default)]
struct Control {
    /// The time since which the oldest line waits that the writer has taken.
    held_since: Option<Since>,
    /// True if enough lines wait for the writer to start at once.
    due: bool,
    reopen: bool,
    /// The number of flushes that were requested.
    asked: u64,
    stopping: bool,
}

/// A moment, by the clock of the process, which a test can move, and by the machine's clock.
type Since = (Timestamp, Instant);

/// The instructions that the writer wakes up with.
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

    /// Takes a slot. Returns `None` if all are taken.
    pub(super) fn reserve(&self) -> Option<Slot<'_>> {
        let shard = self.shards.mine();
        let taken = shard.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(1)).is_ok();
        (taken || self.refill(shard)).then(|| Slot { queue: self, shard })
    }

    /// Takes a slot, and a block of further ones for that shard.
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

    /// Returns the number of slots in use by running calls and by lines that are not in a file yet.
    pub(super) fn slots_in_use(&self) -> usize {
        let pool = lock(&self.pool);
        let free = self.shards.iter().map(|shard| shard.free.load(Relaxed)).sum::<usize>();
        SLOTS.saturating_sub(*pool + free)
    }

    fn write(&self, shard: &Shard, add: impl FnOnce(&mut Lines, Instant)) {
        let mut waiting = lock(&shard.waiting);
        let at = Instant::now();
        if waiting.since.is_none() {
            let now = self.clock.now();
            waiting.since = Some((now, at));
            self.oldest.fetch_min(now.0, Relaxed);
        }
        add(&mut waiting, at);
        let block = waiting.marks.len().is_multiple_of(BLOCK);
        let full = block && self.lines.fetch_add(BLOCK, Relaxed) + BLOCK == FLUSH_AT;
        drop(waiting);
        if full {
            self.tell(|control| control.due = true);
        }
    }

    /// Makes the writer write what waits and then open its file by name again.
    pub(super) fn reopen(&self) {
        self.tell(|control| control.reopen = true);
    }

    /// Requests a flush. Returns the value that [`Self::answered`] reaches when the flush is done.
    pub(super) fn flush(&self) -> u64 {
        self.tell(|control| {
            control.asked += 1;
            control.asked
        })
    }

    /// Makes the writer write what waits and then end.
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

    /// Returns how long the oldest line has waited at `now`, if that is too long: the writer has
    /// tried and failed, or is stuck.
    pub(super) fn stale(&self, now: Timestamp) -> Option<Duration> {
        let waited = now.since(Timestamp(self.oldest.load(Relaxed)));
        if waited < STALE_AFTER {
            return None;
        }
        // A test moves its clock at once, while the writer has had no time to try.
        let stuck = || {
            let control = lock(&self.control);
            control.held_since.or_else(|| oldest(&self.all())).is_some_and(|(_, since)| since.elapsed() >= STALE_AFTER)
        };
        (self.failing.load(Relaxed) || stuck()).then_some(waited)
    }

    /// Waits for an instruction or for the next regular flush, and takes all lines into `batch`.
    /// They count as held.
    pub(super) fn next(&self, batch: &mut Batch) -> Work {
        let idle = |control: &mut Control| {
            let asked = control.reopen || control.asked > *self.answered.borrow();
            !(control.due || control.stopping || asked)
        };
        let waited = self.wake.wait_timeout_while(lock(&self.control), FLUSH_EVERY, idle);
        let (mut control, _) = ignore_poison(waited);
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
        let add = |time: Timestamp, line: &[u8]| batch.add(time.0 / DAY_MILLIS, 0, line);
        self.folds().write(self.clock.now(), work.last, add);
        work
    }

    /// Frees the slots of lines that are written. The writer then holds no lines.
    pub(super) fn wrote(&self, lines: usize) {
        *lock(&self.pool) += lines;
        let mut control = lock(&self.control);
        control.held_since = None;
        self.note_oldest(oldest(&self.all()));
    }

    /// Locks all shards at one moment. If a line is among their lines, every line that was written
    /// before it is too.
    fn all(&self) -> Vec<MutexGuard<'_, Lines>> {
        self.shards.iter().map(|shard| lock(&shard.waiting)).collect()
    }

    /// Requires the locks of all shards, so that no line begins to wait meanwhile.
    fn note_oldest(&self, since: Option<Since>) {
        self.oldest.store(since.map_or(NOTHING_WAITS, |(at, _)| at.0), Relaxed);
    }
}

/// Returns the time since which the oldest of these lines waits.
fn oldest(shards: &[MutexGuard<'_, Lines>]) -> Option<Since> {
    shards.iter().filter_map(|lines| lines.since).min()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    ignore_poison(of.lock())
}

/// Lines in the order in which they were written.
#[derive(Debug, Default)]
struct Lines {
    /// The lines, each with its line break.
    text: Vec<u8>,
    marks: Vec<Mark>,
    /// The time since which the first one waits.
    since: Option<Since>,
    pen: Pen,
}

/// The place of a line in a text.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The time when it was written.
    at: Instant,
    day: u64,
    /// The position of its end.
    end: usize,
}

impl Lines {
    fn add(&mut self, at: Instant, line: &Line<'_>) {
        let Self { text, marks, pen, since: _ } = self;
        pen.write(line, text);
        marks.push(Mark { at, day: line.time.0 / DAY_MILLIS, end: text.len() });
    }

    fn add_json(&mut self, at: Instant, time: Timestamp, json: &str) {
        let Self { text, marks, pen: _, since: _ } = self;
        text.extend(json.bytes().filter(|byte| *byte != b'\n').chain([b'\n']));
        marks.push(Mark { at, day: time.0 / DAY_MILLIS, end: text.len() });
    }

    /// Iterates over the lines with their marks.
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

/// Empties a buffer, and frees the memory that only a burst needed.
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
    /// The lines taken from each shard. Between two batches these are empty buffers, which the
    /// shards get back.
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

    /// Drops a day whose lines are all written.
    pub(super) fn finish_day(&mut self, day: u64) {
        self.spare = self.days.remove(&day).unwrap_or_default();
        self.spare.clear();
    }

    /// Adds the lines taken from the shards, in the order in which they were written.
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
        task_id: None,
        from: None,
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
            (0..lines.min(1)).for_each(|day| batch.finish_day(day as u64));
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

    /// Otherwise the writer could take a line and leave one that another thread wrote before it.
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
