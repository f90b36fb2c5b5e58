//! The promises of the writer: every line is in its file, in order, even if the disk fails for a
//! while.

mod tampering;

use super::line::DAY_MILLIS;
use super::queue::{FLUSH_AT, SLOTS};
use super::writer::Writer;
use super::*;
use serde_json::value::RawValue;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;
use tempfile::TempDir;
use toolwarrant_base::json;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;

/// 2026-07-28T12:00:00Z.
const NOON: Timestamp = Timestamp(1_785_240_000_000);
const HALF_DAY: Duration = Duration::from_millis(DAY_MILLIS / 2);

struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("audit")
    }

    fn file(&self, date: &str) -> PathBuf {
        self.dir().join(format!("audit-{date}.jsonl"))
    }

    fn lines(&self, date: &str) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.file(date)).unwrap_or_default();
        let lines = text.lines().filter(|line| !is_chain_line(line.as_bytes()));
        lines.map(|line| json::read(line).expect("a whole line of JSON")).collect()
    }

    fn start(&self) -> io::Result<Audit> {
        Audit::start(self.parts(&Clock::manual(NOON)))
    }

    fn parts(&self, clock: &Clock) -> AuditParts<'static> {
        let folder = Box::leak(self.dir().into_boxed_path());
        AuditParts { folder, key: key(), clock: clock.clone(), anchor: None, file_max: u64::MAX }
    }
}

fn key() -> ChainKey {
    KeyRing::new("test", &[7; 32], Random::System).chain_key()
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
        task_id: None,
        from: None,
        calls: 1,
    }
}

fn put(audit: &Audit, line: &Line<'_>) {
    audit.reserve().expect("a place").write(line);
}

fn start() -> (Scratch, Audit) {
    let scratch = Scratch::new();
    let audit = scratch.start().expect("started");
    (scratch, audit)
}

fn until(what: &str, done: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < patience, "{what}");
        thread::yield_now();
    }
}

#[test]
fn each_line_is_in_the_file_of_its_utc_day_and_only_the_owner_may_read_it() {
    let scratch = Scratch::new();
    for run in ["a", "b"] {
        let audit = scratch.start().expect("started");
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
    assert_eq!(mode(scratch.file("2026-07-28")), 0o600);
}

#[test]
fn slots_run_out_and_come_back_with_a_drop_or_a_written_line() {
    let (scratch, audit) = start();
    let mut slots: Vec<_> = std::iter::from_fn(|| audit.reserve()).collect();
    assert_eq!(slots.len(), SLOTS);

    drop(slots.pop());
    let last = audit.reserve().expect("the place that was dropped");
    assert!(audit.reserve().is_none());

    last.write(&line(NOON, "r1"));
    slots.drain(..FLUSH_AT).for_each(|slot| slot.write(&line(NOON, "r2")));
    until("no place came back", || audit.reserve().is_some());
    drop(slots);
    let queue = Arc::clone(&audit.queue);
    audit.stop();
    assert_eq!(scratch.lines("2026-07-28").len(), FLUSH_AT + 1);
    assert_eq!(queue.slots_in_use(), 0);
}

#[test]
fn any_thread_can_take_any_slot_whichever_thread_had_it_before() {
    let (_scratch, audit) = start();
    for _ in 0..3 {
        let slots: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| std::iter::from_fn(|| audit.reserve()).collect::<Vec<_>>())).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!((slots.len(), audit.handle().slots()), (SLOTS, SLOTS));
        drop(slots);
        assert_eq!(audit.handle().slots(), 0);
    }
}

#[test]
fn lines_of_a_client_that_calls_in_sequence_are_in_that_order_whichever_thread_serves_it() {
    const THREADS: usize = 4;
    const CALLS: usize = 4_000;
    let (scratch, audit) = start();
    let done: [AtomicUsize; 2] = Default::default();
    let serve = |thread: usize, client: usize| {
        for n in (thread..CALLS).step_by(THREADS) {
            while done[client].load(Acquire) < n {
                thread::yield_now();
            }
            put(&audit, &Line { application: ["a", "b"][client], ..line(NOON, &n.to_string()) });
            done[client].store(n + 1, Release);
        }
    };
    thread::scope(|scope| {
        for (thread, client) in (0..THREADS).flat_map(|thread| [(thread, 0), (thread, 1)]) {
            let serve = &serve;
            scope.spawn(move || serve(thread, client));
        }
        while done.iter().any(|done| done.load(Relaxed) < CALLS) {
            audit.queue.flush();
            thread::yield_now();
        }
    });
    audit.stop();
    let lines = scratch.lines("2026-07-28");
    for client in ["a", "b"] {
        let of_client = lines.iter().filter(|line| line["application"] == client);
        let ids: Vec<usize> = of_client.filter_map(|line| line["request_id"].as_str()?.parse().ok()).collect();
        assert_eq!(ids, (0..CALLS).collect::<Vec<_>>(), "{client}");
    }
}

#[test]
fn lines_are_held_while_the_disk_fails_and_written_in_order_afterwards() {
    let scratch = Scratch::new();
    let queue = Arc::new(Queue::new(Clock::manual(NOON)));
    (0..3).for_each(|_| std::mem::forget(queue.reserve()));
    fs::create_dir_all(scratch.dir()).expect("created");
    let (mut writer, _) = Writer::open(&scratch.dir(), key(), Arc::clone(&queue), None).expect("an empty trail");
    fs::remove_dir(scratch.dir()).expect("removed");
    fs::write(scratch.dir(), "").expect("written");
    for id in ["1\n", "2\n"] {
        writer.held.add(NOON.0 / DAY_MILLIS, 1, id.as_bytes());
        writer.flush();
        assert!(writer.failing);
        assert_eq!(queue.slots_in_use(), 3);
    }
    fs::remove_file(scratch.dir()).expect("removed");
    writer.flush();
    assert!(!writer.failing);
    assert_eq!(queue.slots_in_use(), 1);
    assert_eq!(scratch.lines("2026-07-28"), [1, 2]);
}

#[test]
fn a_stop_ends_even_if_the_trail_cannot_be_written() {
    let (scratch, audit) = start();
    fs::remove_dir(scratch.dir()).expect("removed");
    fs::write(scratch.dir(), "").expect("written");
    put(&audit, &line(NOON, "r1"));
    audit.stop();
    fs::remove_file(scratch.dir()).expect("still in the way");
}

#[test]
fn a_directory_that_was_removed_comes_back_with_the_next_line() {
    let (scratch, audit) = start();
    fs::remove_dir(scratch.dir()).expect("removed");
    put(&audit, &line(NOON, "r1"));
    audit.stop();
    assert_eq!(scratch.lines("2026-07-28").len(), 1);
}

#[test]
fn a_directory_in_which_nothing_can_be_written_is_refused_at_the_start() {
    let scratch = Scratch::new();
    fs::write(scratch.dir(), "").expect("written");
    assert!(scratch.start().is_err());
    fs::remove_file(scratch.dir()).expect("removed");
}

#[tokio::test]
async fn a_line_that_waits_for_10_seconds_makes_the_trail_stale_until_it_is_written() {
    let scratch = Scratch::new();
    let clock = Clock::manual(NOON);
    let audit = Audit::start(scratch.parts(&clock)).expect("started");
    let handle = audit.handle();
    fs::remove_dir(scratch.dir()).expect("removed");
    fs::write(scratch.dir(), "").expect("in the way");
    clock.advance(Duration::from_secs(60));
    assert!(!audit.is_stale(clock.now()) && handle.stale().is_none(), "nothing waits");
    put(&audit, &line(NOON, "r1"));
    handle.flush().await;
    for (seconds, stale) in [(0, false), (9, false), (10, true), (70, true)] {
        let at = NOON.plus(Duration::from_secs(60 + seconds));
        assert_eq!(audit.is_stale(at), stale, "after {seconds} s");
    }
    clock.advance(Duration::from_secs(12));
    assert_eq!(handle.stale(), Some(Duration::from_secs(12)));
    fs::remove_file(scratch.dir()).expect("still in the way");
    let patience = Instant::now() + Duration::from_secs(60);
    while !handle.flush().await {
        assert!(Instant::now() < patience, "never written");
    }
    assert!(!audit.is_stale(clock.now()) && handle.stale().is_none(), "it was written");
    audit.stop();
    assert_eq!(scratch.lines("2026-07-28").len(), 1);
}

#[test]
fn refused_commands_have_60_lines_a_minute_and_then_one_of_each_kind() {
    let scratch = Scratch::new();
    let clock = Clock::manual(NOON);
    let audit = Audit::start(scratch.parts(&clock)).expect("started");
    let refuse = |operator, command| {
        let lines = [r#"{"command":"c","object":1}"#, r#"{"command":"c","object":null}"#];
        assert!(audit.handle().refuse_json(clock.now(), (operator, command), lines));
    };
    (0..200).for_each(|_| refuse("ada", "suspend"));
    (0..3).for_each(|_| refuse("ada", "resume"));
    refuse("eve", "suspend");
    clock.advance(Duration::from_secs(60));
    refuse("ada", "suspend");
    audit.stop();
    let lines = scratch.lines("2026-07-28");
    let mut calls: Vec<_> = lines.iter().filter_map(|line| line["calls"].as_u64()).collect();
    calls.sort_unstable();
    assert_eq!((calls, lines.len()), (vec![3, 140], 60 + 2 + 2));
}

#[test]
fn a_day_has_several_files_in_one_chain_that_are_read_in_order() {
    let (scratch, long) = (Scratch::new(), "x".repeat(10_000));
    let clock = Clock::manual(NOON);
    let mut anchor = None;
    for run in ["a", "b", "c", "d"] {
        let audit = Audit::start(AuditParts { anchor, file_max: 10_000, ..scratch.parts(&clock) }).expect("started");
        let handle = audit.handle();
        clock.advance(Duration::from_secs(90));
        assert_eq!(handle.seal_age(), Duration::from_secs(90), "it was started then");
        put(&audit, &Line { tool: &long, ..line(NOON, run) });
        put(&audit, &line(NOON.plus(HALF_DAY), run));
        let sealed = handle.seals();
        audit.stop();
        assert_eq!(handle.seal_age(), Duration::ZERO);
        anchor = Some(Anchor { newest: *sealed.borrow(), pruned: Head::START, acts: 0 });
    }
    let names: Vec<_> = days(&scratch.dir()).expect("read");
    let names: Vec<_> = names.iter().map(|path| trail::name(path)).collect();
    let expected = ["2026-07-28", "2026-07-28_000001", "2026-07-28_000002", "2026-07-28_000003", "2026-07-29"];
    assert_eq!(names, expected.map(|date| format!("audit-{date}.jsonl")));
    let found = verify::verify(&scratch.dir(), &key(), anchor.as_ref(), verify::Scope::All).expect("read");
    assert_eq!((found.faults, found.sealed_lines), (vec![], 4 * 2));
    let lines = tail(&scratch.dir(), TAIL_MAX).expect("read");
    let ids = lines.iter().filter_map(|line| line.split('"').nth(7)).collect::<String>();
    assert_eq!(ids, "abcdabcd");
}

#[test]
fn refused_calls_have_60_lines_a_minute_and_then_one_of_each_kind() {
    let scratch = Scratch::new();
    let clock = Clock::manual(NOON);
    let audit = Audit::start(scratch.parts(&clock)).expect("started");
    let refuse = |application: &'static str, tool: &'static str| {
        let refused = Line { application, tool, outcome: "not_found", ..line(clock.now(), "r") };
        audit.reserve().expect("a place").refuse(&refused);
    };
    for _ in 0..200 {
        refuse("app", "print");
    }
    (0..3).for_each(|_| refuse("app", "scan"));
    refuse("other", "print");
    put(&audit, &line(NOON, "r1"));
    clock.advance(Duration::from_secs(60));
    refuse("app", "print");
    audit.stop();
    let lines = scratch.lines("2026-07-28");
    let of = |tool: &str, application: &str| -> Vec<u64> {
        let lines = lines.iter().filter(|line| line["tool"] == tool && line["application"] == application);
        lines.filter(|line| line["outcome"] != "ok").map(|line| line["calls"].as_u64().unwrap_or(1)).collect()
    };
    assert_eq!((of("scan", "app"), of("print", "other")), (vec![3], vec![1]));
    let mut print = of("print", "app");
    print.sort_unstable();
    assert_eq!(print, [vec![1; 61], vec![140]].concat(), "60, the rest of the minute, and one of the next");
    assert_eq!(lines.iter().filter(|line| line["outcome"] == "ok").count(), 1);
}

#[test]
fn no_line_is_longer_than_8_kib() {
    let (scratch, audit) = start();
    let arguments = RawValue::from_string(format!("\"{}\"", "x".repeat(100_000))).expect("JSON");
    put(&audit, &Line { arguments: Some(&arguments), ..line(NOON, "r1") });
    audit.stop();
    assert_eq!(scratch.lines("2026-07-28")[0]["arguments"], serde_json::Value::Null);
}

#[test]
fn the_file_is_opened_again_when_it_was_moved_and_on_request() {
    let (scratch, audit) = start();
    let put_and_wait = |id: &'static str| {
        put(&audit, &line(NOON, id));
        until(id, || fs::read_to_string(scratch.file("2026-07-28")).is_ok_and(|text| text.contains(id)));
    };
    put_and_wait("first");
    fs::rename(scratch.file("2026-07-28"), scratch.dir().join("old")).expect("moved");
    put_and_wait("second");
    audit.handle().reopen();
    put_and_wait("third");
    fs::remove_file(scratch.file("2026-07-28")).expect("removed");
    put_and_wait("fourth");
    audit.stop();
    assert_eq!(scratch.lines("2026-07-28").len(), 1);
}

#[test]
fn a_link_in_place_of_the_file_is_not_followed() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.dir()).expect("created");
    let elsewhere = scratch.0.path().join("elsewhere");
    fs::write(&elsewhere, "untouched").expect("written");
    symlink(&elsewhere, scratch.file("2026-07-28")).expect("a link");
    let audit = scratch.start().expect("started");
    put(&audit, &line(NOON, "r1"));
    audit.stop();
    assert_eq!(fs::read_to_string(elsewhere).expect("there"), "untouched");
}

#[test]
fn the_last_lines_are_read_from_the_end_without_seals_and_without_what_is_incomplete() {
    let (scratch, audit) = start();
    for n in 0..3_000 {
        put(&audit, &line(NOON.plus(Duration::from_mins(n)), "r"));
    }
    audit.stop();
    let mut file = OpenOptions::new().append(true).open(scratch.file("2026-07-30")).expect("there");
    let long = "x".repeat(200_000);
    write!(file, "{long}\n{{\"time\":1}}\n{{\"ti").expect("written");
    let all: Vec<String> = ["2026-07-28", "2026-07-29", "2026-07-30"]
        .iter()
        .flat_map(|date| {
            fs::read_to_string(scratch.file(date)).expect("there").lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|line| !is_chain_line(line.as_bytes()) && line.len() < 1_000 && line.ends_with('}'))
        .collect();
    assert_eq!(all.len(), 3_001);
    for wanted in [0, 1, 2, 700, 3_000, 3_001, usize::MAX] {
        let tail = tail(&scratch.dir(), wanted).expect("read");
        assert_eq!(tail, all[all.len() - wanted.min(all.len())..], "{wanted}");
    }
}
