//! Tasks in flight whose command the contract cannot read.

use crate::harness::program::{Program, WATCHED, get, json_of, says};
use crate::harness::writes::{open_database, power, proxy, reach_phases, restart};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use toolwarrant_base::hex;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_tasks::task::TaskId;

const UNREAD: &str = "the command of this task cannot be read by this contract";

/// Renames `device_id`, as if the tasks came from a contract with another name for it.
fn rename_argument(data: &Path) {
    let master = fs::read_to_string(data.join("master.key")).expect("a key");
    let master = hex::decode(master.trim_end()).and_then(|key| key.try_into().ok()).expect("32 bytes");
    let keys = KeyRing::new("cloudphone 1", &master, Random::System);
    let database = open_database(data);
    let mut select = database.prepare("SELECT id, sealed FROM task WHERE terminal = 0").expect("the table");
    let rows = select.query_map([], |row| Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, Vec<u8>>(1)?))).expect("rows");
    for (id, sealed) in rows.map(|row| row.expect("a row")).collect::<Vec<_>>() {
        let purpose = TaskId::from_bytes(id).to_string();
        let arguments = keys.open(&purpose, &sealed).expect("sealed arguments");
        let renamed = arguments.expose().replace("\"device_id\"", "\"phone_id\"");
        assert_ne!(&renamed, arguments.expose());
        let sealed = keys.seal(&purpose, &renamed).expect("random bytes");
        database.execute("UPDATE task SET sealed = ?2 WHERE id = ?1", (id, sealed)).expect("written");
    }
}

async fn timeline(data: &Path, task: &str) -> Vec<String> {
    let shown = json_of(data, &format!("task show {task}")).await;
    let events = shown["timeline"].as_array().expect("a timeline");
    events.iter().map(|event| event["what"].as_str().expect("text").to_owned()).collect()
}

async fn start_with_writes() -> (Program, Vec<(String, &'static str)>) {
    let program = Program::start(WATCHED).await;
    let mut tasks = Vec::new();
    let mut begin = async |program: &Program, (tool, arguments): (&str, Value), ends: &'static str| {
        let accepted = program.call(tool, arguments).await.expect("accepted");
        tasks.push((accepted["task_id"].as_str().expect("an id").to_owned(), ends));
    };
    // A boot id shows a restart without the arguments; a missing restart is refunded.
    begin(&program, restart(13), "failed_silent").await;
    begin(&program, restart(22), "success").await;
    begin(&program, restart(1), "success").await;
    // Only the arguments say which state a shutdown leads to.
    begin(&program, ("set_power", power(7, "shutdown")), "success_unverified").await;
    begin(&program, ("set_proxy", proxy(9, "k")), "success_unverified").await;
    // No request has reached this phone, and none will.
    begin(&program, ("set_proxy", proxy(23, "l")), "failed").await;
    (program, tasks)
}

#[tokio::test]
async fn tasks_whose_command_cannot_be_read_are_named_and_verified_as_far_as_their_probe_allows() {
    let (mut program, tasks) = loop {
        let (program, tasks) = start_with_writes().await;
        let phases = [(13, "polling"), (22, "sending"), (1, "polling"), (7, "polling"), (9, "polling"), (23, "ready")];
        if reach_phases(&program.data, &phases).await {
            break (program, tasks);
        }
    };
    program.kill().await;
    rename_argument(&program.data);

    let said = says(&program.data, "doctor", 1, "commands").await;
    for (task, _) in &tasks {
        assert!(said.contains(&format!("{task}: `device_id` is required")), "{task}: {said}");
    }
    let keys = program.keys.clone();
    let mut program = program.again(WATCHED).await;
    program.keys = keys;
    let (status, _, ready) = get(&format!("{}/readyz", program.monitor())).await;
    let log = program.log();
    assert!(status == 200 && ready.contains("tasks in flight whose command this contract cannot read: "), "{ready}");
    assert!(log.contains("tasks in flight whose command this contract cannot read: 6 (task_"), "{log}");
    assert!(tasks.iter().all(|(task, _)| log.contains(task)), "{log}");

    for (id, ends) in &tasks {
        let task = program.task(&json!(id)).await;
        let said = timeline(&program.data, id).await;
        assert_eq!(task["status"], *ends, "{task} {said:#?}");
        assert_eq!(task["refund"].is_null(), *ends != "failed_silent", "{task}");
        let reason = format!("{UNREAD}: `device_id` is required");
        assert!(said.last().is_some_and(|last| last.contains(&reason)), "{said:#?}");
        assert!(!said.concat().contains("the phone could not be read"), "{said:#?}");
        let evidence = task["evidence"]["observed"].as_str().expect("evidence");
        assert!(["success", "failed_silent"].contains(ends) || evidence.contains(UNREAD), "{evidence}");
    }
    let (_, _, ready) = get(&format!("{}/readyz", program.monitor())).await;
    assert_eq!(ready, "the program serves\n");
    assert_eq!(json_of(&program.data, "doctor").await["healthy"], true);
    let journal = fs::read_to_string(program.data.join("simulated.jsonl")).expect("the journal");
    assert!(tasks.iter().all(|(task, _)| journal.matches(task).count() <= 1), "{journal}");
    assert!(!program.log().contains("hunter2"), "a secret is in the log");
}
