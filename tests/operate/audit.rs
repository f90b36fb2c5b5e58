//! The audit trail as clients and operators see it: the signs of tampering, the behaviour while it
//! cannot be written, and its bounds.

use crate::harness::program::{Program, WATCHED, json_of, operate};
use crate::harness::{open_phones, phones};
use cloudphone::phones::contract::CATALOGUE;
use kit::wait_for;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::{self, DirBuilder, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant::contract::PermissionSet;
use toolwarrant::handler::Grants;
use toolwarrant_audit::days;
use toolwarrant_testing::Tenant;

pub(super) fn newest(data: &Path) -> PathBuf {
    days(&data.join("audit")).expect("a folder").pop().expect("a file")
}

pub(super) fn read_trail(data: &Path) -> String {
    let days = days(&data.join("audit")).expect("a folder");
    days.iter().map(|day| fs::read_to_string(day).expect("text")).collect()
}

pub(super) fn rewrite(path: &Path, edit: impl FnOnce(String) -> String) {
    fs::write(path, edit(fs::read_to_string(path).expect("text"))).expect("written");
}

/// Puts copies of some lines in the place of others.
fn replace_lines(trail: &str, place: Range<usize>, with: Range<usize>) -> String {
    let lines: Vec<_> = trail.split_inclusive('\n').collect();
    [&lines[..place.start], &lines[with], &lines[place.end..]].concat().concat()
}

/// The trail has an opening and a seal for each of five calls.
type Tampering = (&'static str, fn(&Path));

const TAMPERING: &[Tampering] = &[
    ("nothing", |_| {}),
    ("one byte is changed", |data| rewrite(&newest(data), |trail| trail.replacen("list_devices", "list_devicez", 1))),
    ("a seal is removed", |data| rewrite(&newest(data), |trail| replace_lines(&trail, 5..6, 0..0))),
    ("a line is inserted", |data| rewrite(&newest(data), |trail| replace_lines(&trail, 5..5, 1..2))),
    ("the opening is removed", |data| rewrite(&newest(data), |trail| replace_lines(&trail, 0..1, 0..0))),
    ("a file of no chain is added", |data| {
        fs::write(data.join("audit/audit-2020-01-01.jsonl"), "{\"time\":0}\n").expect("written");
    }),
    ("the file is removed", |data| fs::remove_file(newest(data)).expect("removed")),
    ("a process that was killed left a line and a half", |data| {
        rewrite(&newest(data), |trail| format!("{trail}{}\n{{\"time\":\"20", trail.lines().nth(1).expect("a line")));
    }),
];

/// Two applications, each with a key.
const DEMO_ACTS: u64 = 4;

/// Seals each call before the next one.
async fn five_calls() -> Arc<TempDir> {
    let mut program = Program::start(&[]).await;
    // The lines of the first acts have a seal of their own.
    let sealed = wait_for(async || {
        let verified = json_of(&program.data, "audit verify").await;
        if verified["sealed_lines"] == json!(DEMO_ACTS) { Ok(()) } else { Err(verified.to_string()) }
    });
    sealed.await.expect("they are sealed");
    for sealed in 1..=5 {
        program.call("list_devices", json!({})).await.expect("a page");
        let verified = json_of(&program.data, "audit verify").await;
        assert_eq!(
            (&verified["sound"], &verified["sealed_lines"]),
            (&json!(true), &json!(DEMO_ACTS + sealed)),
            "{verified}"
        );
    }
    let tail = json_of(&program.data, "audit tail").await;
    let tools = tail.as_array().expect("lines").iter().filter_map(|line| line.get("tool")?.as_str());
    assert!(tools.eq(["list_devices"; 5]), "a server that runs writes what waits, and no seal is shown: {tail}");
    program.stop().await;
    program.home.clone()
}

#[tokio::test]
async fn each_change_of_the_trail_is_told_for_people_and_for_programs() {
    let home = five_calls().await;
    let mut out = String::new();
    for (at, (what, tamper)) in TAMPERING.iter().enumerate() {
        let copy = TempDir::new().expect("a temporary folder");
        let copied =
            tokio::process::Command::new("cp").arg("-a").arg(home.path().join("data")).arg(copy.path()).status();
        assert!(copied.await.expect("cp").success());
        let data = copy.path().join("data");
        let date = newest(&data).file_stem().and_then(|name| name.to_str()).expect("a name")[6..].to_owned();
        tamper(&data);
        for line in ["audit verify", "audit verify --json"].into_iter().take(if at < 2 { 2 } else { 1 }) {
            let (code, said) = operate(&data, line).await;
            write!(out, "{what}\n$ cloudphone {line}\n{}exit {code}\n\n", said.replace(&date, "DATE")).expect("text");
        }
    }
    insta::assert_snapshot!(out);
}

#[tokio::test]
async fn calls_that_may_change_something_are_refused_after_10_seconds_without_an_audit() {
    let (server, key) = open_phones().await;
    let page = server.call(&key, "list_devices", json!({})).await.expect("a page");
    let phones = page["devices"].as_array().expect("phones");
    let offers = |phone: &&Value| phone["capabilities"]["session"] == true && phone["capabilities"]["power"] == true;
    let ids: Vec<_> = phones.iter().filter(offers).map(|phone| &phone["device_id"]).collect();
    fs::remove_dir_all(&server.audit).expect("removed");
    fs::write(&server.audit, "").expect("in the way");
    let ask = async |tool: &str| {
        let arguments = match tool {
            "list_devices" => json!({}),
            "create_session" => json!({"device_id": ids[0]}),
            _ => json!({"device_id": ids[1], "action": "restart", "idempotency_key": "again"}),
        };
        let answer = server.call(&key, tool, arguments).await;
        answer.map_or_else(|failure| failure["code"].clone(), |_| json!("ok"))
    };
    let overloaded = json!("overloaded");
    assert_eq!(ask("list_devices").await, "ok");
    server.audit_handle.flush().await;
    server.clock.advance(Duration::from_secs(9));
    assert_eq!([ask("create_session").await, ask("set_power").await], ["ok", "ok"], "9 s are not too long");
    server.clock.advance(Duration::from_secs(1));
    assert_eq!([ask("create_session").await, ask("set_power").await], [overloaded.clone(), overloaded]);
    assert_eq!(ask("list_devices").await, "ok", "reads go on");
    fs::remove_file(&server.audit).expect("still in the way");
    server.audit_handle.flush().await;
    assert_eq!([ask("create_session").await, ask("set_power").await], ["ok", "ok"].map(|ok| json!(ok)));
    let text = server.audit().await;
    assert_eq!(text.lines().count(), 9, "no line is lost: {text}");
}

#[tokio::test]
async fn while_the_audit_cannot_be_written_readyz_says_so() {
    let program = Program::start(WATCHED).await;
    program.until_ready(200).await;
    let audit = program.data.join("audit");
    fs::rename(&audit, program.data.join("away")).expect("moved");
    fs::write(&audit, "").expect("in the way");
    program.call("list_devices", json!({})).await.expect("a page");
    let why = program.until_ready(503).await;
    let seconds = why.strip_prefix("the audit has not been written for ").and_then(|rest| rest.strip_suffix(" s\n"));
    assert!(seconds.is_some_and(|seconds| seconds.parse::<u64>().is_ok_and(|seconds| seconds >= 10)), "{why}");
    fs::remove_file(&audit).expect("still in the way");
    program.until_ready(200).await;
}

/// The longest names, and as many as a call may have, are the most that a refused call could write
/// to a disk.
#[tokio::test]
async fn a_key_that_only_reads_and_is_refused_all_the_time_fills_no_disk() {
    const MINUTES: usize = 3;
    let reading = CATALOGUE.permissions.iter().find(|known| known.name == "device_read").expect("a permission");
    let tenant = || Tenant {
        permissions: PermissionSet::default().and(reading.grants),
        grants: Grants::everything(),
        requests_per_minute: 300,
        keys: 1,
    };
    let (server, keys) = phones(vec![tenant()]).await;
    let key = &keys[0][0];
    let names = (0..40).map(|n| (format!("{n:02}{}", "ß".repeat(100)), json!(1)));
    let many = Value::Object(names.collect());
    let tools = ["list_devices", "get_device", "get_task", "set_power", "create_session"];
    for _ in 0..MINUTES {
        for n in 0..300 {
            server.call(key, tools[n % tools.len()], many.clone()).await.expect_err("refused");
        }
        server.clock.advance(Duration::from_secs(61));
    }
    let text = server.audit().await;
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let calls: u64 = lines.iter().map(|line| line["calls"].as_u64().unwrap_or(1)).sum();
    assert_eq!(calls, 300 * MINUTES as u64, "none goes uncounted");
    let longest = text.lines().map(str::len).max();
    assert!(longest.is_some_and(|longest| longest < 700), "{longest:?} bytes in a line");
    let bytes_a_day = text.len() / MINUTES * 24 * 60;
    assert!(bytes_a_day < 64 << 20, "{bytes_a_day} bytes a day");
}

#[tokio::test]
async fn audit_files_beyond_the_limit_are_pruned_and_not_reported_missing() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let audit = home.path().join("data/audit");
    DirBuilder::new().recursive(true).mode(0o700).create(&audit).expect("a folder");
    for day in 1..=3 {
        let path = audit.join(format!("audit-2026-01-0{day}.jsonl"));
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        file.expect("a file").set_len(1 << 20).expect("a length");
    }
    let mut program = Program::start_at(home.clone(), &["--audit-keep-bytes", "1572864"]).await;
    program.call("list_devices", json!({})).await.expect("a page");
    let kept = || days(&audit).expect("a folder").len();
    let pruned = wait_for(async || if kept() == 2 { Ok(()) } else { Err(format!("{} files", kept())) });
    pruned.await.expect("one day goes");
    let verified = json_of(&program.data, "audit verify").await;
    assert_eq!((kept(), &verified["sound"]), (2, &json!(true)), "{verified}");
    let doctor = json_of(&program.data, "doctor").await;
    assert_eq!(
        (&doctor["kept"][0]["amount"], &doctor["kept"][0]["oldest"]),
        (&json!("1 MiB"), &json!("2026-01-03T00:00:00.000Z"))
    );
    program.stop().await;
}
