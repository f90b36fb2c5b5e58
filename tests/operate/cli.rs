//! The commands of an operator, and their output with and without a running server.

use crate::harness::Key;
use crate::harness::program::{Program, binary, json_of, key_of, operate, says};
use cloudphone::phones::contract::CATALOGUE;
use serde_json::{Value, json};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::process::Command;

const SCENARIO: &str = "
    From nothing to a key
    operator> app create shop --permission device
    operator> key create shop --expires 30
    operator> device assign shop phone-0000001 phone-0000002
    operator> app show shop
    operator> app grant shop stream
    operator> app revoke shop device
    operator> device unassign shop phone-0000002
    operator> app list
    operator> key list shop
    operator> device list --limit 3
    operator> task list
    operator> task count --since 2h --every 1h
    operator> refunds
    operator> refunds --sums
    operator> app create late --permission stream --assign phone-0000003 --key
    operator> doctor
    Mistakes
    operator> app show nobody
    operator> app create shop --permission device
    operator> app create xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx --permission device
    operator> app create other --permission fly
    operator> app create other
    operator> app create other --permission stream --assign phone-9999999 --key
    operator> app show other
    operator> task count --since 2h --every 1s
    operator> app revoke shop device
    operator> app rate shop 0
    operator> key create nobody
    operator> key rotate cpk_0
    operator> key revoke cpk_0
    operator> device assign shop NOT/AN/ID
    operator> device assign shop phone-9999999
    operator> device assign shop
    operator> device unassign shop phone-0000003
    operator> device unassign demo phone-0000001
    operator> task show nonsense
    operator> task show task_00000000000000000000000000000000
    operator> tools nothing
    operator> apps
";

#[tokio::test]
async fn commands_answer_the_same_with_a_server_and_without_one() {
    let user = Command::new("id").arg("-un").output().await.expect("a name").stdout;
    let user = String::from_utf8(user).expect("text");
    let [user, id] = [user.trim().to_owned(), rustix::process::getuid().as_raw().to_string()];
    let all: Vec<_> = CATALOGUE.tools.iter().map(|tool| tool.name).collect();
    let mut seen = Vec::new();
    for running in [true, false] {
        let mut program = Program::start(&[]).await;
        if !running {
            program.stop().await;
        }
        let said = kit::play(&mut program, SCENARIO).await.expect("a scenario");
        let said = said.replace(&all.join(", "), "TOOLS");
        let said = said.replace("owner's socket", "CHANNEL").replace("no server", "CHANNEL");
        let said = said.replace(&format!("TIME {user} "), "TIME USER ");
        let said = said.replace(&format!("CHANNEL {id} "), "CHANNEL ID ");
        seen.push(said);
    }
    assert_eq!(seen[0], seen[1]);
    insta::assert_snapshot!(seen[0]);
}

fn column<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    list.as_array().expect("a list").iter().map(|item| item[member].as_str().expect("text")).collect()
}

#[tokio::test]
async fn an_application_has_300_requests_a_minute_unless_said_otherwise() {
    let program = Program::start_and_stop().await;
    let usual = json_of(&program.data, "app create usual --permission stream").await;
    let frugal = json_of(&program.data, "app create frugal --permission stream --requests-per-minute 5").await;
    assert_eq!([&usual, &frugal].map(|app| app["requests_per_minute"].clone()), [json!(300), json!(5)]);
}

#[tokio::test]
async fn a_key_is_issued_for_one_application_and_neither_of_its_halves_has_a_colon() {
    let program = Program::start_and_stop().await;
    for app in ["one", "two"] {
        operate(&program.data, &format!("app create {app} --permission device_read")).await;
        let Key { id, secret } = key_of(&program.data, app).await;
        assert!(!id.is_empty() && !secret.is_empty() && !id.contains(':') && !secret.contains(':'), "{id}:{secret}");
        let listed = json_of(&program.data, &format!("key list {app}")).await;
        assert_eq!((column(&listed, "key_id"), column(&listed, "application")), (vec![&*id], vec![app]));
    }
}

#[tokio::test]
async fn a_read_only_key_is_distinguished_in_the_audit_and_revoked_on_its_own() {
    let mut program = Program::start(&[]).await;
    let data = program.data.clone();
    operate(&data, "app create bridge --permission device_read").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        program.keys[0] = key_of(&data, "bridge").await;
        ids.push(program.keys[0].clone());
        program.call("list_devices", json!({})).await.expect("a page");
        let write = program.call("set_power", json!({"device_id": "phone-0000001", "action": "boot"})).await;
        assert_eq!(write.expect_err("it only reads")["code"], "forbidden");
    }
    let [gone, kept] = &ids[..] else { panic!("two keys") };
    operate(&data, &format!("key revoke {}", gone.id)).await;
    assert_eq!([program.status(gone).await, program.status(kept).await], [401, 200]);
    program.stop().await;
    let audit = json_of(&data, "audit tail").await;
    let calls = audit.as_array().expect("lines").iter().filter(|line| line.get("tool").is_some());
    let audit = calls.cloned().collect();
    assert_eq!(column(&audit, "key_id"), [&*gone.id, &gone.id, &kept.id, &kept.id]);
}

#[tokio::test]
async fn a_wrong_folder_is_named() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let nowhere = home.path().join("nowhere");
    says(&nowhere, "app list", 4, "there is no database in").await;
    assert!(!nowhere.exists());

    let deep = home.path().join("x".repeat(120));
    let said = says(&deep, "--listen 127.0.0.1:0", 1, "a socket allows at most 107").await;
    assert!(said.contains("shorter"), "{said}");

    let program = Program::start_at(home, &[]).await;
    let socket = program.data.join("admin.sock").metadata().expect("a socket").permissions().mode();
    assert_eq!(socket & 0o777, 0o600);
    says(&program.data, "--listen 127.0.0.1:0", 5, "another cloudphone uses").await;
}

#[tokio::test]
async fn a_reason_or_a_name_that_does_not_fit_is_refused_and_not_cut() {
    for flag in ["--reason", "--as"] {
        says(Path::new("data"), &format!("app list {flag} {}", "é".repeat(501)), 2, "expected at most 500 characters")
            .await;
        assert_eq!(operate(Path::new("/nowhere"), &format!("app list {flag} {}", "é".repeat(500))).await.0, 4);
    }
}

#[tokio::test]
async fn every_command_says_how_it_is_used() {
    let mut out = String::new();
    for line in [
        "app",
        "app create",
        "key",
        "key create",
        "device",
        "device assign",
        "task",
        "refunds",
        "tools",
        "audit tail",
        "audit verify",
        "doctor",
    ] {
        let (_, help) = operate(Path::new("data"), &format!("{line} --help")).await;
        // The help of the print shop shows the flags that every command has.
        let (own, common) = help.split_once("      --data <DIR>").expect("common flags");
        assert!(common.matches("\n      --").count() == 4 && common.contains("-h, --help"), "{common}");
        writeln!(out, "$ cloudphone {line} --help\n{own}").expect("text");
    }
    insta::assert_snapshot!(out);
    let (_, stdio) = operate(Path::new("data"), "stdio --help").await;
    assert!(!stdio.contains("[default: data]") && stdio.contains("in the home folder"), "{stdio}");
}

#[tokio::test]
async fn tools_names_the_toolset_of_a_tool_that_has_one() {
    let tools = json_of(Path::new("data"), "tools").await;
    let toolset = |name| tools.as_array()?.iter().find(|tool| tool["tool"] == name).map(|tool| tool["toolset"].clone());
    assert_eq!(["look", "get_device"].map(toolset), [Some(json!("screen")), Some(Value::Null)]);
}

#[tokio::test]
async fn no_command_begins_a_folder_that_nobody_named() {
    let home = TempDir::new().expect("a temporary folder");
    let run = async |line: &str| {
        let mut command = Command::new(binary());
        command.args(line.split(' ')).current_dir(home.path()).env("CLOUDPHONE_REPLICA", "").kill_on_drop(true);
        let output = command.output().await.expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for line in [
        "ready",
        "app create shop --permission device",
        "key create shop",
        "platform check phone",
        "doctor",
        "restore backup.tar",
        "app list --store postgres://nobody@127.0.0.1:1/none",
        "store init --store postgres://nobody@127.0.0.1:1/none",
    ] {
        let (code, said) = run(line).await;
        assert!(code != Some(0) && !home.path().join("data").exists(), "{line}: {said}");
        assert!(!said.contains("`cloudphone app create`"), "that would be refused, too: {said}");
    }
    let (code, said) = run("app create shop --permission device --data data").await;
    assert!(code == Some(0) && home.path().join("data/cloudphone.db").exists(), "{said}");
    let (code, said) = run("key create shop").await;
    assert_eq!(code, Some(0), "{said}");
}
