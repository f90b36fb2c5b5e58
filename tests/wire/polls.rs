//! Polls: the answer is sent when the next poll is due or when the task ends, whichever is first;
//! and the permission to ask.

use crate::harness::{Key, Server, Tenant, mute_phones, outcome};
use crate::wire::authority::{body, send};
use cloudphone::phones::contract::CATALOGUE as PHONES;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_tasks::polls::HELD_MAX;

fn everything() -> Tenant {
    Tenant::with(PermissionSet(u64::MAX))
}

fn sees(device: &str) -> Tenant {
    Tenant { grants: Grants::nothing().with("device", Granted::some([device])), ..everything() }
}

/// Starts a write that stays in flight until its deadline in 60 s.
async fn write(server: &Server, key: &Key, device: &str) -> String {
    let accepted =
        server.call(key, "set_power", json!({"device_id": device, "action": "boot"})).await.expect("accepted");
    accepted["task_id"].as_str().expect("an id").to_owned()
}

struct ToolCall(JoinHandle<(u16, Value)>);

fn ask(server: &Server, key: &Key, arguments: Value) -> ToolCall {
    ToolCall(send(server, key, body("get_task", arguments)))
}

impl ToolCall {
    async fn is_held(&self, server: &Server, key: &Key) -> bool {
        for _ in 0..20 {
            server.list(key).await;
        }
        !self.0.is_finished()
    }

    async fn answer(self) -> Value {
        outcome(&self.0.await.expect("no panic").1).expect("a task")
    }
}

#[tokio::test]
async fn an_early_poll_is_held_4_seconds_at_most_and_told_when_the_next_is_due() {
    let (server, keys) = mute_phones(vec![Tenant { keys: 2, ..everything() }]).await;
    let [key, other] = [&keys[0][0], &keys[0][1]];
    let task = write(&server, key, "phone-0000001").await;
    let poll = || ask(&server, key, json!({"task_id": task}));
    let first = poll().answer().await;
    assert_eq!((&first["status"], &first["terminal"]), (&json!("dispatched"), &json!(false)));
    assert_eq!((&first["poll_after_seconds"], &first["evidence"]), (&json!(15), &Value::Null));

    assert!(PHONES.tool("set_power").is_some_and(|tool| tool.description.contains("poll at most every 15 s")));

    server.clock.advance(Duration::from_secs(5));
    let early = poll();
    assert!(early.is_held(&server, key).await);
    let elsewhere = ask(&server, other, json!({"task_id": task})).answer().await;
    assert_eq!(elsewhere["poll_after_seconds"], 15, "another key has its own time");
    server.clock.advance(Duration::from_millis(3_999));
    assert!(early.is_held(&server, key).await);
    server.clock.advance(Duration::from_millis(1));
    let told = early.answer().await;
    assert_eq!((&told["status"], &told["terminal"]), (&json!("dispatched"), &json!(false)));
    assert_eq!(told["poll_after_seconds"], 6, "an early answer does not move what is due");

    server.clock.advance(Duration::from_secs(3));
    let due_soon = poll();
    server.clock.advance(Duration::from_millis(2_999));
    assert!(due_soon.is_held(&server, key).await);
    server.clock.advance(Duration::from_millis(1));
    assert_eq!(due_soon.answer().await["poll_after_seconds"], 15, "it was due");
}

#[tokio::test]
async fn wait_seconds_decides_how_long_an_answer_is_held() {
    let (server, keys) = mute_phones(vec![everything()]).await;
    let key = &keys[0][0];
    let task = write(&server, key, "phone-0000001").await;
    let poll = |wait: u32| ask(&server, key, json!({"task_id": task, "wait_seconds": wait}));
    assert_eq!(poll(0).answer().await["poll_after_seconds"], 15);
    server.clock.advance(Duration::from_secs(4));
    assert_eq!(poll(0).answer().await["poll_after_seconds"], 11, "an answer ahead of its time does not move it");
    let waiting = poll(2);
    assert!(waiting.is_held(&server, key).await);
    server.clock.advance(Duration::from_secs(2));
    assert_eq!(waiting.answer().await["poll_after_seconds"], 9);
    let long = poll(50);
    assert!(long.is_held(&server, key).await);
    server.clock.advance(Duration::from_secs(49));
    assert!(long.is_held(&server, key).await);
    server.clock.advance(Duration::from_secs(1));
    long.answer().await;
}

#[tokio::test]
async fn the_end_of_a_task_answers_all_who_wait_for_it_and_later_polls_at_once() {
    let (server, keys) = mute_phones(vec![everything()]).await;
    let key = &keys[0][0];
    let task = write(&server, key, "phone-0000001").await;
    ask(&server, key, json!({"task_id": task})).answer().await;
    server.clock.advance(Duration::from_secs(40));
    let waiting: Vec<_> = (0..2).map(|_| ask(&server, key, json!({"task_id": task, "wait_seconds": 50}))).collect();
    assert!(waiting[0].is_held(&server, key).await && waiting[1].is_held(&server, key).await);
    // The deadline is 20 s ahead, and the end of the wait is 50 s ahead.
    for _ in 0..45 {
        server.clock.advance(Duration::from_secs(1));
        if !waiting[0].is_held(&server, key).await {
            break;
        }
    }
    let mut ended = Value::Null;
    for asked in waiting {
        ended = asked.answer().await;
    }
    assert_eq!((&ended["status"], &ended["terminal"]), (&json!("timeout"), &json!(true)));
    assert_eq!((&ended["poll_after_seconds"], &ended["refund"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&ended["evidence"]["checked"], &ended["evidence"]["reported"]),
        (&json!("power_state"), &json!("no_answer"))
    );
    for _ in 0..3 {
        assert_eq!(ask(&server, key, json!({"task_id": task})).answer().await, ended);
    }
}

#[tokio::test]
async fn beyond_64_held_answers_of_an_application_the_next_is_given_at_once() {
    let (server, keys) = mute_phones(vec![Tenant { keys: 2, ..everything() }, everything()]).await;
    let key = &keys[0][0];
    let task = write(&server, key, "phone-0000001").await;
    let wait = || json!({"task_id": task, "wait_seconds": 50});
    let held: Vec<_> = (0..HELD_MAX).map(|n| ask(&server, &keys[0][n % 2], wait())).collect();
    for asked in &held {
        assert!(asked.is_held(&server, key).await);
    }
    let next = ask(&server, key, wait()).answer().await;
    assert_eq!((&next["terminal"], &next["poll_after_seconds"]), (&json!(false), &json!(15)));
    let stranger = ask(&server, &keys[1][0], wait());
    assert!(stranger.is_held(&server, key).await, "another application has its own 64");
    server.clock.advance(Duration::from_secs(50));
    stranger.answer().await;
    for asked in held {
        asked.answer().await;
    }
    let again = ask(&server, key, wait());
    assert!(again.is_held(&server, key).await, "what was answered makes room");
}

#[tokio::test]
async fn nothing_is_held_in_a_batch() {
    let (server, keys) = mute_phones(vec![everything()]).await;
    let key = &keys[0][0];
    let task = write(&server, key, "phone-0000001").await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "get_task", "arguments": {"task_id": task, "wait_seconds": 50}}});
    for calls in [1, 3] {
        let (_, answers) = server.send(key, Value::from(vec![call.clone(); calls]).to_string()).await;
        let answers = answers.as_array().expect("a batch");
        assert_eq!(answers.len(), calls);
        assert!(answers.iter().all(|answer| outcome(answer).expect("a task")["poll_after_seconds"] == 15));
    }
}

#[tokio::test]
async fn a_server_that_stops_answers_every_poll_that_it_holds() {
    let (server, keys) = mute_phones(vec![everything()]).await;
    let key = &keys[0][0];
    let task = write(&server, key, "phone-0000001").await;
    let held: Vec<_> = (0..5).map(|_| ask(&server, key, json!({"task_id": task, "wait_seconds": 50}))).collect();
    assert!(held[4].is_held(&server, key).await);
    server.engine.close();
    for asked in held {
        assert_eq!(asked.answer().await["terminal"], false);
    }
    ask(&server, key, json!({"task_id": task, "wait_seconds": 50})).answer().await;
}

#[tokio::test]
async fn a_task_is_visible_to_its_maker_and_to_holders_of_its_device() {
    let tenants = vec![everything(), sees("phone-0000001"), sees("phone-0000003")];
    let (server, keys) = mute_phones(tenants).await;
    let task = write(&server, &keys[1][0], "phone-0000001").await;
    let now = json!({"task_id": task, "wait_seconds": 0});
    for (tenant, seen) in [(0, true), (1, true), (2, false)] {
        let answer = server.call(&keys[tenant][0], "get_task", now.clone()).await;
        assert_eq!(answer.is_ok(), seen, "{answer:?}");
    }
    let hidden = server.call(&keys[2][0], "get_task", now).await.unwrap_err();
    let absent = json!({"task_id": format!("task_{}", "0".repeat(32)), "wait_seconds": 0});
    assert_eq!(hidden, server.call(&keys[2][0], "get_task", absent).await.unwrap_err());
    assert_eq!(hidden["code"], "not_found");
}
