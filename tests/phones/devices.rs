//! Devices as clients see them, the writes that their flags allow, and sessions on their screens.

use crate::harness::writes::{ledger, phone, power, proxy};
use crate::harness::{Key, Server, cast, open_phones};
use cloudphone::phones::contract::DeviceId;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

async fn list(server: &Server, key: &Key) -> Vec<Value> {
    let page = server.call(key, "list_devices", json!({"limit": 200})).await.expect("a page");
    page["devices"].as_array().expect("devices").clone()
}

async fn device(server: &Server, key: &Key, number: u32) -> Value {
    server.call(key, "get_device", json!({"device_id": phone(number)})).await.expect("a device")
}

#[tokio::test]
async fn every_device_is_read_by_an_id_of_its_own_and_has_the_three_flags() {
    let (server, key, _) = cast().await;
    let devices = list(&server, &key).await;
    let ids: BTreeSet<_> = devices.iter().map(|device| device["device_id"].to_string()).collect();
    assert_eq!((ids.len(), devices.len()), (23, 23));
    for listed in devices {
        let read = server.call(&key, "get_device", json!({"device_id": listed["device_id"]})).await.expect("a device");
        assert_eq!(read["device_id"], listed["device_id"]);
        for shown in [listed, read] {
            let flags = shown["capabilities"].as_object().expect("an object");
            assert_eq!(flags.keys().collect::<Vec<_>>(), ["proxy", "power", "session"], "{shown}");
            assert!(flags.values().all(Value::is_boolean), "{shown}");
        }
    }
}

#[tokio::test]
async fn state_and_flags_follow_what_the_device_is_and_offers_at_present() {
    let (server, key, _) = cast().await;
    let shown = async || {
        let shown = device(&server, &key, 2).await;
        (shown["state"].clone(), shown["capabilities"]["proxy"].clone())
    };
    assert_eq!(shown().await, (json!("stopped"), json!(false)));
    let task = server.call(&key, "set_power", power(2, "boot")).await.expect("accepted");
    assert_eq!(server.end(&key, &task["task_id"]).await["status"], "success");
    assert_eq!(shown().await, (json!("running"), json!(true)));
}

#[tokio::test]
async fn a_device_whose_state_cannot_be_read_is_unknown_and_neither_hidden_nor_refused() {
    let (server, key, _) = cast().await;
    assert!(
        list(&server, &key).await.iter().any(|device| device["device_id"] == phone(4) && device["state"] == "unknown")
    );
    let shown = device(&server, &key, 4).await;
    assert_eq!((&shown["state"], &shown["capabilities"]["proxy"]), (&json!("unknown"), &json!(true)));
    server.call(&key, "create_session", json!({"device_id": phone(4)})).await.expect("a session");
    server.call(&key, "clear_proxy", json!({"device_id": phone(4)})).await.expect("accepted");
}

/// The flag decides, and the state does not matter.
#[tokio::test]
async fn the_flag_and_never_the_state_decides_what_is_let_through() {
    let (server, key, _) = cast().await;
    for (number, state, offered) in [(2, "stopped", true), (4, "unknown", true), (6, "running", false)] {
        let shown = device(&server, &key, number).await;
        assert_eq!((&shown["state"], &shown["capabilities"]["power"]), (&json!(state), &json!(offered)));
        let outcome = server.call(&key, "set_power", power(number, "boot")).await;
        assert_eq!(outcome.is_ok(), offered, "{state}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_call_against_a_false_flag_is_refused_and_nothing_is_sent_or_charged() {
    let (server, key, sim) = cast().await;
    let calls = [
        (5, "set_proxy", proxy(5, "k")),
        (5, "clear_proxy", json!({"device_id": phone(5)})),
        (6, "set_power", power(6, "boot")),
        (7, "create_session", json!({"device_id": phone(7)})),
    ];
    for (number, tool, arguments) in calls {
        let refused = server.call(&key, tool, arguments).await.expect_err("the flag is false");
        assert_eq!((&refused["code"], &refused["retryable"]), (&json!("not_supported"), &json!(false)), "{tool}");
        server.clock.advance(Duration::from_secs(60));
        let id = DeviceId::new(&phone(number)).expect("an id");
        assert!(sim.deeds_of(&id).is_empty(), "{tool}");
    }
    assert_eq!((server.engine.in_flight(), ledger(&server).await.len()), (0, 0));
}

#[tokio::test]
async fn get_device_shows_the_spec_of_the_device() {
    let (server, key) = open_phones().await;
    let spec = device(&server, &key, 1).await["spec"].take();
    for member in ["model", "os_version", "region"] {
        assert!(spec[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {spec}");
    }
    for number in [&spec["cpu_cores"], &spec["memory_mb"], &spec["storage_gb"], &spec["screen"]["width_px"]] {
        assert!(number.as_u64().is_some_and(|number| number > 0), "{spec}");
    }
}

#[tokio::test]
async fn a_session_says_when_it_ends_or_null_where_the_platform_does_not_say() {
    let (server, key) = open_phones().await;
    let expires_at = async |number| {
        let session =
            server.call(&key, "create_session", json!({"device_id": phone(number)})).await.expect("a session");
        session.get("expires_at").expect("there in either case").clone()
    };
    // The clock stands at 2027-01-15T08:00:00Z.
    assert_eq!(expires_at(1).await, "2027-01-15T08:10:00.000Z");
    assert_eq!(expires_at(11).await, Value::Null);
}

#[tokio::test]
async fn each_call_of_create_session_issues_a_token_of_its_own() {
    let (server, key) = open_phones().await;
    let mut tokens = BTreeSet::new();
    for _ in 0..3 {
        let session = server.call(&key, "create_session", json!({"device_id": phone(11)})).await.expect("a session");
        tokens.insert(session["token"].as_str().expect("a token").to_owned());
    }
    assert_eq!(tokens.len(), 3);
}
