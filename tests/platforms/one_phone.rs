//! A platform other than the simulator, provided by a crate that uses only the public interface of
//! the product.

use crate::harness::program::{Program, WATCHED, get};
use kit::Start;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

#[tokio::test]
async fn another_platform_is_served_operated_examined_and_watched() {
    // Cargo builds the example with the tests of its package.
    let example = PathBuf::from(env!("CARGO_BIN_EXE_cloudphone")).with_file_name("examples").join("one_phone");
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let start = Start::new(example, home.path()).flags(WATCHED);
    let mut program = Program::start_as(home, start).await;
    let operator = program.operator.clone();
    let operate = async |line: &str| operator.json(line.split(' ')).await.expect("JSON");

    operate("app create shop --permission device").await;
    operate("device assign shop the-phone").await;
    program.keys = vec![operator.key("shop").await.expect("a key")];
    let ask = async |tool, arguments| program.call(tool, arguments).await.expect("a result");
    assert_eq!(ask("list_devices", json!({})).await["devices"][0]["device_id"], "the-phone");
    let proxy = json!({"device_id": "the-phone", "scheme": "http", "host": "203.0.113.7", "port": 3128});
    let task = ask("set_proxy", proxy).await;
    let ended = program.task(&task["task_id"]).await;
    assert_eq!(
        (&ended["status"], &ended["evidence"]["observed"]),
        (&json!("success"), &json!("before: 198.51.100.1; after: 203.0.113.7"))
    );

    assert_eq!(operate("task list").await["tasks"][0]["status"], "success");
    operate("doctor").await;
    let (_, _, metrics) = get(&format!("{}/metrics", program.monitor())).await;
    assert!(metrics.contains(r#"cloudphone_tasks_ended_total{status="success"} 1"#), "{metrics}");
}
