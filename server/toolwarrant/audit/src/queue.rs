//! The queue in which lines wait for the writer, in order. Start at [`Queue::reserve`].
//!
//! A slot is for one line, from before its call runs until the line is in its file. A call holds
//! the lock of the waiting lines only while it appends one; the writer takes all of them at once.

use super::fold::RefusalAggregator;
use super::line::{DAY_MILLIS, Line, LineEncoder};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;

pub(super) const SLOTS: usize = 65_536;

const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Far below [`SLOTS`], so that a burst does not use all slots.
pub(super) const FLUSH_AT: usize = SLOTS / 16;

const STALE_AFTER: Duration = Duration::from_secs(10);

/// In bytes, at rest. In use, a buffer keeps up to four times its last content.
const KEPT: usize = 16 << 10;

#[derive(Debug)]
#[must_use = "the slot is freed when this is dropped"]
pub struct Slot<'a>(&'a Queue);

impl Slot<'_> {
    pub fn write(self, line: &Line<'_>) {
        self.add(|lines| lines.add(line));
    }

    pub(super) fn write_json(self, time: Timestamp, json: &str) {
        self.add(|lines| lines.add_json(time, json));
    }

    fn add(self, add: impl FnOnce(&mut Lines)) {
        self.0.write(add);
        // The line now holds the slot; the writer frees it.
        std::mem::forget(self);
    }

    /// Counts the call instead of queueing its line if its application was refused often in this
    /// minute. The count is written later.
    pub fn refuse(self, line: &Line<'_>) {
        if !self.0.folds().take(line, self.0.clock.now()) {
            self.write(line);
        }
    }

    /// Does the same for a command. Its count has the second line.
    pub(super) fn refuse_json(self, time: Timestamp, (operator, command): (&str, &str), [line, folded]: [&str; 2]) {
        if !self.0.folds().take_command(operator, command, (time, folded)) {
            self.write_json(time, line);
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Relaxed);
    }
}

#[derive(Debug)]
pub(super) struct Queue {
    free: AtomicUsize,
    waiting: Mutex<Lines>,
    /// In milliseconds, or [`NOTHING_WAITS`]. Every call reads it, so it has no lock.
    oldest: AtomicU64,
    pub(super) failing: AtomicBool,
    /// In milliseconds. Before the first seal, when the queue was made.
    pub(super) sealed_at: AtomicU64,
    folds: Mutex<RefusalAggregator>,
    control: Mutex<Control>,
    wake: Condvar,
    pub(super) answered: watch::Sender<u64>,
    pub(super) clock: Clock,
}

const NOTHING_WAITS: u64 = u64::MAX;

/// A thread that holds this lock may lock the waiting lines.
#[derive(Debug, Default)]
struct Control {
    held_since: Option<Since>,
    due: bool,
    reopen: bool,
    asked: u64,
    stopping: bool,
}

/// By the clock of the process, which a test can move, and by the machine's clock.
type Since = (Timestamp, Instant);

pub(super) struct Work {
    pub(super) reopen: bool,
    pub(super) asked: u64,
    pub(super) last: bool,
}

impl Queue {
    pub(super) fn new(clock: Clock) -> Self {
        let (waiting, failing, folds, control, wake) = Default::default();
        let (free, oldest) = (AtomicUsize::new(SLOTS), AtomicU64::new(NOTHING_WAITS));
        let (sealed_at, answered) = (AtomicU64::new(clock.now().0), watch::Sender::new(0));
        Self { free, waiting, oldest, failing, sealed_at, folds, control, wake, answered, clock }
    }

    pub(super) fn reserve(&self) -> Option<Slot<'_>> {
        let taken = self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(1));
        taken.is_ok().then(|| Slot(self))
    }

    pub(super) fn slots_in_use(&self) -> usize {
        SLOTS.saturating_sub(self.free.load(Relaxed))
    }

    fn write(&self, add: impl FnOnce(&mut Lines)) {
        let mut waiting = lock(&self.waiting);
        if waiting.since.is_none() {
            let now = self.clock.now();
            waiting.since = Some((now, Instant::now()));
            self.oldest.fetch_min(now.0, Relaxed);
        }
        add(&mut waiting);
        let full = waiting.marks.len() == FLUSH_AT;
        drop(waiting);
        if full {
            self.tell(|control| control.due = true);
        }
    }

    pub(super) fn reopen(&self) {
        self.tell(|control| control.reopen = true);
    }

    pub(super) fn flush(&self) -> u64 {
        self.tell(|control| {
            control.asked += 1;
            control.asked
        })
    }

    pub(super) fn stop(&self) {
        self.tell(|control| control.stopping = true);
    }

    fn tell<T>(&self, what: impl FnOnce(&mut Control) -> T) -> T {
        let told = what(&mut lock(&self.control));
        self.wake.notify_one();
        told
    }

    fn folds(&self) -> MutexGuard<'_, RefusalAggregator> {
        lock(&self.folds)
    }

    /// Returns the wait of the oldest line if the writer has tried and failed, or is stuck.
    pub(super) fn stale(&self, now: Timestamp) -> Option<Duration> {
        let waited = now.since(Timestamp(self.oldest.load(Relaxed)));
        if waited < STALE_AFTER {
            return None;
        }
        // A test moves its clock at once, while the writer has had no time to try.
        let stuck = || {
            let control = lock(&self.control);
            control
                .held_since
                .or_else(|| lock(&self.waiting).since)
                .is_some_and(|(_, since)| since.elapsed() >= STALE_AFTER)
        };
        (self.failing.load(Relaxed) || stuck()).then_some(waited)
    }

    pub(super) fn next(&self, batch: &mut Batch) -> Work {
        let idle = |control: &mut Control| {
            let asked = control.reopen || control.asked > *self.answered.borrow();
            !(control.due || control.stopping || asked)
        };
        let waited = self.wake.wait_timeout_while(lock(&self.control), FLUSH_EVERY, idle);
        let (mut control, _) = ignore_poison(waited);
        let mut waiting = lock(&self.waiting);
        control.held_since = control.held_since.or(waiting.since);
        self.note_oldest(control.held_since);
        std::mem::swap(&mut *waiting, &mut batch.taken);
        drop(waiting);
        control.due = false;
        let work = Work { reopen: std::mem::take(&mut control.reopen), asked: control.asked, last: control.stopping };
        drop(control);
        batch.sort();
        let add = |time: Timestamp, line: &[u8]| batch.add(time.0 / DAY_MILLIS, 0, line);
        self.folds().write(self.clock.now(), work.last, add);
        work
    }

    pub(super) fn wrote(&self, lines: usize) {
        self.free.fetch_add(lines, Relaxed);
        let mut control = lock(&self.control);
        control.held_since = None;
        let waiting = lock(&self.waiting);
        self.note_oldest(waiting.since);
    }

    /// Needs the lock of the waiting lines, so that no line begins to wait meanwhile.
    fn note_oldest(&self, since: Option<Since>) {
        self.oldest.store(since.map_or(NOTHING_WAITS, |(at, _)| at.0), Relaxed);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    ignore_poison(of.lock())
}

#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    marks: Vec<Mark>,
    since: Option<Since>,
    pen: LineEncoder,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    day: u64,
    end: usize,
}

impl Lines {
    fn add(&mut self, line: &Line<'_>) {
        let Self { text, marks, pen, since: _ } = self;
        pen.write(line, text);
        marks.push(Mark { day: line.time.0 / DAY_MILLIS, end: text.len() });
    }

    fn add_json(&mut self, time: Timestamp, json: &str) {
        let Self { text, marks, pen: _, since: _ } = self;
        text.extend(json.bytes().filter(|byte| *byte != b'\n').chain([b'\n']));
        marks.push(Mark { day: time.0 / DAY_MILLIS, end: text.len() });
    }

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

fn empty<T>(buffer: &mut Vec<T>) {
    let kept = (KEPT / size_of::<T>()).max(4 * buffer.len());
    buffer.clear();
    buffer.shrink_to(kept);
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lines: usize,
    pub(super) days: BTreeMap<u64, Vec<u8>>,
    taken: Lines,
    spare: Vec<u8>,
}

impl Batch {
    pub(super) fn add(&mut self, day: u64, lines: usize, bytes: &[u8]) {
        self.lines += lines;
        let Self { days, spare, .. } = self;
        days.entry(day).or_insert_with(|| std::mem::take(spare)).extend_from_slice(bytes);
    }

    pub(super) fn finish_day(&mut self, day: u64) {
        self.spare = self.days.remove(&day).unwrap_or_default();
        self.spare.clear();
    }

    fn sort(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        self.spare.shrink_to(KEPT.max(4 * taken.text.len()));
        taken.iter().for_each(|(mark, line)| self.add(mark.day, 1, line));
        taken.clear();
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
            of(&lock(&queue.waiting)) + of(&batch.taken) + batch.spare.capacity()
        };
        let [_, _, third, fourth] = [FLUSH_AT; 4].map(&mut bytes_after);
        assert!(third > 64 * KEPT && third == fourth, "{third} {fourth}");
        let [_, rest] = [0; 2].map(&mut bytes_after);
        assert!(rest <= 5 * KEPT, "{rest}");
        let [little, again] = [3; 2].map(&mut bytes_after);
        assert_eq!((little, again), (rest, rest));
    }
}
