//! Writes on simulated phones, over the wire: the answers on the way, and several writes on one
//! device.

use crate::harness::writes::{entries, ledger, phone, power, proxy};
use crate::harness::{Key, Server, TASKS_MAX, Tenant, cast, fleet};
use cloudphone::phones::contract::{Command, DeviceId, PowerAction, SetPowerArgs};
use cloudphone::phones::port::WritePort;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_tasks::leave::Leave;
use toolwarrant_tasks::store::TaskStore;
use toolwarrant_tasks::task::TaskId;

async fn code(server: &Server, key: &Key, tool: &str, arguments: Value) -> Value {
    server.call(key, tool, arguments).await.expect_err("refused")["code"].take()
}

#[tokio::test]
async fn a_repeat_in_flight_is_a_hit_whatever_has_become_of_the_device_and_the_platform() {
    let (server, key, sim) = cast().await;
    // This phone ignores its commands, so its task takes long.
    let first = server.call(&key, "set_proxy", proxy(13, "k")).await.expect("accepted");
    let repeat = async || server.call(&key, "set_proxy", proxy(13, "k")).await.expect("a hit");
    let assert_hit = |answer: &Value| {
        assert_eq!((&answer["task_id"], &answer["idempotent_hit"]), (&first["task_id"], &json!(true)), "{answer}");
        assert_eq!(answer["request_matches"], true);
    };
    assert_hit(&repeat().await);
    assert_eq!(entries(&server, "charge").await, 1, "a hit costs nothing");

    let other = server.call(&key, "set_proxy", proxy(14, "k")).await.expect("a hit");
    assert_eq!((&other["task_id"], &other["request_matches"]), (&first["task_id"], &json!(false)));
    assert!(other["next_step"].as_str().is_some_and(|next| next.starts_with("Nothing of this call was sent:")));
    assert_eq!(other["device_id"], phone(13));

    sim.cut();
    server.clock.advance(Duration::from_secs(3));
    assert_hit(&repeat().await);
    assert_eq!(code(&server, &key, "set_proxy", proxy(9, "other")).await, "upstream_unavailable");
    sim.mend();

    let second = server.call(&key, "set_proxy", proxy(18, "late")).await.expect("accepted");
    let device_id = DeviceId::new(&phone(18)).expect("an id");
    let shutdown = Command::SetPower(SetPowerArgs { device_id, action: PowerAction::Shutdown, idempotency_key: None });
    let somebody = TaskId::new(server.clock.now(), [9; 10]);
    let leave = Leave::until(server.clock.now().plus(Duration::from_secs(9)), &server.clock);
    sim.send(somebody, &shutdown, leave).await;
    server.clock.advance(Duration::from_secs(19));
    let device = server.call(&key, "get_device", json!({"device_id": phone(18)})).await.expect("a device");
    assert_eq!(device["capabilities"]["proxy"], false);
    let hit = server.call(&key, "set_proxy", proxy(18, "late")).await.expect("a hit");
    assert_eq!((&hit["task_id"], &hit["idempotent_hit"]), (&second["task_id"], &json!(true)));
    assert_eq!(code(&server, &key, "set_proxy", proxy(18, "other")).await, "not_supported");
}

#[tokio::test]
async fn a_repeat_is_a_hit_when_the_queue_is_full() {
    let (server, keys) = fleet(2_000, vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    let key = &keys[0][0];
    let mut accepted = Vec::new();
    let mut number = 0;
    while accepted.len() < TASKS_MAX {
        number += 1;
        accepted.extend(server.call(key, "set_power", power(number, "boot")).await);
    }
    let full = server.call(key, "set_power", power(1_999, "boot")).await.expect_err("no room");
    assert_eq!((&full["code"], &full["retryable"]), (&json!("overloaded"), &json!(true)), "{full}");
    let hit = server.call(key, "set_power", power(1, "boot")).await.expect("a hit");
    assert_eq!((&hit["task_id"], &hit["idempotent_hit"]), (&accepted[0]["task_id"], &json!(true)));
    server.end(key, &accepted[0]["task_id"]).await;
    server.call(key, "set_power", power(1_999, "boot")).await.expect("there is room again");
}

#[tokio::test]
async fn of_64_first_calls_at_once_with_one_key_one_makes_a_task() {
    let (server, key, sim) = cast().await;
    let params = json!({"name": "set_proxy", "arguments": proxy(1, "k")});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mut calls = JoinSet::new();
    for _ in 0..64 {
        let request = server.post(&key).body(body.clone());
        calls.spawn(async move { request.send().await.expect("an answer").json::<Value>().await.expect("JSON") });
    }
    let answers = calls.join_all().await;
    let tasks: Vec<_> =
        answers.iter().map(|answer| crate::harness::outcome(answer).expect("accepted or a hit")).collect();
    assert_eq!(tasks.iter().filter(|task| task["idempotent_hit"] == false).count(), 1);
    assert!(tasks.iter().all(|task| task["task_id"] == tasks[0]["task_id"]));

    let ended = server.end(&key, &tasks[0]["task_id"]).await;
    assert_eq!((&ended["status"], entries(&server, "charge").await), (&json!("success"), 1));
    assert_eq!(sim.deeds_of(&DeviceId::new(&phone(1)).expect("an id")).len(), 1);
    server.clock.advance(Duration::from_secs(1));
    let anew = server.call(&key, "set_proxy", proxy(1, "k")).await.expect("accepted");
    assert_eq!(anew["idempotent_hit"], false);
    assert_ne!(anew["task_id"], tasks[0]["task_id"]);
}

#[tokio::test]
async fn a_client_that_goes_away_after_its_request_loses_the_answer_and_nothing_else() {
    let (server, keys) = fleet(200, vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    let key = &keys[0][0];
    for number in 24..124 {
        let request = key.call_request("set_power", &power(number, "shutdown"), "");
        let mut client = TcpStream::connect(server.address).await.expect("a connection");
        client.write_all(request.as_bytes()).await.expect("it is sent");
    }
    let offered = server.call(key, "list_devices", json!({"limit": 200, "capability": "power"})).await.expect("a page");
    let ids = offered["devices"].as_array().expect("devices").iter().map(|device| device["device_id"].as_str());
    let expected = ids.flatten().filter(|id| (phone(24).as_str()..phone(124).as_str()).contains(id)).count();
    let mut charged = 0;
    for _ in 0..200 {
        charged = entries(&server, "charge").await;
        if charged == expected && server.engine.in_flight() == 0 {
            break;
        }
        server.list(key).await;
        server.clock.advance(Duration::from_secs(1));
    }
    assert_eq!((charged, server.engine.in_flight()), (expected, 0));
}

#[tokio::test]
async fn a_device_takes_one_write_at_a_time_and_the_next_when_it_has_settled() {
    let (server, key, _) = cast().await;
    let first = server.call(&key, "set_proxy", proxy(13, "k")).await.expect("accepted");
    let busy = server.call(&key, "set_power", power(13, "restart")).await.expect_err("one at a time");
    assert_eq!((&busy["code"], &busy["retryable"]), (&json!("device_busy"), &json!(true)), "{busy}");
    assert_eq!((&busy["task_id"], &busy["retry_after_seconds"]), (&first["task_id"], &json!(15)));

    // A command may still arrive during the settle time, which starts at the last answer about it,
    // unless its effect was measured.
    let clear = json!({"device_id": phone(14)});
    for (number, tool, arguments, seconds) in
        [(1, "set_proxy", proxy(1, "another"), 0..=0), (14, "clear_proxy", clear, 13..=15)]
    {
        let accepted = server.call(&key, tool, arguments).await.expect("accepted");
        server.end(&key, &accepted["task_id"]).await;
        let next = server.call(&key, "set_power", power(number, "shutdown")).await.expect("accepted at once");
        let id = TaskId::parse(next["task_id"].as_str().expect("text")).expect("an id");
        let record = server.store.task(id).await.expect("a store").expect("a task");
        let task = record.task;
        let settles = task.not_before.since(record.created_at);
        assert!(seconds.contains(&settles.as_secs()), "{number} settles for {settles:?}");
        assert_eq!(task.deadline_at.since(task.not_before), Duration::from_secs(60));
        server.end(&key, &next["task_id"]).await;
    }
}

#[tokio::test]
async fn a_device_shows_the_state_that_its_task_reported() {
    let (server, key, _) = cast().await;
    let device = async || server.call(&key, "get_device", json!({"device_id": phone(2)})).await.expect("a device");
    let booting = server.call(&key, "set_power", power(2, "boot")).await.expect("accepted");
    let poll = json!({"task_id": booting["task_id"], "wait_seconds": 0});
    let mut ended = false;
    for _ in 0..60 {
        // A shown state may be two seconds old, unless a task has newer information.
        device().await;
        ended = server.call(&key, "get_task", poll.clone()).await.expect("a task")["status"] == "success";
        if ended {
            break;
        }
        server.clock.advance(Duration::from_millis(400));
    }
    assert!(ended);
    assert_eq!(device().await["state"], "running");
    server.call(&key, "set_proxy", proxy(2, "k")).await.expect("it is offered");
}

#[tokio::test]
async fn a_rotating_proxy_and_the_same_proxy_again_are_never_refunded() {
    let (server, key, _) = cast().await;
    let (same, rotating) = ("success_unverified", "timeout");
    for (number, round, status) in [(1, 0, "success"), (1, 1, same), (1, 2, same), (20, 0, rotating), (20, 1, rotating)]
    {
        let accepted = server.call(&key, "set_proxy", proxy(number, &format!("{round}"))).await.expect("accepted");
        assert_eq!(server.end(&key, &accepted["task_id"]).await["status"], status, "{number} {round}");
    }
    assert_eq!(entries(&server, "refund").await, 0);
}

#[tokio::test]
async fn a_choice_that_the_device_never_offers_and_a_host_that_no_proxy_has_are_refused() {
    let (server, key, _) = cast().await;
    let with = |number, member: &str, value: &str| {
        let mut arguments = proxy(number, "k");
        arguments[member] = value.into();
        arguments
    };
    let cases = [
        ("set_power", power(8, "restart"), "`action` is `restart`, and this device offers only `boot`, `shutdown`"),
        ("set_proxy", with(9, "scheme", "socks5"), "`scheme` is `socks5`, and this device offers only `http`"),
        ("set_proxy", with(1, "host", "0x7f.1"), "`host` 0x7f.1 is loopback"),
        ("set_proxy", with(1, "host", "10.0.0.1"), "is in a private network, which the operator"),
    ];
    for (tool, arguments, expected) in cases {
        let refused = server.call(&key, tool, arguments).await.expect_err("refused");
        let message = refused["message"].as_str().expect("text");
        let code = if message.contains("offers only") { "not_offered" } else { "invalid_argument" };
        assert_eq!((&refused["code"], &refused["retryable"]), (&json!(code), &json!(false)));
        assert!(message.contains(expected) && !message.contains("hunter2"), "{message}");
    }
    assert_eq!((server.engine.in_flight(), ledger(&server).await.len()), (0, 0));
}
