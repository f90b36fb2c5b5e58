//! The seven tools, one by one: the permission that each needs, and its answer.

use crate::harness::writes::{power, proxy};
use crate::harness::{Key, Server, Tenant, base_tools, cast, every_permission_set, mute_phones, phones};
use cloudphone::phones::contract::CATALOGUE as PHONES;
use serde_json::{Value, json};

const DEVICE: &str = "phone-0000001";

struct Keys {
    server: Server,
    keys: Vec<(Vec<String>, Key)>,
}

async fn keys() -> Keys {
    let sets = every_permission_set(&PHONES);
    let (server, keys) = phones(sets.iter().map(|(_, set)| Tenant::with(*set)).collect()).await;
    let names = sets.iter().map(|(names, _)| names.split('+').map(str::to_owned).collect());
    Keys { server, keys: names.zip(keys.into_iter().map(|mut keys| keys.remove(0))).collect() }
}

impl Keys {
    /// Expects a refusal of every key without one of these permissions.
    async fn needs(&self, permissions: &[&str], tool: &str, arguments: Value) -> Value {
        let mut answered = None;
        for (granted, key) in &self.keys {
            let may = granted.iter().any(|name| permissions.contains(&&**name));
            match self.server.call(key, tool, arguments.clone()).await {
                Ok(answer) => {
                    assert!(may, "{tool} with {granted:?}: {answer}");
                    answered.get_or_insert(answer);
                }
                // A target takes one write at a time, and another key's write may be in flight.
                Err(failure) => {
                    assert_eq!(failure["code"], if may { "device_busy" } else { "forbidden" }, "{granted:?}")
                }
            }
        }
        answered.expect("a key that may")
    }
}

/// `device` implies `device_read`.
const READS: &[&str] = &["device_read", "device"];

#[tokio::test]
async fn each_tool_needs_its_permission_and_answers_with_its_result() {
    let keys = keys().await;
    let on = json!({"device_id": DEVICE});
    let reads: [(&[&str], _, _, &[&str]); 3] = [
        (READS, "list_devices", json!({}), &["/devices/11/state", "/devices/11/capabilities"]),
        (READS, "get_device", on.clone(), &["/device_id", "/state", "/spec", "/capabilities"]),
        (&["stream"], "create_session", on.clone(), &["/token", "/expires_at"]),
    ];
    for (permissions, tool, arguments, members) in reads {
        let answer = keys.needs(permissions, tool, arguments).await;
        assert!(members.iter().all(|member| answer.pointer(member).is_some()), "{answer}");
        assert!(answer.get("task_id").is_none(), "{answer}");
    }
    let (_, writer) = keys.keys.last().expect("all permissions");
    let write = keys.server.call(writer, "set_power", power(1, "restart")).await.expect("accepted");
    let task = keys.needs(READS, "get_task", json!({"task_id": write["task_id"], "wait_seconds": 0})).await;
    let shown = (&task["task_id"], &task["status"], &task["terminal"]);
    assert_eq!(shown, (&write["task_id"], &json!("dispatched"), &json!(false)));
    for (tool, arguments) in [
        ("set_proxy", proxy(1, "k")),
        ("clear_proxy", on),
        ("set_power", power(1, "boot")),
        ("set_power", power(1, "shutdown")),
        ("set_power", power(1, "restart")),
    ] {
        let answer = self::keys().await.needs(&["device"], tool, arguments).await;
        assert!(answer["task_id"].as_str().is_some_and(|id| id.starts_with("task_")), "{answer}");
        assert_eq!((&answer["tool"], &answer["device_id"]), (&json!(tool), &json!(DEVICE)));
    }
}

#[tokio::test]
async fn writes_do_on_the_device_what_they_say() {
    let (server, key, _) = cast().await;
    let shown = async || server.call(&key, "get_device", json!({"device_id": DEVICE})).await.expect("a device");
    let endpoint = json!({"scheme": "http", "host": "proxy.example.com", "port": 8080});
    // The host that is used is the one that was checked, in its canonical spelling.
    let mut proxied = proxy(1, "k");
    proxied["host"] = "Proxy.Example.COM.".into();
    let writes = [
        ("set_proxy", proxied, "proxy", endpoint),
        ("clear_proxy", json!({"device_id": DEVICE}), "proxy", Value::Null),
        ("set_power", power(1, "shutdown"), "state", json!("stopped")),
        ("set_power", power(1, "boot"), "state", json!("running")),
    ];
    for (tool, arguments, member, expected) in writes {
        let task = server.call(&key, tool, arguments).await.expect("accepted");
        server.end(&key, &task["task_id"]).await;
        assert_eq!(shown().await[member], expected, "{tool}");
    }
    let task = server.call(&key, "set_power", power(1, "restart")).await.expect("accepted");
    assert_eq!(server.end(&key, &task["task_id"]).await["evidence"]["checked"], "boot_id", "it has started anew");
}

#[tokio::test]
async fn a_write_is_answered_with_a_dispatched_task_while_nothing_is_known_of_its_outcome() {
    let everything = Tenant::with(toolwarrant_core::catalogue::PermissionSet(u64::MAX));
    let (server, keys) = mute_phones(vec![everything]).await;
    let task = server.call(&keys[0][0], "set_power", power(1, "restart")).await.expect("accepted");
    assert!(task["task_id"].is_string(), "{task}");
    assert_eq!((&task["status"], &task["terminal"]), (&json!("dispatched"), &json!(false)));
    assert_eq!(server.engine.in_flight(), 1);
}

const SEVEN: [&str; 7] =
    ["clear_proxy", "create_session", "get_device", "get_task", "list_devices", "set_power", "set_proxy"];

#[tokio::test]
async fn a_key_with_device_alone_can_read_and_no_other_permission_brings_one() {
    let keys = keys().await;
    for (granted, tools) in [
        ("device", "list_devices get_device set_power set_proxy clear_proxy get_task"),
        ("device_read", "list_devices get_device get_task"),
        ("stream", "create_session"),
    ] {
        let (_, key) = keys.keys.iter().find(|(names, _)| *names == [granted]).expect("that set");
        let listed = keys.server.list(key).await;
        let names = listed.iter().map(|tool| tool["name"].as_str().expect("a name"));
        let names: Vec<_> = names.filter(|name| SEVEN.contains(name)).collect();
        assert_eq!(names.join(" "), tools, "{granted}");
    }
    assert_eq!(PHONES.permissions.len(), 3);
}

#[tokio::test]
async fn a_key_that_may_do_everything_is_shown_the_seven_tools_without_a_prefix() {
    let keys = keys().await;
    let (_, key) = keys.keys.last().expect("all permissions");
    let names: Vec<_> = keys.server.list(key).await.iter().map(|tool| tool["name"].clone()).collect();
    assert!(SEVEN.iter().all(|tool| names.iter().any(|name| name == tool)), "{names:?}");
    assert!(names.iter().eq(base_tools(&PHONES).map(|tool| tool.name)), "{names:?}");
}

#[tokio::test]
async fn listing_tools_touches_no_device() {
    let (server, key, sim) = cast().await;
    let listed = server.list(&key).await;
    sim.cut();
    server.clock.advance(std::time::Duration::from_secs(3));
    let unreachable = server.call(&key, "get_device", json!({"device_id": DEVICE})).await.expect_err("it is cut off");
    assert_eq!(unreachable["code"], "upstream_unavailable");
    assert_eq!(server.list(&key).await, listed);
}
