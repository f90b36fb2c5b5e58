//! The budget of an application, and the audit of its calls.

use crate::harness::shop::shop;
use crate::harness::{Key, Server, Tenant, open_phones, outcome, phones};
use crate::wire::authority::{PHONE, body, serve_waiting};
use cloudphone::phones::contract::CATALOGUE;
use serde_json::{Value, json};
use std::time::Duration;
use toolwarrant_core::catalogue::PermissionSet;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices"}}"#;

fn tenant() -> Tenant {
    let limit = CATALOGUE.service.requests_per_minute;
    Tenant { requests_per_minute: limit, keys: 2, ..Tenant::with(PermissionSet(u64::MAX)) }
}

/// Alternates between the keys.
async fn spend(server: &Server, keys: &[Key], n: usize) {
    for n in 0..n {
        let (status, answer) = server.send(&keys[n % keys.len()], LIST).await;
        assert!(status == 200 && answer["result"].is_object(), "request {n}: {answer}");
    }
}

#[tokio::test]
async fn two_keys_share_300_requests_and_the_301st_is_refused_whatever_it_asks() {
    for (body, is_call) in [(LIST, false), (CALL, true)] {
        let (server, keys) = phones(vec![tenant(), tenant()]).await;
        spend(&server, &keys[0], 300).await;
        let mut wait = 0;
        for key in &keys[0] {
            let (status, answer) = server.send(key, body).await;
            let failure = if is_call { outcome(&answer).unwrap_err() } else { answer["error"]["data"].clone() };
            assert_eq!((status, &answer["id"]), (200, &json!(1)));
            assert_eq!((&failure["code"], &failure["retryable"]), (&json!("rate_limited"), &json!(true)), "{answer}");
            assert!(is_call || answer["error"]["code"] == -32000);
            wait = failure["retry_after_seconds"].as_u64().expect("seconds");
        }
        assert!((59..=61).contains(&wait), "{wait}");
        spend(&server, &keys[1], 1).await;
        server.clock.advance(Duration::from_secs(wait));
        spend(&server, &keys[0], 300).await;
    }
}

#[tokio::test]
async fn a_batch_costs_its_requests_before_any_runs_and_a_notification_costs_one() {
    let (server, keys) = phones(vec![tenant()]).await;
    let batch = |n: usize| format!("[{}]", vec![LIST; n].join(","));
    for _ in 0..6 {
        server.send(&keys[0][0], batch(49)).await;
    }
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(server.send(&keys[0][0], note).await.0, 202);
    // 295 requests are spent. A batch of six does not fit and is refused as a whole; a batch of
    // five fits.
    let (_, refused) = server.send(&keys[0][0], batch(6)).await;
    let codes: Vec<_> =
        refused.as_array().expect("a list").iter().map(|member| &member["error"]["data"]["code"]).collect();
    assert_eq!(codes, vec!["rate_limited"; 6]);
    let (_, admitted) = server.send(&keys[0][0], batch(5)).await;
    assert!(admitted.as_array().expect("a list").iter().all(|member| member["result"].is_object()), "{admitted}");
    assert_eq!(server.send(&keys[0][0], LIST).await.1["error"]["data"]["code"], "rate_limited");
}

#[tokio::test]
async fn an_unsound_body_costs_one_request_and_a_spent_budget_is_answered_with_the_id() {
    let (server, keys) = phones(vec![Tenant { requests_per_minute: 4, ..tenant() }]).await;
    let key = &keys[0][0];
    for (body, status) in [("{", 400), ("[]", 400), (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400)] {
        assert_eq!(server.send(key, body).await.0, status, "{body}");
    }
    // A batch of two does not fit. The request that its head was charged is refunded.
    let ping = |id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let (_, batch) = server.send(key, json!([ping(1), ping(2)]).to_string()).await;
    assert_eq!(batch[1]["error"]["data"]["code"], "rate_limited", "{batch}");
    assert_eq!(server.send(key, ping(3).to_string()).await.1["result"], json!({}));
    let (status, refused) = server.send(key, ping(4).to_string()).await;
    assert_eq!((status, &refused["id"], &refused["error"]["data"]["code"]), (200, &json!(4), &json!("rate_limited")));
    // A request signed with a wrong secret is not charged.
    server.clock.advance(Duration::from_secs(61));
    let wrong = Key { secret: "wrong".to_owned(), ..key.clone() };
    for _ in 0..4 {
        assert_eq!(server.v1(&server.sign(&wrong, "GET", "/v1/devices")).await.status, 401);
    }
    spend(&server, &keys[0], 4).await;
}

#[tokio::test]
async fn calls_over_the_budget_share_a_line_a_second() {
    let few = Tenant { requests_per_minute: 1, ..tenant() };
    let (server, keys) = phones(vec![few]).await;
    let batch = format!("[{}]", [CALL; 50].join(","));
    for _ in 0..3 {
        server.send(&keys[0][0], batch.clone()).await;
    }
    server.clock.advance(Duration::from_secs(1));
    server.send(&keys[0][0], batch).await;
    let text = server.audit().await;
    let calls: Vec<_> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["calls"].clone()).collect();
    assert_eq!(calls, [Value::Null, json!(150)], "one is for the first refusal, the other for all since");
}

#[tokio::test]
async fn a_call_that_is_given_up_has_its_line_too() {
    let (server, key, vendor) = serve_waiting().await;
    let waiting = tokio::spawn(server.post(&key).body(body("get_device", json!({"device_id": PHONE}))).send());
    vendor.arrived.acquire().await.expect("it comes").forget();
    let line: Value = serde_json::from_str(&server.audit().await).expect("one line");
    assert_eq!((&line["outcome"], &line["target"]), (&json!("cancelled"), &json!(PHONE)));
    drop(waiting);
}

#[tokio::test]
async fn the_audit_has_a_line_for_every_call_and_no_secret() {
    let tenants = || {
        let few = Tenant { requests_per_minute: 5, ..Tenant::with(PermissionSet(u64::MAX)) };
        vec![few, Tenant::with(PermissionSet::default())]
    };
    let (server, keys) = shop(tenants()).await;
    let calls = [
        (0, "get_printer", json!({"printer_id": "p-1", "words": null}), "ok"),
        (0, "open_panel", json!({"copies": 3, "pin": "hunter2"}), "ok"),
        (0, "print_page", json!({"printer_id": "p-2", "mode": "draft", "pin": "hunter2"}), "not_supported"),
        (0, "print_page", json!({"printer_id": "p-1", "mode": "hunter2", "pim": "hunter2"}), "invalid_argument"),
        (0, "open_panel", json!({"copies": 99}), "out_of_ink"),
        (0, "open_panel", json!({"pin": "hunter2"}), "rate_limited"),
        (1, "open_panel", json!({"pin": "hunter2"}), "forbidden"),
    ];
    for (tenant, tool, arguments, expected) in &calls {
        let outcome = server.call(&keys[*tenant][0], tool, arguments.clone()).await;
        let code = outcome.map_or_else(|failure| failure["code"].clone(), |_| json!("ok"));
        assert_eq!(code, *expected, "{tool}");
    }
    server.list(&keys[1][0]).await;
    let text = server.audit().await;
    assert!(!text.contains("hunter2") && !text.contains(&keys[0][0].secret), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let seen: Vec<_> = lines.iter().map(|line| (line["tool"].as_str(), line["outcome"].as_str())).collect();
    let expected: Vec<_> = calls.iter().map(|(_, tool, _, outcome)| (Some(*tool), Some(*outcome))).collect();
    assert_eq!(seen, expected);
    let shown: Vec<_> = lines.iter().map(|line| (&line["target"], &line["arguments"])).collect();
    let none = Value::Null;
    assert_eq!(shown[0], (&json!("p-1"), &json!({"printer_id": "p-1", "words": null})));
    assert_eq!(shown[1], (&none, &json!({"copies": 3, "pin": "[secret]"})));
    assert_eq!(shown[2], (&json!("p-2"), &json!({"printer_id": "p-2", "mode": "draft", "pin": "[secret]"})));
    assert_eq!(shown[3], (&none, &json!(["printer_id", "mode", "pim"])), "of refused arguments the names alone");
    assert_eq!((shown[5], shown[6]), ((&none, &none), (&none, &none)));
    for (line, (tenant, ..)) in lines.iter().zip(&calls) {
        assert_eq!(line["key_id"], json!(keys[*tenant][0].id));
        assert_eq!(line["application"] == lines[0]["application"], *tenant == 0);
        assert_eq!(line["time"], "2027-01-15T08:00:00.000Z");
        assert!(line["request_id"].is_string());
    }
}

#[tokio::test]
async fn layout_that_a_client_sends_does_not_fill_the_audit() {
    let (server, key) = open_phones().await;
    let arguments = format!(r#"{{"device_id": "phone-0000001"{}}}"#, " ".repeat(100_000));
    let params = format!(r#"{{"name": "get_device", "arguments": {arguments}}}"#);
    let (status, answer) = server
        .send(&key, format!(r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}"#))
        .await;
    assert_eq!((status, outcome(&answer).is_ok()), (200, true), "{answer}");
    let text = server.audit().await;
    assert!(text.contains(r#""arguments":{"device_id":"phone-0000001"}"#) && text.len() < 500, "{} bytes", text.len());
}
