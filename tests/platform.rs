//! A platform that is not the simulator, chosen by a crate that uses only what the product makes public.

use crate::harness::Key;
use crate::monitor::{get, monitor};
use crate::program::{Program, call};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::process::Command;

/// The example, which cargo builds with the tests of its package.
fn one_phone() -> Command {
    let example = PathBuf::from(env!("CARGO_BIN_EXE_cloudphone")).with_file_name("examples").join("one_phone");
    assert!(example.is_file(), "`cargo build --package cloudphone --example one_phone` makes {}", example.display());
    Command::new(example)
}

async fn operate(data: &Path, line: &str) -> Value {
    let output = one_phone().args(line.split(' ')).arg("--json").arg("--data").arg(data).output().await;
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[tokio::test]
async fn another_platform_is_served_operated_examined_and_watched() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let log = std::fs::File::create(home.path().join("log")).expect("a log");
    let mut program = Program::spawn_by(one_phone(), home, log, &["--admin-listen", "127.0.0.1:0"]);
    program.ready().await;
    let data = program.data.clone();

    operate(&data, "app create shop --permission device").await;
    operate(&data, "device assign shop the-phone").await;
    let key = operate(&data, "key create shop").await;
    let [id, secret] = ["key_id", "secret"].map(|half| key[half].as_str().expect("text").to_owned());
    let (client, key) = (reqwest::Client::new(), Key { id, secret });
    let ask = async |tool, arguments| {
        call(&client, &program.url, &key, tool, arguments).await.expect("an answer").expect("a result")
    };
    assert_eq!(ask("list_devices", json!({})).await["devices"][0]["device_id"], "the-phone");
    let proxy = json!({"device_id": "the-phone", "scheme": "http", "host": "203.0.113.7", "port": 3128});
    let task = ask("set_proxy", proxy).await;
    let ended = ask("get_task", json!({"task_id": task["task_id"], "wait_seconds": 50})).await;
    assert_eq!(
        (&ended["status"], &ended["evidence"]["observed"]),
        (&json!("success"), &json!("before: 198.51.100.1; after: 203.0.113.7"))
    );

    assert_eq!(operate(&data, "task list").await[0]["status"], "success");
    operate(&data, "doctor").await;
    let (_, _, metrics) = get(&format!("{}/metrics", monitor(&program))).await;
    assert!(metrics.contains(r#"cloudphone_tasks_ended_total{status="success"} 1"#), "{metrics}");
}
