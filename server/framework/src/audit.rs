//! The audit trail: one line of JSON for every tool call, one file a day.
//!
//! A call reserves a slot before it runs and is refused if there is none, so no line is lost for want of room after an effect.
//! Lines wait in memory for at most a second; one thread appends them. The caller decides what may stand in a line. Start at
//! [`Audit`].

mod trail;

pub use trail::{days, tail, try_to_write};

use crate::clock::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Most slots: one for each running call and each line that is not yet in a file.
const SLOTS: usize = 65_536;

/// Longest time that a line waits for the writer.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Lines at which the writer starts at once: far below [`SLOTS`], so that a burst does not fill them.
const FLUSH_AT: usize = SLOTS / 16;

/// Capacity that fits most lines, in bytes.
const USUAL_LINE: usize = 512;

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// The trail. When dropped, it writes the waiting lines and ends the writer.
#[derive(Debug)]
pub struct Audit {
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
}

/// A slot for one line. It is free again when dropped without a line.
#[derive(Debug)]
#[must_use = "the slot is freed when this is dropped"]
pub struct Slot<'a>(&'a Queue);

/// The audit line of one call.
#[derive(Debug, Serialize)]
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
    /// The calls that this line stands for: more than one only for calls over the budget.
    #[serde(skip_serializing_if = "is_one")]
    pub calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(calls: &u64) -> bool {
    *calls == 1
}

impl Audit {
    /// Creates `dir` if it is missing, readable by the owner alone, and starts the writer.
    ///
    /// # Errors
    /// The directory or the thread cannot be created, or the directory is not writable.
    pub fn start(dir: &Path) -> io::Result<Self> {
        create(dir)?;
        try_to_write(dir)?;
        let queue = Arc::new(Queue::default());
        let writer = Writer { dir: dir.to_owned(), queue: Arc::clone(&queue), held: Batch::default(), failing: false };
        let writer = thread::Builder::new().name("audit".to_owned()).spawn(|| writer.run())?;
        Ok(Self { queue, writer: Some(writer) })
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

    /// Returns a handle that tells how full the audit is.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        Backlog(Arc::clone(&self.queue))
    }

    /// Writes the waiting lines and ends the writer. Blocks for as long as the disk takes.
    pub fn stop(self) {
        drop(self);
    }
}

/// Tells how full an audit is.
#[derive(Debug)]
pub struct Backlog(Arc<Queue>);

impl Backlog {
    /// Returns the slots in use, by running calls and by lines that are not yet in a file.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.0.lock().taken
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
        let mut bytes = Vec::with_capacity(USUAL_LINE);
        if let Err(error) = serde_json::to_writer(&mut bytes, line) {
            return tracing::error!(%error, "an audit line cannot be written as JSON");
        }
        // Raw arguments may span lines. In JSON, a line break is only layout.
        for byte in &mut bytes {
            *byte = if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
        }
        bytes.push(b'\n');

        let mut queue = self.0.lock();
        queue.waiting.add(line.time.0 / DAY_MILLIS, 1, &bytes);
        if queue.waiting.lines == FLUSH_AT {
            self.0.wake.notify_one();
        }
        drop(queue);
        // The line keeps the slot; the writer frees it.
        std::mem::forget(self);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.lock().taken -= 1;
    }
}

/// Shared by callers and the writer.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Slots in use, by running calls and by lines that are not yet in a file.
    taken: usize,
    waiting: Batch,
    stopping: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to write, a flush is due or the audit stops. Returns the waiting lines, and whether they are
    /// the last.
    fn next(&self) -> (Batch, bool) {
        let idle = |state: &mut State| state.waiting.lines < FLUSH_AT && !state.stopping;
        let waited = self.wake.wait_timeout_while(self.lock(), FLUSH_EVERY, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut state.waiting), state.stopping)
    }
}

/// Lines by day, each with its line break.
#[derive(Debug, Default)]
struct Batch {
    lines: usize,
    days: BTreeMap<u64, Vec<u8>>,
}

impl Batch {
    fn add(&mut self, day: u64, lines: usize, bytes: &[u8]) {
        self.lines += lines;
        self.days.entry(day).or_default().extend_from_slice(bytes);
    }
}

struct Writer {
    dir: PathBuf,
    queue: Arc<Queue>,
    /// Lines that could not be written yet. They keep their slots, so a disk that stays full refuses calls in the end.
    held: Batch,
    /// Whether the latest attempt failed. A burst of failures is logged once.
    failing: bool,
}

impl Writer {
    fn run(mut self) {
        loop {
            let (Batch { lines, days }, last) = self.queue.next();
            self.held.lines += lines;
            for (day, bytes) in days {
                self.held.add(day, 0, &bytes);
            }
            self.flush();
            if last {
                if self.failing {
                    tracing::error!(
                        lines = self.held.lines,
                        "audit lines are lost: stopped while they could not be written"
                    );
                }
                return;
            }
        }
    }

    fn flush(&mut self) {
        match self.append() {
            Ok(()) => {
                self.queue.lock().taken -= std::mem::take(&mut self.held.lines);
                if std::mem::take(&mut self.failing) {
                    tracing::info!("the audit trail can be written again");
                }
            }
            Err(error) if !self.failing => {
                self.failing = true;
                tracing::error!(%error, dir = %self.dir.display(), "the audit trail cannot be written; trying on");
            }
            Err(_) => {}
        }
    }

    /// Appends the held lines, each day to its own file, and drops what was written.
    fn append(&mut self) -> io::Result<()> {
        while let Some(mut day) = self.held.days.first_entry() {
            let time = Timestamp(day.key() * DAY_MILLIS).to_string();
            let date = time.split('T').next().unwrap_or_default();
            let path = self.dir.join(format!("audit-{date}.jsonl"));
            let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
            // Whoever removed the directory meant the old lines, not future ones.
            let mut file = open().or_else(|error| match error.kind() {
                ErrorKind::NotFound => create(&self.dir).and_then(|()| open()),
                _ => Err(error),
            })?;
            let bytes = day.get_mut();
            while !bytes.is_empty() {
                match file.write(bytes) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    // A disk that fills up takes part of a line. The rest comes first once there is room.
                    Ok(written) => drop(bytes.drain(..written)),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            day.remove();
        }
        Ok(())
    }
}

/// Creates a directory that only its owner can read.
fn create(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    /// 2026-07-28T12:00:00Z.
    const NOON: Timestamp = Timestamp(1_785_240_000_000);
    const HALF_DAY: Duration = Duration::from_millis(DAY_MILLIS / 2);

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("audit-{}-{name}", std::process::id())))
        }

        fn dir(&self) -> PathBuf {
            self.0.join("audit")
        }

        fn lines(&self, date: &str) -> Vec<serde_json::Value> {
            let text = fs::read_to_string(self.dir().join(format!("audit-{date}.jsonl"))).unwrap_or_default();
            text.lines().map(|line| serde_json::from_str(line).expect("a whole line of JSON")).collect()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn line(time: Timestamp, request_id: &str) -> Line<'_> {
        Line {
            time,
            request_id,
            application: "app",
            key_id: "key_1",
            tool: "print",
            target: None,
            arguments: None,
            outcome: "ok",
            calls: 1,
        }
    }

    fn put(audit: &Audit, line: &Line<'_>) {
        audit.reserve().expect("a place").write(line);
    }

    #[test]
    fn each_line_is_in_the_file_of_its_utc_day_and_only_the_owner_may_read_it() {
        let scratch = Scratch::new("days");
        for run in ["a", "b"] {
            let audit = Audit::start(&scratch.dir()).expect("started");
            put(&audit, &line(NOON, run));
            put(&audit, &line(NOON.plus(HALF_DAY), run));
            put(&audit, &line(Timestamp(NOON.plus(HALF_DAY).0 - 1), run));
            audit.stop();
        }
        let ids = |date| scratch.lines(date).iter().map(|line| line["request_id"].to_string()).collect::<String>();
        assert_eq!(ids("2026-07-28"), r#""a""a""b""b""#);
        assert_eq!(ids("2026-07-29"), r#""a""b""#);
        let mode = |path: PathBuf| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!(mode(scratch.dir()), 0o700);
        assert_eq!(mode(scratch.dir().join("audit-2026-07-28.jsonl")), 0o600);
    }

    #[test]
    fn a_line_says_everything_and_stays_one_line() {
        let scratch = Scratch::new("line");
        let audit = Audit::start(&scratch.dir()).expect("started");
        let arguments = RawValue::from_string("{\r\n\"copies\": 2\n}".to_owned()).expect("JSON");
        put(&audit, &Line { target: Some("p-1\n"), arguments: Some(&arguments), ..line(NOON, "r1") });
        audit.stop();
        let path = scratch.dir().join("audit-2026-07-28.jsonl");
        assert_eq!(
            fs::read_to_string(path).expect("is there"),
            "{\"time\":\"2026-07-28T12:00:00.000Z\",\"request_id\":\"r1\",\"application\":\"app\",\"key_id\":\"key_1\",\
             \"tool\":\"print\",\"target\":\"p-1\\n\",\"arguments\":{  \"copies\": 2 },\"outcome\":\"ok\"}\n"
        );
    }

    #[test]
    fn a_line_is_written_without_another_and_without_a_stop() {
        let scratch = Scratch::new("flush");
        let audit = Audit::start(&scratch.dir()).expect("started");
        put(&audit, &line(NOON, "r1"));
        let patience = Instant::now() + Duration::from_secs(60);
        while scratch.lines("2026-07-28").is_empty() {
            assert!(Instant::now() < patience, "never written");
            thread::yield_now();
        }
        assert!(audit.writer.as_ref().is_some_and(|writer| !writer.is_finished()));
    }

    #[test]
    fn slots_run_out_and_come_back_with_a_drop_or_a_written_line() {
        let scratch = Scratch::new("slots");
        let audit = Audit::start(&scratch.dir()).expect("started");
        let mut slots: Vec<_> = std::iter::from_fn(|| audit.reserve()).collect();
        assert_eq!(slots.len(), SLOTS);

        drop(slots.pop());
        let last = audit.reserve().expect("the place that was dropped");
        assert!(audit.reserve().is_none());

        last.write(&line(NOON, "r1"));
        slots.drain(..FLUSH_AT).for_each(|slot| slot.write(&line(NOON, "r2")));
        let patience = Instant::now() + Duration::from_secs(60);
        while audit.reserve().is_none() {
            assert!(Instant::now() < patience, "no place came back");
            thread::yield_now();
        }
        drop(slots);
        let queue = Arc::clone(&audit.queue);
        audit.stop();
        assert_eq!(scratch.lines("2026-07-28").len(), FLUSH_AT + 1);
        assert_eq!(queue.lock().taken, 0);
    }

    #[test]
    fn lines_are_held_while_the_disk_fails_and_written_in_order_afterwards() {
        let scratch = Scratch::new("disk");
        let queue = Arc::new(Queue { state: Mutex::new(State { taken: 3, ..State::default() }), wake: Condvar::new() });
        let mut writer =
            Writer { dir: scratch.dir(), queue: Arc::clone(&queue), held: Batch::default(), failing: false };
        // What stands in the way is a file of the directory's name.
        fs::create_dir_all(scratch.dir().parent().expect("a folder")).expect("created");
        fs::write(scratch.dir(), "").expect("written");
        for id in ["1\n", "2\n"] {
            writer.held.add(NOON.0 / DAY_MILLIS, 1, id.as_bytes());
            writer.flush();
            assert!(writer.failing);
            assert_eq!(queue.lock().taken, 3);
        }
        fs::remove_file(scratch.dir()).expect("removed");
        writer.flush();
        assert!(!writer.failing);
        assert_eq!(queue.lock().taken, 1);
        assert_eq!(scratch.lines("2026-07-28"), [1, 2]);
    }

    #[test]
    fn a_stop_ends_even_where_nothing_can_be_written() {
        let scratch = Scratch::new("gone");
        let audit = Audit::start(&scratch.dir()).expect("started");
        fs::remove_dir(scratch.dir()).expect("removed");
        fs::write(scratch.dir(), "").expect("written");
        put(&audit, &line(NOON, "r1"));
        audit.stop();
        fs::remove_file(scratch.dir()).expect("still in the way");
    }

    #[test]
    fn a_directory_that_was_removed_comes_back_with_the_next_line() {
        let scratch = Scratch::new("removed");
        let audit = Audit::start(&scratch.dir()).expect("started");
        fs::remove_dir(scratch.dir()).expect("removed");
        put(&audit, &line(NOON, "r1"));
        audit.stop();
        assert_eq!(scratch.lines("2026-07-28").len(), 1);
    }

    #[test]
    fn a_directory_in_which_nothing_can_be_written_is_refused_at_the_start() {
        let scratch = Scratch::new("file");
        fs::create_dir_all(scratch.dir().parent().expect("a folder")).expect("created");
        fs::write(scratch.dir(), "").expect("written");
        assert!(Audit::start(&scratch.dir()).is_err());
        fs::remove_file(scratch.dir()).expect("removed");
    }
}
