//! Kills the program while writes are in every phase, and starts it again on the same data; under
//! load, many times.

pub(crate) mod audit;
mod backups;
mod cluster;
pub(crate) mod load;
mod platforms;

use super::options;
use crate::harness::program::Program;
use crate::harness::writes::{database, reach_phases, restart};
use audit::AuditBooks;
use load::Load;
use platforms::Pads;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

const PASSWORD: &str = "hunter2-and-more";

fn proxy(number: u32) -> (&'static str, Value) {
    let device_id = format!("phone-{number:07}");
    let proxy = json!({"device_id": device_id, "scheme": "http", "host": "proxy.example.com", "port": 8080,
        "username": "user", "password": PASSWORD});
    ("set_proxy", proxy)
}

pub(crate) fn assert_without(folder: &Path, secrets: &[&str]) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            assert_without(&entry.path(), secrets);
            continue;
        }
        if !entry.file_type().expect("a type").is_file() {
            continue;
        }
        let bytes = fs::read(entry.path()).expect("a file");
        for secret in secrets {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{} has a secret in clear", entry.path().display());
        }
    }
}

/// Returns the ids of the tasks and their ends, or `None` if the phases were over before all of
/// them were there.
async fn start_in_every_phase() -> Option<(Program, Vec<(String, &'static str)>)> {
    let program = Program::start(&[]).await;
    let mut tasks = Vec::new();
    let mut begin = async |program: &Program, (tool, arguments): (&str, Value), ends: &'static str| {
        let accepted = program.call(tool, arguments).await.expect("accepted");
        tasks.push((accepted["task_id"].as_str().expect("an id").to_owned(), ends));
    };
    begin(&program, proxy(13), "failed_silent").await;
    begin(&program, restart(13 + 5), "success").await;
    if !reach_phases(&program.data, &[(13, "verifying"), (18, "verifying")]).await {
        return None;
    }
    begin(&program, proxy(4), "timeout").await;
    begin(&program, restart(22), "success").await;
    begin(&program, proxy(1), "success").await;
    begin(&program, restart(5), "success").await;
    begin(&program, proxy(23), "failed").await;
    let all = [(23, "ready"), (4, "baseline"), (22, "sending"), (1, "polling"), (5, "polling"), (13, "verifying")];
    reach_phases(&program.data, &all).await.then_some((program, tasks))
}

#[tokio::test]
async fn a_write_ends_as_it_should_in_whatever_phase_the_program_was_killed() {
    let (mut program, tasks) = loop {
        if let Some(started) = start_in_every_phase().await {
            break started;
        }
    };
    let secrets: Vec<String> = program.keys.iter().map(|key| key.secret.clone()).collect();
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).chain([PASSWORD]).collect();
    assert_without(program.home.path(), &secrets);
    program.kill().await;
    assert_without(program.home.path(), &secrets);

    let keys = program.keys.clone();
    let mut program = program.again(&[]).await;
    assert!(program.keys.is_empty(), "keys are shown once");
    program.keys = keys;
    let mut refunds = 0;
    for (id, ends) in &tasks {
        let task = program.task(&json!(id)).await;
        assert_eq!(task["status"], *ends, "{task}");
        refunds += usize::from(!task["refund"].is_null());
    }
    assert_eq!(refunds, 1);
    program.stop().await;
    assert_without(program.home.path(), &secrets);

    let db = database(&program.data);
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, u32>(0)).expect("a number");
    assert_eq!(count("SELECT count(*) FROM task WHERE terminal = 0 OR sealed IS NOT NULL"), 0);
    assert_eq!(count("SELECT count(*) FROM ledger WHERE kind = 'refund'"), 1);
    let journal = fs::read_to_string(program.data.join("simulated.jsonl")).expect("the journal");
    for (id, _) in &tasks {
        assert!(journal.matches(id.as_str()).count() <= 1, "{id} was sent twice");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    tasks: u64,
    writes: u64,
    kills: u64,
    seed: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: cargo xtask drill crash"]
async fn no_kill_under_load_loses_or_repeats_anything() {
    let Options { tasks, kills: fewest, seed, .. } = options();
    let mut load = Load::begin(seed).await;
    let mut kills = 0;
    // Goes on after the last write too: tasks are then in every phase.
    while load.count_acknowledged() < tasks || kills < fewest {
        load.kill().await;
        kills += 1;
        if load.count_acknowledged() >= tasks {
            load.satisfy();
        }
    }
    audit(load, &[("ended by kill -9", kills)], None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: cargo xtask drill crash"]
async fn no_stop_under_load_loses_or_repeats_anything() {
    let Options { seed, .. } = options();
    let mut load = Load::begin(seed).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        slowest = slowest.max(load.stop().await);
    }
    let ends = [("ended by SIGTERM, exit code 0", 20), ("the slowest of these, ms", slowest.as_millis() as u64)];
    audit(load, &ends, None).await;
}

/// Damages files as the worst crash would; the audit must find it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_of_a_crash_finds_a_lost_commit_and_a_repeated_effect() {
    let mut load = Load::begin(1).await;
    let path = load.data.join("simulated.jsonl");
    let (journal, once) = loop {
        load.kill_after_writes(20).await;
        let books = AuditBooks::compare(&load.data, &load.views(), None);
        assert_eq!((books.lost, books.repeated), (0, 0), "{:#?}", books.violations);
        let journal = fs::read_to_string(&path).unwrap_or_default();
        let once = journal.lines().rfind(|line| line.contains("restart")).map(str::to_owned);
        if let Some(once) = once.filter(|_| books.commands >= 20) {
            break (journal, once);
        }
    };
    fs::write(&path, format!("{journal}{once}\n")).expect("written");
    assert_eq!(AuditBooks::compare(&load.data, &load.views(), None).repeated, 1);

    // An empty log loses everything committed since the last start, because a start copies earlier
    // commits into the database.
    fs::write(load.data.join("cloudphone.db-wal"), "").expect("written");
    load.kill().await;
    let books = AuditBooks::compare(&load.data, &load.views(), None);
    assert!(books.lost > 0, "{:#?}", books.violations);
}

async fn audit(load: Load, ends: &[(&str, u64)], pads: Option<&Pads>) {
    let (told, mut load) = load.settle().await;
    let books = AuditBooks::compare(&load.data, &told, pads);
    load.starts.sort_unstable();
    let start = |share: usize| load.starts[(load.starts.len() - 1) * share / 100].as_millis() as u64;
    let starts = [("median start, ms", start(50)), ("slowest start, ms", start(100))];
    report(&load, &[ends, &starts].concat(), told.len(), &books);
}

fn report(load: &Load, figures: &[(&str, u64)], answered: usize, books: &AuditBooks) {
    let clients = [
        ("calls answered", answered as u64),
        ("answers lost, and requested again", load.count_unanswered()),
        ("signed requests taken twice", load.count_taken_twice()),
        ("answers whose task is not shown as ended", load.unended),
        ("tasks that a later read did not find", load.count_unknown()),
    ];
    let figures = figures.iter().chain(&clients).map(|(what, figure)| ((*what).to_owned(), *figure));
    for (what, figure) in figures.chain(books.figures()) {
        println!("{figure:>8}  {what}");
    }
    let broken = load.unended + load.count_taken_twice() + load.count_unknown();
    assert!(broken == 0 && books.violations.is_empty(), "{:#?}", books.violations);
}
