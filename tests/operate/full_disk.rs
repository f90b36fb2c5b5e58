//! The program on a disk that is full for a while.
//!
//! A limit on its file sizes stands in for the disk: setting it needs no privileges, and another
//! process can lift it.

use super::audit::read_trail;
use crate::harness::program::{Program, WATCHED, get, json_of, key_of, operate, says, start as start_in, steady};
use crate::harness::writes::{database, open_database, power, wait_for_phases};
use kit::wait_for;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, PipeWriter, pipe};
use std::sync::Arc;
use std::thread;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use toolwarrant_audit::is_chain_line;

const ASKED: usize = 20;

pub(super) fn limit(program: &Program, bytes: Option<u64>) {
    let pid = Pid::from_raw(program.id().try_into().expect("a process"));
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).expect("it is ours");
}

/// Ignores the signal, so that a write beyond the limit fails as on a full disk.
async fn start(log: PipeWriter) -> Program {
    Program::start_by(|start| start.flags(WATCHED).after(r#"trap "" XFSZ"#).log(log)).await
}

async fn start_restart(program: &Program, phone: u32) -> String {
    let task = program.call("set_power", power(phone, "restart")).await.expect("accepted");
    task["task_id"].as_str().expect("an id").to_owned()
}

fn lines() -> (PipeWriter, UnboundedReceiver<Value>) {
    let ((log, into), (tell, told)) = (pipe().expect("a pipe"), unbounded_channel());
    thread::spawn(move || {
        for line in BufReader::new(log).lines() {
            let line = serde_json::from_str(&line.expect("text")).expect("JSON");
            let _ = tell.send(line);
        }
    });
    (into, told)
}

/// Waits until changes that were pending are stored.
async fn until_on_disk(log: &mut UnboundedReceiver<Value>) {
    while !log.recv().await.expect("it runs")["message"].to_string().contains("are on the disk") {}
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_forgets_none_and_once_there_is_room_everything_goes_on() {
    let (into, mut log) = lines();
    let mut program = start(into).await;
    let url = program.monitor().to_owned();
    let under_way = start_restart(&program, 18).await;
    wait_for_phases(&program.data, &[(18, "polling")]).await;

    limit(&program, Some(0));
    let asked = async {
        for phone in [1, 5].into_iter().cycle().take(ASKED) {
            let refused = program.call("set_power", power(phone, "restart")).await.expect_err("it cannot be stored");
            assert_eq!((&refused["code"], &refused["retryable"]), (&json!("overloaded"), &json!(true)), "{refused}");
        }
    };
    let repeated = async {
        for _ in 0..ASKED {
            assert_eq!(start_restart(&program, 18).await, under_way, "what is in flight is known");
        }
    };
    tokio::join!(asked, repeated);
    let why = program.until_ready(503).await;
    assert!(why.starts_with("the store cannot write: disk"), "{why}");
    assert_eq!(get(&format!("{url}/healthz")).await.0, 200);
    program.call("list_devices", json!({})).await.expect("a page");
    program.call("get_device", json!({"device_id": "phone-0000001"})).await.expect("a phone");
    // The task ends meanwhile, but its end cannot be stored.
    let mut logged = Vec::new();
    while !logged.last().is_some_and(|line: &Value| line["message"].to_string().contains("a step could not be")) {
        logged.push(log.recv().await.expect("it runs"));
    }
    let asked = json!({"task_id": under_way, "wait_seconds": 0});
    assert_eq!(program.call("get_task", asked).await.expect("a task")["status"], "dispatched");

    limit(&program, None);
    program.until_ready(200).await;
    let mut told = [under_way, start_restart(&program, 1).await, start_restart(&program, 5).await];
    for id in &told {
        let task = program.task(&json!(id)).await;
        assert_eq!(task["status"], "success", "{task}");
    }
    program.stop().await;

    let kept = database(&program.data).query_row("SELECT count(*) FROM task", [], |row| row.get(0));
    assert_eq!(kept, Ok(3));
    let journal = fs::read_to_string(program.data.join("simulated.jsonl")).expect("the journal");
    let done = journal.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("a whole line"));
    let mut done: Vec<_> = done.map(|command| command["request"].as_str().expect("an id").to_owned()).collect();
    // The last two may be sent in any order.
    done.sort();
    told.sort();
    assert_eq!(done, told, "each was done once, and nothing else was");
    let trail = read_trail(&program.data);
    let trail_lines = trail.lines().filter(|line| !is_chain_line(line.as_bytes()));
    let outcomes =
        trail_lines.map(|line| serde_json::from_str::<Value>(line).expect("a whole line")["outcome"].clone());
    assert_eq!(outcomes.filter(|outcome| outcome == "overloaded").count(), ASKED, "{trail}");

    while let Some(line) = log.recv().await {
        logged.push(line);
    }
    let said = |text: &str| logged.iter().filter(|line| line["message"].to_string().contains(text)).count();
    assert_eq!((said("the audit trail cannot be written"), said("the audit trail can be written again")), (1, 1));
    assert_eq!((said("the store cannot write"), said("the store can write again")), (1, 1));
    assert_eq!(said("a step could not be stored"), 1);
    assert_eq!(said("internal error"), 0, "it is said once why");
}

#[tokio::test]
async fn on_a_full_disk_authority_is_taken_away_at_once_and_nothing_is_given() {
    let (into, mut log) = lines();
    let mut program = start(into).await;
    let key = key_of(&program.data, "demo-read").await;
    let id = &key.id;
    assert_eq!(program.status(&key).await, 200);
    json_of(&program.data, "app create paused --permission device_read").await;
    let other = key_of(&program.data, "paused").await;

    limit(&program, Some(0));
    let data = program.data.clone();
    let mut seen = String::new();
    for line in [
        format!("key revoke {id}"),
        "app revoke demo stream".to_owned(),
        "device unassign demo --all".to_owned(),
        "app suspend paused".to_owned(),
        "app resume paused".to_owned(),
        "key create demo-read".to_owned(),
        "app grant demo-read stream".to_owned(),
        format!("key label {id} owner=Ada"),
        "app delete demo-read --yes".to_owned(),
    ] {
        let (code, said) = operate(&data, &line).await;
        seen += &format!("$ {line} -> {code}\n{said}").replace(id, "KEY");
        let called = kit::call(program.address, &other, "list_devices", &json!({})).await.expect("an answer");
        assert_eq!(called.is_err(), seen.contains("app suspend"), "{line}");
    }
    assert_eq!(program.status(&key).await, 401);
    let refused = program.call("create_session", json!({"device_id": "phone-0000001"})).await.expect_err("taken away");
    seen += &format!("create_session: {}\n", refused["code"]);
    let refused = program.call("get_device", json!({"device_id": "phone-0000001"})).await.expect_err("taken away");
    seen += &format!("get_device: {}\n", refused["code"]);
    insta::assert_snapshot!(steady(&seen, &data));

    limit(&program, None);
    until_on_disk(&mut log).await;
    program.kill().await;
    let mut again = program.again(WATCHED).await;
    assert_eq!(again.status(&key).await, 401, "after a restart too");
    assert_eq!(json_of(&again.data, "app show demo").await["permissions"], json!(["device"]));
    assert_ne!(json_of(&again.data, "app show paused").await["suspended_at"], Value::Null);
    let deleted = json_of(&again.data, "app list --deleted").await;
    assert!(deleted[0]["name"].as_str().expect("text").starts_with("demo-read (deleted"), "{deleted}");
    let acts = json_of(&again.data, "acts").await;
    let commands: Vec<_> = acts.as_array().expect("acts").iter().map(|act| act["command"].clone()).collect();
    let expected = ["app delete", "app suspend", "device unassign", "app revoke", "key revoke"];
    assert!(expected.iter().all(|command| commands.contains(&json!(command))), "their acts are there: {commands:?}");
    assert_eq!(json_of(&again.data, "doctor").await["faults"], json!([]));
    again.stop().await;
}

#[tokio::test]
async fn a_start_on_a_full_disk_reads_and_takes_away_and_once_there_is_room_it_writes() {
    let mut program = Program::start(WATCHED).await;
    let (home, data) = (Arc::clone(&program.home), program.data.clone());
    let key = key_of(&data, "demo").await;
    let revoked = [key_of(&data, "demo-read").await, key_of(&data, "demo-read").await];
    program.call("set_power", power(1, "restart")).await.expect("accepted");
    program.kill().await;
    for (number, gone) in revoked.iter().enumerate() {
        // A kill leaves the log of the database, and a stop does not.
        if number == 1 {
            let stopped = open_database(&data);
            stopped.execute_batch("PRAGMA wal_checkpoint").expect("SQL");
        }
        assert_eq!(data.join("cloudphone.db-wal").exists(), number == 0);
        let (into, mut log) = lines();
        let limited = start_in(&home).flags(WATCHED).after(r#"trap "" XFSZ; ulimit -S -f 0"#).log(into);
        let mut program = Program::start_as(Arc::clone(&home), limited).await;
        program.keys.push(key.clone());
        program.call("list_devices", json!({})).await.expect("a page");
        assert_eq!(program.status(gone).await, 200);
        says(&data, &format!("key revoke {}", gone.id), 0, "not yet on the disk").await;
        assert_eq!(program.status(gone).await, 401);
        let restart = power(5 + 4 * number as u32, "restart");
        let refused = program.call("set_power", restart.clone()).await.expect_err("it cannot be stored");
        assert_eq!(refused["code"], "overloaded", "{refused}");
        limit(&program, None);
        program.until_ready(200).await;
        program.call("set_power", restart).await.expect("accepted");
        until_on_disk(&mut log).await;
        program.kill().await;
        let mut again = program.again(WATCHED).await;
        assert_eq!(again.status(gone).await, 401);
        assert_eq!(json_of(&data, "doctor").await["faults"], json!([]));
        again.kill().await;
    }
}

#[tokio::test]
async fn a_revocation_is_stored_while_the_server_stops() {
    let mut program = Program::start(WATCHED).await;
    let key = key_of(&program.data, "demo-read").await;
    let other = open_database(&program.data);
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    says(&program.data, &format!("key revoke {}", key.id), 0, "not yet on the disk").await;
    program.ask_to_stop().await;
    // The server does not listen any more, so it is stopping.
    let closed = wait_for(async || match tokio::net::TcpStream::connect(program.address).await {
        Ok(_) => Err("it still listens".to_owned()),
        Err(_) => Ok(()),
    });
    closed.await.expect("it is stopping");
    other.execute_batch("ROLLBACK").expect("it holds the lock");
    program.wait_for_end().await;
    let mut again = program.again(WATCHED).await;
    assert_eq!(again.status(&key).await, 401);
    again.stop().await;
}
