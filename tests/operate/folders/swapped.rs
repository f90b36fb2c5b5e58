//! Files that are removed or replaced under a running server. A write that would be gone after a
//! restart is never acknowledged.

use crate::harness::program::{Program, WATCHED, get, operate, says, start, steady};
use crate::harness::writes::{power, wait_for_phases};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

async fn write(program: &Program, phone: u32) -> Value {
    match program.call("set_power", power(phone, "restart")).await {
        Ok(task) => task["status"].clone(),
        Err(failure) => json!([failure["code"], failure["retryable"]]),
    }
}

async fn observe(program: &Program, phone: u32, task: &Value) -> String {
    let mut out = String::new();
    writeln!(out, "write: {}", write(program, phone).await).expect("text");
    let read = program.call("get_task", json!({"task_id": task["task_id"], "wait_seconds": 0})).await;
    writeln!(out, "task read: {}", read.expect("a task")["status"]).expect("text");
    writeln!(out, "readyz: {}", get(&format!("{}/readyz", program.monitor())).await.2.trim_end()).expect("text");
    let (code, said) = operate(&program.data, "app create late --permission device").await;
    writeln!(out, "app create: exit {code}\n{}", steady(&said, &program.data)).expect("text");
    let (code, said) = operate(&program.data, "doctor").await;
    let faults = if code == 0 { "" } else { said.split("faults\n").nth(1).unwrap_or(&said) };
    // The section `kept` has times that differ from run to run.
    let faults = faults.split("\nkept\n").next().unwrap_or_default();
    writeln!(out, "doctor: exit {code}\n{faults}").expect("text");
    out
}

type SwapFault = (&'static str, fn(&Path), fn(&Path));

const FAULTS: [SwapFault; 3] = [
    ("lock removed", |data| fs::remove_file(data.join("lock")).expect("removed"), |_| {}),
    (
        "database removed",
        |data| fs::rename(data.join("cloudphone.db"), data.with_file_name("aside")).expect("moved"),
        |data| fs::rename(data.with_file_name("aside"), data.join("cloudphone.db")).expect("moved back"),
    ),
    (
        "folder moved",
        |data| fs::rename(data, data.with_file_name("elsewhere")).expect("moved"),
        |data| {
            // `app create` may have created a folder in its place.
            let _ = fs::remove_dir_all(data);
            fs::rename(data.with_file_name("elsewhere"), data).expect("moved back");
        },
    ),
];

async fn swap((name, fault, undo): SwapFault) -> String {
    let mut program = Program::start(WATCHED).await;
    let task = program.call("set_power", power(18, "restart")).await.expect("accepted");
    wait_for_phases(&program.data, &[(18, "polling")]).await;
    let data = program.data.clone();
    fault(&data);
    let text = observe(&program, 1, &task).await.replace(&data.display().to_string(), "DATA");
    if name == "database removed" {
        let file = data.with_file_name("saved.tar");
        says(&data, &format!("backup {}", file.display()), 0, "").await;
    } else if name == "lock removed" {
        says(&data, "--listen 127.0.0.1:0", 5, "another cloudphone uses").await;
        assert!(data.join("admin.sock").exists(), "the socket is the first one's");
    }
    undo(&data);
    program.until_ready(200).await;
    assert_eq!(write(&program, 5).await, "dispatched", "{name}");
    // The write that was in flight goes on, and a refused write was never sent.
    let told = program.task(&task["task_id"]).await;
    assert_eq!(told["status"], "success", "{name}: {told}");
    program.kill().await;
    let sent = fs::read_to_string(data.join("simulated.jsonl")).expect("the journal");
    let first = sent.lines().filter(|line| line.contains("phone-0000001")).count();
    assert_eq!(first, usize::from(name == "lock removed"), "{name}: {sent}");
    says(&data, "doctor", 0, "").await;
    format!("# {name}\n\n{text}\n")
}

#[tokio::test]
async fn nothing_is_acknowledged_or_sent_that_would_be_gone_after_a_restart() {
    let [lock, database, folder] = FAULTS.map(swap);
    let (lock, database, folder) = tokio::join!(lock, database, folder);
    insta::assert_snapshot!([lock, database, folder].concat());
}

#[tokio::test]
async fn a_folder_that_is_made_in_place_of_a_moved_one_is_another_servers() {
    let mut first = Program::start(WATCHED).await;
    let data = first.data.clone();
    fs::rename(&data, data.with_file_name("elsewhere")).expect("moved");
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    std::os::unix::fs::symlink(data.parent().expect("a folder").join("data"), home.path().join("data"))
        .expect("a link");
    fs::create_dir(&data).expect("a folder");
    let second = Program::start_at(home, &[]).await;
    assert_eq!(second.keys.len(), 2, "it is another folder");
    assert_eq!(write(&first, 1).await, json!(["overloaded", true]));
    assert_eq!(write(&second, 1).await, "dispatched");
    first.stop().await;
    says(&data, "app list", 0, "").await;
    assert!(data.join("admin.sock").exists());
    says(&data, "audit verify", 0, "").await;
    assert_eq!(write(&second, 13).await, "dispatched");
}

#[tokio::test]
async fn a_server_goes_on_in_a_folder_that_can_no_longer_be_written_to() {
    // Permission bits do not stop root, so the program runs as another user if the tests run as
    // root.
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let is_root = rustix::process::getuid().is_root();
    let through: &[&str] =
        if is_root { &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] } else { &[] };
    let data = home.path().join("data");
    fs::create_dir(&data).expect("a folder");
    if is_root {
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("a mode");
        chown(&data, Some(65534), Some(65534)).expect("another owner");
    }
    fs::set_permissions(&data, Permissions::from_mode(0o700)).expect("a mode");
    let mut program = Program::start_as(home.clone(), start(&home).through(through).flags(WATCHED)).await;
    fs::set_permissions(&data, Permissions::from_mode(0o500)).expect("a mode");
    assert_eq!(write(&program, 1).await, "dispatched", "what is open can be written to");
    program.until_ready(200).await;
    program.kill().await;
    let mut again = start(&home).through(through).command().expect("a log");
    assert!(!again.status().await.expect("it runs").success());
    let why = "cloudphone.watermark: Permission denied (os error 13); choose another folder with --data";
    assert!(program.log().contains(why), "{}", program.log());
    // Only then the temporary folder can go.
    fs::set_permissions(&data, Permissions::from_mode(0o700)).expect("a mode");
}

#[tokio::test]
async fn a_copy_by_hard_links_is_refused_and_the_server_of_the_folder_goes_on() {
    let program = Program::start(WATCHED).await;
    let copy = tempfile::tempdir().expect("a folder");
    for file in fs::read_dir(&program.data).expect("a folder").flatten() {
        if file.metadata().expect("a file").is_file() && file.file_name() != "lock" {
            fs::hard_link(file.path(), copy.path().join(file.file_name())).expect("one file system");
        }
    }
    says(copy.path(), "key list", 1, "a hard link to another file").await;
    program.call("set_power", json!({"device_id": "phone-0000001", "action": "boot"})).await.expect("accepted");
}

#[tokio::test]
async fn a_folder_that_is_moved_away_and_back_is_as_it_was() {
    let mut program = Program::start(WATCHED).await;
    let (data, away) = (program.data.clone(), program.data.with_extension("away"));
    program.call("list_devices", json!({})).await.expect("a page");
    fs::rename(&data, &away).expect("moved");
    program.call("list_devices", json!({})).await.expect("a page");
    program.until_logged("the audit trail cannot be written").await;
    program.until_ready(503).await;
    assert!(!data.exists(), "nothing is made in its place");
    fs::rename(&away, &data).expect("moved back");
    program.until_ready(200).await;
    program.stop().await;
    says(&data, "audit verify", 0, "sealed lines             6").await;
}
