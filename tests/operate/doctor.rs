//! The doctor's report on each fault: a healthy folder with one thing broken in it.

use super::audit::{newest, rewrite};
use crate::harness::program::{Program, json_of, operate, says};
use crate::harness::writes::open_database;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// Leaves a write that has ended as `failed_silent` and another that is in flight.
async fn make_used_folder() -> Arc<TempDir> {
    let mut program = Program::start(&[]).await;
    let write = json!({"device_id": "phone-0000013", "action": "restart"});
    let task = program.call("set_power", write).await.expect("accepted");
    let told = program.task(&task["task_id"]).await;
    assert_eq!(told["status"], "failed_silent", "{told}");
    program.call("set_power", json!({"device_id": "phone-0000005", "action": "restart"})).await.expect("accepted");
    let healthy = json_of(&program.data, "doctor").await;
    assert_eq!((&healthy["healthy"], &healthy["faults"]), (&json!(true), &json!([])));
    program.stop().await;
    program.home.clone()
}

fn sql(data: &Path, sql: &str) {
    let db = open_database(data);
    db.execute_batch(&format!("PRAGMA ignore_check_constraints = ON; {sql}")).expect("SQL");
}

/// Changes the schema meanwhile, which does not allow a text.
fn set_clock_to_text(data: &Path) {
    let schema =
        |to: &str| format!("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = {to} WHERE name = 'clock';");
    sql(data, &schema("replace(sql, 'STRICT', '')"));
    sql(data, &format!("INSERT OR REPLACE INTO clock VALUES (1, 'noon'); {}", schema("sql || 'STRICT'")));
}

fn damage(data: &Path) {
    let mut file = OpenOptions::new().write(true).open(data.join("cloudphone.db")).expect("a database");
    let middle = file.metadata().expect("a file").len() / 4096 / 2 * 4096;
    file.seek(SeekFrom::Start(middle)).expect("a place");
    file.write_all(&[0x5a; 4096]).expect("written");
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

fn move_away(data: &Path, name: &str) -> PathBuf {
    let elsewhere = data.with_file_name(name);
    fs::rename(data.join(name), &elsewhere).expect("moved");
    symlink(&elsewhere, data.join(name)).expect("a link");
    elsewhere
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(path).status().expect("mkfifo").success());
}

/// A statement, the check that reports what it breaks, and a part of the report.
const BROKEN: &[(&str, &str, &str)] = &[
    ("DELETE FROM ledger WHERE kind = 'refund'", "refunds", "failed_silent and has no refund"),
    (
        "UPDATE task SET state = json_set(state, '$.left', json('false')) WHERE terminal = 1",
        "charges",
        "has no reversal, and one is due",
    ),
    (
        "UPDATE ledger SET application = 'app_0' WHERE kind = 'charge'",
        "records",
        "has a charge on the account of app_0, and is of app_",
    ),
    ("UPDATE task SET state = x'ff' || ''", "records", "has a state that cannot be read: expected value"),
    ("UPDATE task SET state = '{}'", "records", "has a state that cannot be read: missing field"),
    ("UPDATE task SET status = 'success' WHERE terminal = 1", "records", "has a status that contradicts its state"),
    ("UPDATE task SET wake_at = 1", "records", "has a wake_at that contradicts its state"),
    ("UPDATE task SET finished_at = NULL", "records", "has a finished_at that contradicts its state"),
    (
        "UPDATE task SET state = json_set(state, '$.finished_at', NULL), finished_at = NULL WHERE terminal = 1",
        "records",
        "has a finished_at that contradicts its state",
    ),
    ("UPDATE task_event SET phase = 'ready'", "records", "has a latest event that contradicts its state"),
    ("DELETE FROM task_event", "records", "its timeline does not have each step to that once"),
    ("DELETE FROM task_event WHERE version = 1", "records", "does not have each step to that once"),
    ("UPDATE task_event SET version = 99 WHERE version = 1", "records", "does not have each step to that once"),
    (
        "UPDATE task SET state = json_set(state, '$.deadline_at', '2026-01-01T00:00:00Z')",
        "deadlines",
        "is in flight, and should have ended at 2026-01-01T00:00:00.000Z",
    ),
    (
        "UPDATE task SET terminal = 0, status = NULL, target = 'phone-0000005'",
        "target locks",
        "is in flight on phone-0000005, and so is another task",
    ),
    ("UPDATE task SET sealed = x'00' WHERE terminal = 1", "secrets", "were not wiped"),
    ("UPDATE task SET sealed = NULL", "secrets", "its arguments are gone"),
    (
        "PRAGMA foreign_keys = OFF; DELETE FROM task WHERE terminal = 1",
        "integrity",
        "rows of task_event refer to a missing row of task",
    ),
    ("DROP INDEX ux_task_inflight", "layout", "index ux_task_inflight is missing"),
    ("ALTER TABLE act ADD COLUMN mine ANY", "layout", "table act is missing or different"),
    (
        "UPDATE task SET sealed = zeroblob(64) WHERE terminal = 0",
        "commands",
        "the seal does not fit: it was made with another master key, or damaged",
    ),
    (
        "UPDATE application SET permissions = '[\"device\",\"fly\"]' WHERE name = 'demo'",
        "content",
        "has the permission `fly`, which does not exist",
    ),
    (
        "UPDATE application SET requests_per_minute = -1",
        "content",
        "the column requests_per_minute is wrong: -1 is out of range",
    ),
];

/// The same for what no statement breaks.
type Fault = (fn(&Path), &'static str, &'static str);

const FAULTS: &[Fault] = &[
    (damage, "integrity", ""),
    (
        |data| fs::write(data.join("cloudphone.db"), "no database".repeat(99)).expect("written"),
        "database",
        "file is not a database",
    ),
    (
        set_clock_to_text,
        "content",
        "the table clock cannot be read: in the row 1, the column seen is wrong: its type is Text",
    ),
    (
        |data| fs::write(data.join("master.key"), "ab".repeat(32)).expect("written"),
        "master key",
        "it does not open the secrets of cpk_",
    ),
    (|data| fs::remove_file(data.join("master.key")).expect("removed"), "master key", "No such file"),
    (|data| mode(data, 0o755), "files", "has mode 755"),
    (
        |data| mode(&data.join("master.key"), 0o640),
        "files",
        "master.key: other users can access it: its mode is 0640; run `chmod 600 ",
    ),
    (|data| drop(move_away(data, "cloudphone.db")), "files", "cloudphone.db is a link, whose target may be elsewhere"),
    (
        |data| mode(&move_away(data, "master.key"), 0o604),
        "files",
        "master.key: other users can access it: its mode is 0604; run `chmod 600 ",
    ),
    (
        |data| pipe(&data.join("audit/audit-9999-01-01.jsonl")),
        "files",
        "audit-9999-01-01.jsonl is neither a file nor a folder",
    ),
    (|data| pipe(&data.join("audit/.writable")), "audit trail", "`.writable` in it is not a file; remove it"),
    (|data| pipe(&data.join("master.key")), "master key", "master.key is not a master key"),
    (
        |data| rewrite(&data.join("simulated.jsonl"), |journal| journal + "{\n"),
        "simulated phones",
        "simulated.jsonl` is damaged in line 4: EOF while parsing an object",
    ),
    (
        |data| pipe(&data.join("simulated.jsonl")),
        "simulated phones",
        "simulated.jsonl` is not a journal of simulated phones",
    ),
    (|data| pipe(&data.join("simulated.jsonl")), "files", "simulated.jsonl is neither a file nor a folder"),
    (
        |data| {
            rewrite(&newest(data), |_| "{\"time\":\"2026-\n".to_owned());
            fs::write(data.join("audit/zzz"), "an operator's own").expect("written");
        },
        "audit chain",
        "missing at the end",
    ),
    (|data| fs::remove_dir_all(data.join("audit")).expect("removed"), "audit chain", "are missing at the end"),
    (
        |data| rewrite(&newest(data), |trail| trail.replacen("set_power", "get_power", 1)),
        "audit chain",
        "changed since seal",
    ),
];

#[tokio::test]
async fn each_fault_is_found_and_comes_with_a_remedy() {
    let home = make_used_folder().await;
    let data = home.path().join("data");
    let healthy = json_of(&data, "doctor").await;
    assert_eq!(healthy["healthy"], true, "{healthy}");
    let of_rows = BROKEN.iter().map(|(statement, check, part)| {
        let break_it: Box<dyn Fn(&Path)> = Box::new(|data| sql(data, statement));
        (break_it, check, part)
    });
    let of_files = FAULTS.iter().map(|(break_it, check, part)| (Box::new(break_it) as _, check, part));
    for (break_it, check, expected) in of_rows.chain(of_files) {
        let scratch = TempDir::new().expect("a temporary folder");
        let copied = tokio::process::Command::new("cp").arg("-a").arg(&data).arg(scratch.path()).status().await;
        assert!(copied.expect("cp").success());
        let broken = scratch.path().join("data");
        break_it(&broken);
        let (code, said) = operate(&broken, "doctor --json").await;
        // Lines of the log follow.
        let mut answers = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
        let report = answers.next().expect("a report").expect("JSON");
        let of = |list: &str| -> Vec<Value> {
            report[list].as_array().into_iter().flatten().filter(|row| row["check"] == *check).cloned().collect()
        };
        let found = |row: &Value| row["found"].as_str().expect("text").contains(expected);
        assert_eq!((code, &report["healthy"]), (1, &json!(false)), "{check}: {said}");
        assert!(of("faults").iter().any(found), "{check}: {expected}: {said}");
        assert_eq!((of("remedies").len(), &of("checks")[0]["state"]), (1, &json!("fault")), "{said}");
    }
}

#[tokio::test]
async fn what_another_program_has_put_into_the_database_is_a_note_with_the_statement_that_removes_it() {
    let program = Program::start_and_stop().await;
    let data = program.data.clone();
    let made = [
        ("index", "CREATE INDEX \"by \"\"day\" ON act (at)"),
        ("view", "CREATE VIEW late AS SELECT * FROM task"),
        ("trigger", "CREATE TRIGGER noted AFTER INSERT ON act BEGIN SELECT 1; END"),
        ("table", "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)"),
        ("table", "CREATE TABLE mine (a)"),
    ];
    for (kind, statement) in made {
        sql(&data, statement);
        let found = json_of(&data, "doctor").await;
        assert_eq!((&found["healthy"], &found["faults"]), (&json!(true), &json!([])), "{statement}: {found}");
        let note = found["warnings"][0]["found"].as_str().expect("a note");
        assert!(note.starts_with(kind) && found["remedies"][0]["check"] == "foreign objects", "{found}");
        let remedy = note.split('`').nth(1).expect("a statement");
        sql(&data, remedy);
        assert_eq!(json_of(&data, "doctor").await["warnings"], Value::Null, "{remedy}");
    }
}

#[tokio::test]
async fn a_start_that_a_wrong_value_prevents_names_table_row_and_column_and_a_wrong_permission_is_in_the_log() {
    let program = Program::start_and_stop().await;
    let data = program.data.clone();
    let app = json_of(&data, "app show demo").await["id"].as_str().expect("an id").to_owned();
    sql(&data, "UPDATE application SET permissions = '[\"device\",\"fly\"]' WHERE name = 'demo'");
    let mut program = program.again(&[]).await;
    program.stop().await;
    let expected = format!("{app} has the permission `fly`, which does not exist; `app revoke` removes it");
    assert!(program.log().contains(&expected), "{}", program.log());
    says(&data, "app revoke demo fly", 0, "").await;
    sql(&data, "UPDATE application SET requests_per_minute = -1 WHERE name = 'demo'");
    let why =
        format!("the table application cannot be read: in the row {app}, the column requests_per_minute is wrong");
    says(&data, "--listen 127.0.0.1:0", 1, &why).await;
    sql(&data, "UPDATE application SET requests_per_minute = 300 WHERE name = 'demo'");
    set_clock_to_text(&data);
    let why = "the table clock cannot be read: in the row 1, the column seen is wrong";
    says(&data, "--listen 127.0.0.1:0", 1, why).await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_examined_is_left_alone() {
    let folder = TempDir::new().expect("a temporary folder");
    says(folder.path(), "doctor", 4, "there is no database in").await;
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    fs::write(folder.path().join("cloudphone.db"), "").expect("a file");
    says(folder.path(), "doctor", 4, "there is no database in").await;
    fs::write(folder.path().join("cloudphone.db"), "x").expect("a file");
    fs::create_dir(folder.path().join("lock")).expect("what cannot be written to");
    let (code, said) = operate(folder.path(), "doctor").await;
    assert!(code == 1 && said.contains("cannot use") && said.contains("choose another folder with --data"), "{said}");
}
