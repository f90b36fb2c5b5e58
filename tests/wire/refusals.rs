//! The answer to a refused call: the shape of a failure, and its advice to the client.

use crate::harness::writes::{phone, power, proxy};
use crate::harness::{Key, Server, Tenant, cast, open_phones, phones};
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
