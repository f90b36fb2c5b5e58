//! Authority that an operator takes away ends at once, whatever is in progress.

mod screens;

use crate::harness::{Key, Server, Tenant, both_sides, mute_phones, outcome, phones, read, serve};
use crate::wire::hostile::platform::Vendor;
use cloudphone::platforms::simulator::Sim;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use toolwarrant::contract::PermissionSet;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::registry::Durability;
use toolwarrant_core::store::ApplicationRow;
use toolwarrant_tasks::store::{TaskFilter, TaskStore};
use toolwarrant_testing::test_origin;

pub(crate) const PHONE: &str = "phone-0000001";

/// Gives one key all permissions on a few phones.
fn tenant() -> Tenant {
    let grants = Grants::nothing().with("device", Granted::some([PHONE, "phone-0000002"]));
    Tenant { grants, ..Tenant::with(PermissionSet(u64::MAX)) }
}

/// With the code that a call of the application gets from then on.
pub(crate) const TAKEN: [(&str, &str); 4] = [
    ("the key", "unauthenticated"),
    ("the secret", "unauthenticated"),
    ("the permissions", "forbidden"),
    ("the phone", "not_found"),
];

pub(crate) async fn take(server: &Server, key: &Key, what: &str) {
    let (registry, origin) = (&server.registry, &test_origin());
    let id = registry.find("app-0").await.expect("the application").id;
    let kept = match what {
        "the key" => registry.revoke_key(&key.id, origin).await.map(|changed| changed.durability),
        "the secret" => {
            registry.rotate_key(&key.id, None, origin).await.expect("rotated");
            registry.rotate_key(&key.id, None, origin).await.map(|_| Durability::Stored)
        }
        _ => {
            let edit = |row: &mut ApplicationRow| match what {
                "the permissions" => row.permissions.clear(),
                _ => row.grants = Grants::nothing(),
            };
            registry.change(&id, origin, edit).await.map(|changed| changed.durability)
        }
    };
    assert_eq!(kept.expect("taken"), Durability::Stored);
}

pub(crate) fn body(tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()
}

fn calls() -> [String; 3] {
    [
        body("set_power", json!({"device_id": PHONE, "action": "boot"})),
        body("create_session", json!({"device_id": PHONE})),
        body("get_device", json!({"device_id": PHONE})),
    ]
}

/// Reads a failed result or an answer with an error status.
fn code((status, answer): (u16, Value)) -> String {
    let failure = match status {
        200 if answer.get("error").is_none() => outcome(&answer).expect_err("refused"),
        _ => {
            assert_eq!((status, &answer["id"]), (401, &json!(7)), "{answer}");
            answer["error"]["data"].clone()
        }
    };
    failure["code"].as_str().expect("a code").to_owned()
}

async fn nothing_was_done(server: &Server) {
    let filter = TaskFilter { limit: 10, examine: 10, ..TaskFilter::default() };
    assert!(server.store.tasks(filter).await.expect("read").records.is_empty());
}

#[tokio::test]
async fn a_call_whose_authority_ends_while_its_body_arrives_is_refused() {
    for (what, expected) in TAKEN {
        for body in calls() {
            let (server, keys) = phones(vec![tenant()]).await;
            let key = &keys[0][0];
            let mut stream = TcpStream::connect(server.address).await.expect("connected");
            let (first, rest) = body.split_at(body.len() / 2);
            let request = key.request(&body, "connection: close\r\nexpect: 100-continue\r\n");
            let head = request.strip_suffix(&body).expect("the body comes last");
            stream.write_all(head.as_bytes()).await.expect("sent");
            // The server sends this once it has accepted the head.
            let mut go_on = [0; 25];
            stream.read_exact(&mut go_on).await.expect("an interim answer");
            assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
            stream.write_all(first.as_bytes()).await.expect("sent");
            take(&server, key, what).await;
            stream.write_all(rest.as_bytes()).await.expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            let status = head[9..12].parse().expect("a status");
            let json: Value = serde_json::from_str(body).expect("JSON");
            if expected == "unauthenticated" {
                assert_eq!((status, &json["error"]["data"]["code"]), (401, &json!(expected)), "{what}: {answer}");
            } else {
                assert_eq!(code((status, json)), expected, "{what}: {answer}");
            }
            nothing_was_done(&server).await;
        }
    }
}

/// Serves phones whose readings wait.
pub(crate) async fn serve_waiting() -> (Server, Key, Arc<Vendor>) {
    let mut kept = None;
    let parts = |clock: &toolwarrant::Clock| {
        let vendor = Vendor::new(Sim::new(1, 12, clock.clone(), &[1; 32]), "text", 0);
        kept = Some(vendor.clone());
        both_sides(vendor, clock)
    };
    let (server, keys) = serve(parts, vec![tenant()]).await;
    (server, keys[0][0].clone(), kept.expect("it was made"))
}

pub(crate) fn send(server: &Server, key: &Key, body: String) -> JoinHandle<(u16, Value)> {
    let request = server.post(key).body(body);
    tokio::spawn(async move { read(request.send().await.expect("an answer")).await })
}

#[tokio::test]
async fn a_call_whose_authority_ends_while_the_platform_answers_sends_issues_and_shows_nothing() {
    for (what, expected) in TAKEN {
        for body in calls() {
            let (server, key, vendor) = serve_waiting().await;
            let answer = send(&server, &key, body);
            vendor.arrived.acquire().await.expect("it comes").forget();
            take(&server, &key, what).await;
            vendor.open.add_permits(1);
            assert_eq!(code(answer.await.expect("no panic")), expected, "{what}");
            nothing_was_done(&server).await;
        }
    }
}

#[tokio::test]
async fn each_further_call_of_a_batch_is_refused_once_the_key_is_revoked() {
    let (server, key, vendor) = serve_waiting().await;
    let call = |n: u32, tool: &str| {
        let arguments = json!({"device_id": format!("phone-000000{n}"), "action": "boot"});
        let arguments = if tool == "get_device" { json!({"device_id": PHONE}) } else { arguments };
        json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
    };
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
    let batch = json!([call(1, "get_device"), call(2, "set_power"), list]);
    let answer = send(&server, &key, batch.to_string());
    vendor.arrived.acquire().await.expect("it comes").forget();
    take(&server, &key, "the key").await;
    vendor.open.add_permits(5);
    let (status, answers) = answer.await.expect("no panic");
    let seen: Vec<_> =
        answers.as_array().expect("a list").iter().map(|answer| &answer["error"]["data"]["code"]).collect();
    assert_eq!((status, seen), (200, vec![&json!("unauthenticated"); 3]), "{answers}");
    nothing_was_done(&server).await;
    let audit = server.audit().await;
    let outcomes: Vec<_> =
        audit.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["outcome"].clone()).collect();
    assert_eq!(outcomes, ["unauthenticated", "unauthenticated"], "{audit}");
}

#[tokio::test]
async fn a_held_poll_is_answered_at_once_when_its_key_is_revoked_and_others_stay_held() {
    let (server, keys) = mute_phones(vec![Tenant { keys: 2, ..tenant() }]).await;
    let [gone, stays] = [&keys[0][0], &keys[0][1]];
    let task = server.call(gone, "set_power", json!({"device_id": PHONE, "action": "boot"})).await.expect("accepted");
    let poll = |key| send(&server, key, body("get_task", json!({"task_id": task["task_id"], "wait_seconds": 50})));
    let (first, other) = (poll(gone), poll(stays));
    let target = format!("/v1/tasks/{}?wait_seconds=50", task["task_id"].as_str().expect("an id"));
    let signed = server.sign(gone, "GET", &target);
    let address = server.address;
    let signed = tokio::spawn(async move { signed.send(address).await });
    while server.engine.poll_count() != 3 {
        tokio::task::yield_now().await;
    }
    take(&server, gone, "the key").await;
    assert_eq!(code(first.await.expect("no panic")), "unauthenticated");
    let signed = signed.await.expect("no panic");
    assert_eq!((signed.status, &signed.body["code"]), (401, &json!("unauthenticated")), "{:?}", signed.body);
    assert!(signed.body["canonical_request"].is_string(), "{:?}", signed.body);
    server.list(stays).await;
    assert!(!other.is_finished());
    server.clock.advance(Duration::from_secs(50));
    let told = outcome(&other.await.expect("no panic").1).expect("a task");
    assert_eq!(told["status"], "dispatched");
}
