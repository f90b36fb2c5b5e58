//! The answer to a refused call: the shape of a failure, and its advice to the client.

use crate::harness::writes::{phone, power, proxy};
use crate::harness::{Key, Server, Tenant, cast, open_phones, outcome, phones};
use serde_json::{Value, json};
use toolwarrant_core::catalogue::PermissionSet;

async fn refusal(server: &Server, key: &Key, tool: &str, arguments: Value) -> Value {
    server.call(key, tool, arguments).await.expect_err("refused")
}

#[tokio::test]
async fn every_failure_has_a_code_a_message_and_retryable() {
    let (server, key, sim) = cast().await;
    server.call(&key, "set_proxy", proxy(13, "k")).await.expect("accepted");
    let mut failures = vec![
        (refusal(&server, &key, "get_device", json!({})).await, "invalid_argument", false),
        (refusal(&server, &key, "get_device", json!({"device_id": "phone-9"})).await, "not_found", false),
        (refusal(&server, &key, "set_proxy", proxy(5, "other")).await, "not_supported", false),
        (refusal(&server, &key, "set_power", power(13, "restart")).await, "device_busy", true),
    ];
    sim.cut();
    server.clock.advance(std::time::Duration::from_secs(3));
    failures.push((
        refusal(&server, &key, "get_device", json!({"device_id": phone(1)})).await,
        "upstream_unavailable",
        true,
    ));
    let few = Tenant { requests_per_minute: 1, ..Tenant::with(PermissionSet::default()) };
    let (server, keys) = phones(vec![few]).await;
    for (code, retryable) in [("forbidden", false), ("rate_limited", true)] {
        failures.push((refusal(&server, &keys[0][0], "list_devices", json!({})).await, code, retryable));
    }
    for (failure, code, retryable) in failures {
        assert_eq!((&failure["code"], &failure["retryable"]), (&json!(code), &json!(retryable)));
        assert!(failure["message"].as_str().is_some_and(|text| text.ends_with('.')), "{failure}");
    }
}

#[tokio::test]
async fn forbidden_is_about_the_key_and_not_supported_about_the_device() {
    let tenants = [0, u64::MAX].map(|set| Tenant::with(PermissionSet(set)));
    let (server, keys) = phones(tenants.into()).await;
    let [nobody, everybody] = [&keys[0][0], &keys[1][0]];
    for (number, offers) in [(1, true), (5, false)] {
        let clear = || json!({"device_id": phone(number)});
        assert_eq!(refusal(&server, nobody, "clear_proxy", clear()).await["code"], "forbidden", "on whatever device");
        let answer = server.call(everybody, "clear_proxy", clear()).await;
        assert_eq!(answer.is_ok(), offers);
        assert!(answer.is_ok() || answer.is_err_and(|failure| failure["code"] == "not_supported"));
    }
}

#[tokio::test]
async fn a_call_that_is_not_retryable_is_refused_again_in_the_same_words() {
    let (server, key) = open_phones().await;
    let calls = [
        ("clear_proxy", json!({"device_id": phone(5)})),
        ("get_device", json!({"device_id": "phone-9"})),
        ("set_power", power(1, "explode")),
    ];
    for (tool, arguments) in calls {
        let first = refusal(&server, &key, tool, arguments.clone()).await;
        assert_eq!(first["retryable"], false, "{first}");
        server.clock.advance(std::time::Duration::from_secs(600));
        assert_eq!(refusal(&server, &key, tool, arguments).await, first);
    }
}

#[tokio::test]
async fn a_retryable_call_succeeds_when_it_is_repeated_after_the_time_it_names() {
    let (server, keys) = phones(vec![Tenant { requests_per_minute: 2, ..Tenant::with(PermissionSet(u64::MAX)) }]).await;
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_devices"}}).to_string();
    let call = async || outcome(&server.send(&keys[0][0], body.clone()).await.1);
    assert!(call().await.is_ok() && call().await.is_ok());
    let limited = call().await.expect_err("the budget is spent");
    assert_eq!((&limited["code"], &limited["retryable"]), (&json!("rate_limited"), &json!(true)));
    let wait = limited["retry_after_seconds"].as_u64().expect("seconds");
    server.clock.advance(std::time::Duration::from_secs(wait));
    call().await.expect("there is room again");
}
