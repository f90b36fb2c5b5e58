//! A wrong clock of the machine, or a clock that is set: the rights that end, and those that stay
//! ended.

use crate::harness::program::{Program, json_of, operate};
use crate::harness::{Key, Tenant, mute_phones, outcome};
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;
use toolwarrant::contract::PermissionSet;
use toolwarrant_core::registry::NewKey;

const DAY: i64 = 24 * 60 * 60 * 1000;

#[tokio::test]
async fn a_step_of_the_clock_ends_what_it_ends_and_brings_nothing_back_and_moves_no_deadline() {
    let mut seen = String::new();
    for (name, step) in
        [("a day ahead", DAY), ("400 days ahead", 400 * DAY), ("a day back", -DAY), ("400 days back", -400 * DAY)]
    {
        let (server, keys) = mute_phones(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
        let id = server.registry.find("app-0").await.expect("the application").id;
        let expiring = server.clock.now().plus(Duration::from_hours(1));
        let NewKey { key_id, secret } = server.registry.issue_key(&id, Some(expiring)).await.expect("a key");
        let short = Key { id: key_id, secret: secret.expose().clone() };
        let lasting = &keys[0][0];
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let task = server.call(lasting, "set_power", json!({"device_id": "phone-0000001", "action": "boot"})).await;
        let asked = json!({"task_id": task.expect("accepted")["task_id"], "wait_seconds": 0});
        let ask = async |moment: &str, seen: &mut String| {
            let short = server.send(&short, ping.clone()).await.0;
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_task", "arguments": asked}});
            let task = outcome(&server.send(lasting, body.to_string()).await.1).expect("a task");
            let _ = writeln!(seen, "{moment:>26}: a key for an hour {short}, the task {}", task["status"]);
        };
        let _ = writeln!(seen, "{name}");
        ask("before", &mut seen).await;
        server.clock.shift_wall(step);
        ask("after the step", &mut seen).await;
        server.clock.shift_wall(-step);
        ask("put right", &mut seen).await;
        server.clock.advance(Duration::from_hours(1));
        server.clock.shift_wall(step);
        let short = server.send(&short, ping.clone()).await.0;
        let _ = writeln!(seen, "{:>26}: a key for an hour {short}", "an hour on, the step again");
    }
    insta::assert_snapshot!(seen);
}

#[tokio::test]
async fn a_start_does_not_go_back_behind_the_time_of_the_last_run_until_the_operator_says_so() {
    let mut program = Program::start(&[]).await;
    let key = json_of(&program.data, "key create demo --expires 1").await;
    let Key { id, secret } = Key::read(&key).expect("a key");
    assert_eq!(program.status(&id, &secret).await, 200);
    let (refused, why) = operate(&program.data, "clock accept").await;
    assert!(refused == 1 && why.contains("stop the server first"), "{why}");
    program.stop().await;
    // The last run recorded a time two days ahead.
    let database = rusqlite::Connection::open(program.data.join("cloudphone.db")).expect("a database");
    let moved = database.execute("UPDATE clock SET seen = seen + 2 * 24 * 60 * 60 * 1000", []);
    assert_eq!(moved, Ok(1), "a stop has recorded the time");
    drop(database);
    let mut program = program.again(&[]).await;
    assert_eq!(program.status(&id, &secret).await, 401, "it ended in the last run");
    program.stop().await;
    let (done, told) = operate(&program.data, "clock accept").await;
    assert!(done == 0 && told.contains("continues from the machine's clock"), "{told}");
    let mut program = program.again(&[]).await;
    assert_eq!(program.status(&id, &secret).await, 200);
    program.stop().await;
}
