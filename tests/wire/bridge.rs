//! The bridge, driven over its standard input and output, by an official client and line by line.

mod answers;
pub(crate) mod fake;
mod headers;
mod start;
pub(crate) mod stdio;
mod transcript;

use crate::harness::bridge::Bridge;
use crate::harness::{self, Key, outcome};
use fake::Fake;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn request(id: impl Into<Value>, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string()
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> String {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn cancel(id: impl Into<Value>) -> String {
    let params = json!({"requestId": id.into(), "reason": "it takes too long"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string()
}

fn empty_result(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {}})
}

/// Waits for the answer to a later line, one that the bridge refuses without the server.
async fn all_is_read(bridge: &mut Bridge) {
    let long = call("long", "get_task", json!({"text": "x".repeat(1 << 20)}));
    assert_eq!(bridge.ask(long).await["error"]["data"]["code"], "body_too_large");
}

async fn over_fake() -> (Fake, Bridge) {
    let fake = Fake::listen().await;
    let bridge = Bridge::with_key(&fake.url, &any_key());
    (fake, bridge)
}

fn any_key() -> Key {
    Key { id: "key_1".to_owned(), secret: "secret_that_is_shown_nowhere".to_owned() }
}

#[tokio::test]
async fn a_held_poll_delays_no_other_call_and_a_cancelled_one_is_never_answered() {
    let (server, keys) =
        harness::mute_phones(vec![harness::Tenant::with(toolwarrant::contract::PermissionSet(u64::MAX))]).await;
    let mut bridge = Bridge::with_key(&server.url, &keys[0][0]);
    let boot = json!({"device_id": "phone-0000001", "action": "restart"});
    let task = outcome(&bridge.ask(call(1, "set_power", boot)).await).expect("a task");
    let poll = |id: &str| call(id, "get_task", json!({"task_id": task["task_id"], "wait_seconds": 50}));
    bridge.send(poll("cancelled")).await;
    bridge.send(poll("kept")).await;
    assert_eq!(bridge.ask(call(2, "list_devices", json!({"limit": 1}))).await["id"], 2);
    bridge.send(cancel("cancelled")).await;
    // Only a request in flight can be cancelled.
    bridge.send(cancel(2)).await;
    bridge.send(cancel(Value::Null)).await;
    assert_eq!(bridge.ask(request(3, "ping", json!({}))).await["id"], 3);
    let kept = loop {
        server.clock.advance(std::time::Duration::from_secs(60));
        tokio::select! {
            answer = bridge.next() => break answer,
            () = tokio::task::yield_now() => {}
        }
    };
    assert_eq!(
        (&kept["id"], outcome(&kept).expect("the task")["status"].as_str()),
        (&json!("kept"), Some("dispatched"))
    );
    let (rest, exit) = bridge.end().await;
    assert!(rest.is_empty() && exit.success(), "{rest:?}");
}

#[tokio::test]
async fn a_request_that_is_cancelled_is_dropped_on_its_way() {
    let (mut fake, mut bridge) = over_fake().await;
    bridge.send(call("a", "get_task", json!({}))).await;
    let first = fake.next().await;
    bridge.send(cancel("a")).await;
    first.wait_for_close().await;
    // The id can be used again.
    bridge.send(call("a", "get_task", json!({}))).await;
    let again = fake.next().await;
    again.answer(200, empty_result(&json!("a"))).await;
    assert_eq!(bridge.next().await, empty_result(&json!("a")));
    assert_eq!(bridge.end().await.0, [""; 0]);
}

#[tokio::test]
async fn sixty_four_requests_are_in_flight_at_most_and_none_is_lost() {
    const REQUESTS: usize = 100;
    let (mut fake, mut bridge) = over_fake().await;
    for n in 0..REQUESTS {
        bridge.send(call(n, "get_task", json!({}))).await;
    }
    let mut held = Vec::new();
    while held.len() < 64 {
        held.push(fake.next().await);
    }
    all_is_read(&mut bridge).await;
    assert_eq!(fake.waiting_count(), 0);
    let mut seen = BTreeSet::new();
    while let Some(request) = held.pop() {
        let id = request.body["id"].clone();
        request.answer(200, empty_result(&id)).await;
        let answered = bridge.next().await["id"].as_u64().expect("a number");
        assert!(seen.insert(answered) && json!(answered) == id);
        if seen.len() + held.len() < REQUESTS {
            held.push(fake.next().await);
        }
    }
    assert_eq!(seen.len(), REQUESTS);
}

#[tokio::test]
async fn waiting_requests_are_limited_and_can_be_cancelled() {
    let (mut fake, mut bridge) = over_fake().await;
    for n in 0..65 {
        bridge.send(call(n, "get_task", json!({}))).await;
    }
    let mut held = Vec::new();
    while held.len() < 64 {
        held.push(fake.next().await);
    }
    bridge.send(cancel(64)).await;
    bridge.send(call("after", "get_task", json!({}))).await;
    all_is_read(&mut bridge).await;
    let first = held.pop().expect("a request");
    let id = first.body["id"].clone();
    first.answer(200, empty_result(&id)).await;
    assert_eq!(bridge.next().await["id"], id);
    assert_eq!(fake.next().await.body["id"], "after", "the cancelled one has no turn");
}

#[tokio::test]
async fn the_end_of_the_input_ends_it_whatever_is_in_flight() {
    let (mut fake, mut bridge) = over_fake().await;
    bridge.send(call(1, "get_task", json!({}))).await;
    let held = fake.next().await;
    let (rest, exit) = bridge.end().await;
    assert!(rest.is_empty() && exit.success(), "{rest:?}");
    held.wait_for_close().await;
}

#[tokio::test]
async fn an_answer_that_comes_after_the_end_of_the_input_is_still_written() {
    let (mut fake, mut bridge) = over_fake().await;
    bridge.send(call(1, "get_task", json!({}))).await;
    let held = fake.next().await;
    let (end, ()) = tokio::join!(bridge.end(), held.answer(200, empty_result(&json!(1))));
    assert_eq!(end.0, [empty_result(&json!(1)).to_string()]);
    assert!(end.1.success());
}

#[tokio::test]
async fn an_output_that_nobody_reads_any_more_ends_it() {
    let (mut fake, mut bridge) = over_fake().await;
    bridge.deafen();
    bridge.send(request(1, "ping", json!({}))).await;
    fake.next().await.answer(200, empty_result(&json!(1))).await;
    assert!(bridge.exit().await.success());
}
