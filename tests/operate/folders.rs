//! Data folders of earlier versions, whose content stays in use, and folders that change under a
//! running program.

mod swapped;
mod unread;

use crate::harness::Key;
use crate::harness::program::{Program, json_of, operate};
use rusqlite::Connection;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Copies a folder of the version that stored grants without a resource; it was killed while a
/// write was in flight.
fn layout_4() -> Arc<TempDir> {
    let home = TempDir::new().expect("a temporary folder");
    let (data, kept) =
        (home.path().join("data"), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/operate/folders/layout_4"));
    fs::create_dir(&data).expect("a folder");
    for name in ["master.key", "simulated.jsonl"] {
        fs::copy(kept.join(name), data.join(name)).expect("copied");
    }
    let sql = fs::read_to_string(kept.join("cloudphone.sql")).expect("SQL");
    Connection::open(data.join("cloudphone.db")).and_then(|db| db.execute_batch(&sql)).expect("a database");
    let only_owner = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    only_owner(&data, 0o700);
    for name in ["master.key", "simulated.jsonl", "cloudphone.db"] {
        only_owner(&data.join(name), 0o600);
    }
    Arc::new(home)
}

#[tokio::test]
async fn a_folder_of_the_program_before_opens_its_keys_verify_and_its_tasks_go_on() {
    let mut program = Program::start_at(layout_4(), &[]).await;
    assert!(program.keys.is_empty(), "no demo key is made in a folder that has applications");
    let secret = "cps_5ed0ecd90ee90c14c2b21062e159cdc5413d5883c4eae79d55addfa3073af3c8".to_owned();
    program.keys.push(Key { id: "cpk_ea4141e15bb5a4a6".to_owned(), secret });

    let ended = json!({"task_id": "task_01a20049f24de27e488d8c1ffc7e7461"});
    assert_eq!(program.call("get_task", ended).await.expect("a task")["status"], "success");
    let in_flight = json!({"task_id": "task_01a2004a40905ee36fe87c43c4fe53fa", "wait_seconds": 50});
    let task = program.call("get_task", in_flight).await.expect("a task");
    assert_eq!((&task["terminal"], &task["device_id"]), (&json!(true), &json!("phone-0000013")), "{task}");

    let shop = json_of(&program.data, "app show shop").await;
    assert_eq!(shop["devices"], json!(["phone-0000001", "phone-0000002"]));
    let demo = json_of(&program.data, "app show demo").await;
    assert_eq!(demo["devices"], "all");
    let (code, said) = operate(&program.data, "doctor").await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(program.data.join("service")).expect("whose it is"), "cloudphone\n");
}
