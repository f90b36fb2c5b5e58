//! An agent that sees and touches: the toolset `screen`, on simulated phones.

use crate::harness::writes::{phone, proxy};
use crate::harness::{Key, Server, Tenant, alone, every_permission_set, open_phones, read, serve_service};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cloudphone::OwnFlags;
use cloudphone::phones::contract::{CATALOGUE, DeviceId, Permission};
use cloudphone::phones::port::WritePort;
use cloudphone::platforms::simulator::Sim;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use toolwarrant::Setup;
use toolwarrant::contract::PermissionSet;

const OF_SCREEN: [&str; 6] = ["look", "elements", "touch", "type_text", "press", "open"];

async fn serve(tenants: Vec<Tenant>) -> (Server, Vec<Key>, Arc<Sim>) {
    let mut kept = None;
    let compose = |Setup { clock, passes, .. }: Setup<'_, ()>| {
        let sim = Arc::new(Sim::new(1, 12, clock.clone(), &[1; 32]));
        kept = Some(sim.clone());
        let own = OwnFlags { allow_private_proxy: None, screen_minutes: 30 };
        cloudphone::service(alone(sim), own, clock, passes)
    };
    let (server, keys) = serve_service(&["screen"], compose, tenants).await;
    (server, keys.into_iter().map(|mut keys| keys.remove(0)).collect(), kept.expect("it was made"))
}

struct ScreenAgent {
    server: Server,
    key: Key,
    /// Of another application that sees the same phones.
    other: Key,
    sim: Arc<Sim>,
}

impl ScreenAgent {
    async fn new() -> Self {
        let tenant = || Tenant::with(PermissionSet(u64::MAX));
        let (server, mut keys, sim) = serve(vec![tenant(), tenant()]).await;
        Self { server, other: keys.remove(1), key: keys.remove(0), sim }
    }

    /// Returns the whole result of a call during which time passes.
    async fn ask(&self, tool: &str, mut arguments: Value) -> Value {
        arguments["device_id"] = phone(1).into();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let request = self.server.post(&self.key).body(body.to_string());
        let answer = async { read(request.send().await.expect("an answer")).await.1["result"].take() };
        let passing = async {
            loop {
                sleep(Duration::from_millis(2)).await;
                self.server.clock.advance(Duration::from_millis(100));
            }
        };
        tokio::select! {
            answer = answer => answer,
            () = passing => unreachable!("time does not end"),
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask(tool, arguments).await;
        serde_json::from_str(answer["content"][0]["text"].as_str().expect("text")).expect("JSON")
    }

    async fn element(&self, label: &str) -> Value {
        let listed = self.call("elements", json!({})).await;
        let mut elements = listed["elements"].as_array().expect("elements").iter();
        let is_named = |element: &&Value| element["label"] == label && element["kind"] != "text";
        let mut found = elements.find(is_named).unwrap_or_else(|| panic!("{label}: {listed}")).clone();
        (found["width"], found["height"]) = (listed["width"].clone(), listed["height"].clone());
        found
    }

    /// Calls a tool that sees this. If the call takes so long that the clock in the picture shows
    /// the next minute, that is a change, too.
    async fn see(&self, tool: &str, arguments: Value, expected: &str) -> Value {
        const MINUTE: u64 = 60_000;
        let now = || self.server.clock.now().0;
        self.server.clock.advance(Duration::from_millis(MINUTE - now() % MINUTE));
        let next = now() + MINUTE;
        let answer = self.call(tool, arguments).await;
        let is_other = answer["seen"] == "changed" || answer["seen"] == "moving";
        assert!(answer["seen"] == expected || (now() >= next && is_other), "{answer}");
        answer
    }

    async fn see_after_touch(&self, at: &Value, expected: &str) -> Value {
        let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| at[name].clone());
        self.see("touch", json!({"x": x, "y": y, "width": width, "height": height}), expected).await
    }

    async fn sleep_or_wake(&self) {
        let (id, power) = (DeviceId::new(&phone(1)).expect("an id"), json!({"key": "power"}));
        let input = serde_json::from_value(power).expect("an input");
        self.sim.screen(&id).expect("a screen").input(&id, &input).await.expect("taken");
    }
}

#[tokio::test]
async fn an_agent_switches_the_proxy_off_by_what_it_sees_and_sees_that_it_is_off() {
    let agent = ScreenAgent::new().await;
    let task = agent.server.call(&agent.other, "set_proxy", proxy(1, "k")).await.expect("accepted");
    let busy = agent.call("press", json!({"key": "home"})).await;
    assert_eq!((&busy["code"], &busy["task_id"]), (&json!("device_busy"), &task["task_id"]), "{busy}");
    assert!(busy["retry_after_seconds"].is_u64() && busy["retryable"] == true, "{busy}");
    agent.server.end(&agent.other, &task["task_id"]).await;

    let opened = agent.see_after_touch(&agent.element("Settings").await, "changed").await;
    assert_eq!(opened["reason"], Value::Null, "{opened}");
    let switch = agent.element("Proxy").await;
    assert_eq!((&switch["kind"], &switch["on"]), (&json!("switch"), &json!(true)));
    agent.see_after_touch(&switch, "changed").await;
    assert_eq!(agent.element("Proxy").await["on"], false);
    let device = agent.server.call(&agent.key, "get_device", json!({"device_id": phone(1)})).await.expect("a device");
    assert_eq!(device["proxy"], Value::Null);

    // By the picture alone: the middle of the switch in a smaller one.
    let look = agent.ask("look", json!({"longest_side": 256})).await;
    let shown = &look["content"][1];
    assert_eq!((&shown["type"], &shown["mimeType"]), (&json!("image"), &json!("image/png")), "{look}");
    let picture = STANDARD.decode(shown["data"].as_str().expect("text")).expect("base64");
    assert_eq!(picture[16..24], [0, 0, 0, 144, 0, 0, 1, 0], "the width and the height");
    let small = json!({"x": 119, "y": 55, "width": 144, "height": 256});
    agent.see_after_touch(&small, "changed").await;
    assert_eq!(agent.element("Proxy").await["on"], true);
}

#[tokio::test]
async fn an_answer_says_what_was_seen_and_not_what_an_input_did() {
    let agent = ScreenAgent::new().await;
    let home = json!({"x": 5, "y": 5, "width": 360, "height": 640});
    agent.see_after_touch(&home, "unchanged").await;
    let turned = agent.call("touch", json!({"x": 5, "y": 5, "width": 640, "height": 360})).await;
    assert_eq!((&turned["code"], &turned["retryable"]), (&json!("other_picture"), &json!(false)), "{turned}");
    assert!(turned["message"].as_str().is_some_and(|text| text.contains("`look`")), "{turned}");
    let outside = agent.call("touch", json!({"x": 360, "y": 5, "width": 360, "height": 640})).await;
    assert_eq!(outside["code"], "invalid_argument", "{outside}");
    agent.see("open", json!({"what": "com.example.notes"}), "changed").await;
    for (what, code) in [
        ("com.android.nothing", "not_offered"),
        ("https://example.com/", "not_offered"),
        ("http://example.com/", "invalid_argument"),
        ("file:///etc/passwd", "invalid_argument"),
        ("a.b;reboot", "invalid_argument"),
    ] {
        let answer = agent.call("open", json!({"what": what})).await;
        assert_eq!(answer["code"], code, "{what}: {answer}");
    }
    agent.see("type_text", json!({"text": "open-sesame"}), "changed").await;
    assert_eq!(agent.element("open-sesame").await["kind"], "field");
    let broken = agent.call("type_text", json!({"text": "a\u{7}"})).await;
    assert_eq!(broken["code"], "invalid_argument", "{broken}");
    agent.see("press", json!({"key": "back"}), "changed").await;

    agent.sleep_or_wake().await;
    let look = agent.call("look", json!({})).await;
    assert_eq!(look["code"], "screen_unreadable", "{look}");
    assert!(look["message"].as_str().is_some_and(|text| text.contains("`asleep`")), "{look}");
    let asleep = agent.call("press", json!({"key": "home"})).await;
    assert_eq!((&asleep["seen"], &asleep["reason"]), (&json!("unreadable"), &json!("asleep")), "{asleep}");
    agent.see("press", json!({"key": "wake"}), "changed").await;
    let audit = agent.server.audit().await;
    assert_eq!((audit.contains("sesame"), audit.matches("\"type_text\"").count()), (false, 2), "{audit}");
    assert!(audit.contains(r#""x":5"#) && !audit.contains("iVBOR"), "{audit}");
}

#[tokio::test]
async fn the_toolset_adds_tools_for_keys_with_stream_and_changes_nothing_else() {
    let sets = every_permission_set(&CATALOGUE);
    let (server, keys, _) = serve(sets.iter().map(|(_, set)| Tenant::with(*set)).collect()).await;
    let (plain, whole) = open_phones().await;
    let without = plain.list(&whole).await;
    for ((names, set), key) in sets.iter().zip(&keys) {
        let may = set.covers(Permission::Stream.bit());
        let listed = server.list(key).await;
        let is_of_screen = |tool: &&Value| OF_SCREEN.iter().any(|name| tool["name"] == *name);
        assert_eq!(listed.iter().filter(is_of_screen).count(), if may { 6 } else { 0 }, "{names}");
        for tool in listed.iter().filter(|tool| !is_of_screen(tool)) {
            assert!(without.contains(tool), "{names}: {tool}");
        }
        for tool in OF_SCREEN.iter().filter(|_| !may) {
            let refused = server.call(key, tool, json!({"device_id": phone(1)})).await.expect_err("refused");
            assert_eq!(refused["code"], "forbidden", "{names}: {tool}");
        }
    }
}
