//! `stdio`: bridges that serve each other, as hosts start and end them.

use super::fake::Fake;
use super::{call, empty_result, request};
use crate::harness::bridge::Bridge;
use crate::harness::program::{binary, json_of};
use crate::harness::{outcome, write};
use kit::wait_for;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::process::Command;

fn home() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

fn folder(home: &TempDir) -> PathBuf {
    home.path().join(".local/share/cloudphone")
}

pub(crate) async fn begin(bridge: &mut Bridge) -> Vec<Value> {
    let client = json!({"name": "host", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let begun = bridge.ask(request("begin", "initialize", hello)).await;
    assert_eq!(begun["result"]["protocolVersion"], "2025-06-18", "{begun}");
    let listed = bridge.ask(request("list", "tools/list", json!({}))).await;
    listed["result"]["tools"].as_array().expect("tools").clone()
}

fn restart(id: &str, phone: &str) -> String {
    call(id, "set_power", json!({"device_id": phone, "action": "restart"}))
}

#[tokio::test]
async fn two_that_start_at_once_share_a_server_and_the_death_of_either_in_a_write_shows_no_error() {
    for victim in [0, 1] {
        let home = home();
        let mut both = [Bridge::over_stdio(home.path(), &[]), Bridge::over_stdio(home.path(), &[])];
        let [one, other] = &mut both;
        let (tools, same) = tokio::join!(begin(one), begin(other));
        assert!(tools.len() == 7 && tools == same);
        if victim == 0 {
            both.reverse();
        }
        let [survivor, dead] = &mut both;
        dead.signal("STOP");
        survivor.send(restart("write", "phone-0000001")).await;
        survivor.send(call("read", "list_devices", json!({"limit": 1}))).await;
        dead.signal("KILL");
        let mut task = None;
        for answer in [survivor.next().await, survivor.next().await] {
            let result = outcome(&answer).unwrap_or_else(|error| panic!("{error}"));
            task = task.or(result.get("task_id").cloned());
        }
        let poll = json!({"task_id": task.expect("a task"), "wait_seconds": 50});
        let ended = outcome(&survivor.ask(call("poll", "get_task", poll)).await).expect("a task");
        assert_eq!((&ended["status"], &ended["terminal"]), (&json!("success"), &json!(true)), "{ended}");
        let tasks = json_of(&folder(&home), "task list").await;
        assert_eq!(tasks["tasks"].as_array().expect("tasks").len(), 1, "{tasks}");
        assert!(survivor.end().await.1.success());
    }
}

#[tokio::test]
async fn it_ends_with_its_input_or_at_a_signal_and_leaves_nothing_behind() {
    let home = home();
    for end in ["input", "TERM", "HUP"] {
        let mut bridge = Bridge::over_stdio(home.path(), &[]);
        begin(&mut bridge).await;
        let exit = if end == "input" {
            bridge.end().await.1
        } else {
            bridge.signal(end);
            bridge.exit().await
        };
        let files = folder(&home).read_dir().expect("a folder").map(|file| file.expect("a file").file_name());
        let sockets: Vec<_> = files.filter(|name| name.to_string_lossy().ends_with(".sock")).collect();
        assert!(exit.success() && sockets.is_empty(), "{end} {exit} {sockets:?}");
    }
}

#[tokio::test]
async fn a_task_in_flight_keeps_the_server_until_it_has_ended() {
    let home = home();
    let mut bridge = Bridge::over_stdio(home.path(), &[]);
    begin(&mut bridge).await;
    let task = outcome(&bridge.ask(restart("write", "phone-0000001")).await).expect("a task");
    assert_eq!(task["status"], "dispatched");
    bridge.signal("TERM");
    assert!(bridge.end().await.1.success());
    let tasks = json_of(&folder(&home), "task list").await;
    assert_eq!(tasks["tasks"][0]["status"], "success", "{tasks}");
}

#[tokio::test]
async fn each_fleet_has_a_folder_that_commands_find_and_each_set_of_permissions_an_application() {
    let home = home();
    let mut reader = Bridge::over_stdio(home.path(), &["--permission", "device_read"]);
    let names: Vec<_> = begin(&mut reader).await.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["list_devices", "get_device", "get_task"]);
    write(&home.path().join("adb"), "#!/bin/sh\necho $@ > $HOME/asked\nexit 1\n", 0o700);
    let mut real = Bridge::over_stdio(home.path(), &["--adb"]);
    begin(&mut real).await;
    let asked = wait_for(async || fs::read_to_string(home.path().join("asked")).map_err(|error| error.to_string()));
    assert_eq!(asked.await.expect("adb was found"), "start-server\n");
    let listed = outcome(&real.ask(call(1, "list_devices", json!({}))).await).expect("a list");
    let advice = listed["next_step"].as_str().unwrap_or_default();
    assert!(listed["devices"] == json!([]) && advice.contains("run `adb start-server`"), "{listed}");
    let applications = json_of(&folder(&home), "app list").await;
    assert_eq!(applications[0]["name"], "stdio-device_read", "{applications}");
    let found = |words: &'static str| {
        let mut command = Command::new(binary());
        command.args(words.split(' ')).arg("--json").current_dir(home.path()).env_clear().env("HOME", home.path());
        async move {
            let output = command.output().await.expect("it runs");
            serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
        }
    };
    assert_eq!(found("app list").await[0]["name"], "stdio", "the folder of real phones comes first");
    let id = found("key list").await[0]["key_id"].as_str().expect("a key").to_owned();
    json_of(&home.path().join(".local/share/cloudphone-adb"), &format!("key revoke {id}")).await;
    for _ in 0..2 {
        let refused = real.ask(call(2, "list_devices", json!({}))).await;
        assert_eq!(refused["error"]["data"]["code"], "unauthenticated", "{refused}");
        assert!(real.end().await.1.success());
        // A new start does not create another key.
        real = Bridge::over_stdio(home.path(), &["--adb"]);
    }
}

/// Locks the folder, so that the bridge does not serve.
fn lock(folder: &Path) -> [File; 2] {
    fs::create_dir_all(folder).expect("a folder");
    let files = [File::create(folder.join("lock")), File::open(folder)].map(|file| file.expect("a file"));
    files.iter().for_each(|file| file.lock().expect("a lock"));
    files
}

#[tokio::test]
async fn at_the_next_server_it_repeats_what_cannot_change_anything_twice_and_of_the_rest_it_says_that_its_fate_is_unknown()
 {
    let home = home();
    let (_lock, socket) = (lock(&folder(&home)), folder(&home).join("stdio.sock"));
    let mut bridge = Bridge::over_stdio(home.path(), &[]);
    bridge.send(request("first", "ping", json!({}))).await;
    let mut fake = Fake::listen_at(&socket);
    let first = fake.next().await;
    assert_eq!(first.header("x-api-key"), Some("stdio"));
    first.answer(200, empty_result(&json!("first"))).await;
    bridge.next().await;
    for (line, is_repeated) in [
        (request("x", "ping", json!({})), true),
        (call("x", "list_devices", json!({})), true),
        (call("x", "set_power", json!({})), true),
        (call("x", "create_session", json!({})), false),
    ] {
        bridge.send(&line).await;
        // It stops, and did nothing.
        fake.next().await.answer(425, Value::Null).await;
        let received = fake.next().await;
        fake = Fake::listen_at(&socket);
        drop(received);
        if is_repeated {
            fake.next().await.answer(200, empty_result(&json!("x"))).await;
            assert_eq!(bridge.next().await, empty_result(&json!("x")), "{line}");
        } else {
            assert_eq!(bridge.next().await["error"]["data"]["code"], "no_answer", "{line}");
        }
    }
    assert!(bridge.end().await.1.success());
}
