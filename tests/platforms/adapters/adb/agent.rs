//! An agent that sees and touches phones behind an adb server, against the double, whose pictures
//! change by themselves, late, or not at all.

use super::{Rack, rack};
use crate::harness::{Key, Server, Tenant, serve_service};
use adapter_suite::Double as _;
use cloudphone::OwnFlags;
use cloudphone::phones::platforms::Platforms;
use cloudphone::platforms::adb::AdbPrograms;
use serde_json::{Value, json};
use std::sync::Arc;
use toolwarrant::Setup;
use toolwarrant::contract::PermissionSet;

struct RackAgent {
    rack: Arc<Rack>,
    server: Server,
    key: Key,
}

impl RackAgent {
    async fn new() -> Self {
        // The last phone shows that the machine has time for others.
        let rack = rack(2, false).await;
        let compose = |Setup { clock, passes, .. }: Setup<'_, ()>| {
            let adapter = Arc::new(rack.build(&clock, AdbPrograms::default()).with_screens(true));
            rack.run(adapter.keep_fresh());
            let _ = rack.adapter.set(adapter.clone());
            let own = OwnFlags { allow_private_proxy: None, screen_minutes: 30 };
            let platforms = Arc::new(Platforms::default().with(rack.name(), adapter));
            cloudphone::service(platforms, own, clock, passes)
        };
        let (server, mut keys) = serve_service(&["screen"], compose, vec![Tenant::with(PermissionSet(u64::MAX))]).await;
        rack.wait_until_listed().await;
        Self { rack, server, key: keys.remove(0).remove(0) }
    }

    async fn set(&self, switches: Value) {
        self.rack.platform.switch(Some(&self.rack.codes[0]), &switches).await;
    }

    async fn call(&self, tool: &str, mut arguments: Value) -> Value {
        arguments["device_id"] = self.rack.id(&self.rack.codes[0]).as_str().into();
        let passing = async {
            loop {
                self.rack.pass(&self.server.clock).await;
            }
        };
        tokio::select! {
            ended = self.server.call(&self.key, tool, arguments) => ended.unwrap_or_else(|failure| failure),
            () = passing => unreachable!("time does not end"),
        }
    }

    async fn touch(&self, x: u32, y: u32) -> Value {
        self.call("touch", json!({"x": x, "y": y, "width": 90, "height": 160})).await
    }

    /// Returns the lines of the journal in which a word stands.
    async fn count(&self, word: &str) -> usize {
        self.rack.platform.lines().await.iter().filter(|line| line.to_string().contains(word)).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_seen_after_an_input_is_what_the_phone_showed() {
    let agent = RackAgent::new().await;
    let listed = agent.call("elements", json!({})).await;
    let icon = json!({"kind": "text", "label": "Settings", "on": null, "x": 67, "y": 100});
    assert_eq!((&listed["elements"], &listed["width"], &listed["height"]), (&json!([icon]), &json!(90), &json!(160)));
    assert_eq!(agent.touch(67, 100).await["seen"], "changed");
    let switch = agent.call("elements", json!({})).await["elements"][0].clone();
    assert_eq!((&switch["kind"], &switch["on"]), (&json!("switch"), &json!(true)));
    assert_eq!(agent.touch(45, 30).await["seen"], "changed");
    assert_eq!(agent.call("elements", json!({})).await["elements"][0]["on"], false);
    assert_eq!(agent.touch(45, 150).await["seen"], "unchanged", "nothing is there");

    agent.set(json!({"screen_late_ms": 3_600_000})).await;
    assert_eq!(agent.touch(45, 30).await["seen"], "unchanged", "the effect is late");
    agent.set(json!({"screen_moves_ms": 1})).await;
    assert_eq!(agent.touch(45, 30).await["seen"], "moving");
    let restless = agent.call("elements", json!({})).await;
    assert_eq!(restless["elements"], json!([]));
    assert!(restless["next_step"].as_str().is_some_and(|text| text.contains("did not come to rest")), "{restless}");
    for (fault, reason) in [("black", "secure"), ("half", "broken"), ("no_picture", "broken"), ("asleep", "asleep")] {
        agent.set(json!({"screen_fault": fault})).await;
        let pressed = agent.call("press", json!({"key": "home"})).await;
        assert_eq!((&pressed["seen"], &pressed["reason"]), (&json!("unreadable"), &json!(reason)), "{pressed}");
        let touched = agent.touch(45, 30).await;
        let code = if fault == "black" { &touched["seen"] } else { &touched["code"] };
        assert_eq!(code, if fault == "black" { "unreadable" } else { "screen_unreadable" }, "{touched}");
    }
    agent.set(json!({"shell": "hangs"})).await;
    // A list may find the phone silent before a picture does.
    let silent = agent.call("look", json!({})).await;
    assert!(silent["code"] == "screen_unreadable" || silent["code"] == "upstream_unavailable", "{silent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_opens_and_types_is_no_command_of_a_phone() {
    let agent = RackAgent::new().await;
    let address = "https://example.com/$(reboot)`id`?a=1&b=sesame|\"";
    assert_eq!(agent.call("open", json!({"what": address})).await["seen"], "changed");
    let opened = "https://example.com/$(reboot)%60id%60?a=1&b=sesame|%22";
    assert_eq!(agent.count(&format!("\"am\",\"pad\":\"{}\"", agent.rack.codes[0])).await, 1);
    assert_eq!(agent.count(opened).await, 1, "it is given to `am` as it is, and stands in no command");
    assert_eq!(agent.call("type_text", json!({"text": "a b'$(reboot)"})).await["seen"], "changed");
    let refused = agent.call("type_text", json!({"text": "sésame"})).await;
    assert_eq!(refused["code"], "not_offered", "{refused}");
    assert_eq!(agent.call("open", json!({"what": "com.android.settings"})).await["seen"], "changed");
    let missing = agent.call("open", json!({"what": "com.example.nothing"})).await;
    assert_eq!(missing["code"], "not_offered", "{missing}");
    assert_eq!(agent.count("reboot,").await, 0);
    for hostile in
        ["<hierarchy>", "", "<!DOCTYPE a [<!ENTITY b \"c\">]><hierarchy>&b;</hierarchy>", &"<n>".repeat(400_000)]
    {
        agent.set(json!({"screen_list": hostile})).await;
        let listed = agent.call("elements", json!({})).await;
        assert_eq!(listed["code"], "screen_unreadable", "{listed}");
    }
    // The last list is longer than the server reads, so the phone cannot send the whole of it.
    let find = "for f in /data/local/tmp/.cloudphone-*;do [ -e $f ]||f=none;echo $f;done";
    let removed = kit::wait_for(async || match agent.rack.run_on_phone(find).await {
        found if found.contains("none") => Ok(()),
        found => Err(found),
    });
    removed.await.expect("no list stays on the phone");
    let typing = kit::wait_for(async || {
        agent.set(json!({"shell": {"value": "fails", "endpoint": "shell"}})).await;
        let before = agent.count("\"input\",\"pad\"").await;
        let typed = agent.call("type_text", json!({"text": "open-sesame"})).await;
        agent.set(json!({})).await;
        if typed["code"] != "upstream_unavailable" {
            return Ok(typed);
        }
        // A list has found the phone silent first. A later one finds it again.
        assert_eq!(agent.count("\"input\",\"pad\"").await, before, "nothing was sent");
        agent.rack.pass(&agent.server.clock).await;
        Err(typed.to_string())
    });
    let failed = typing.await.expect("the phone is found again");
    assert_eq!((&failed["code"], &failed["retryable"]), (&json!("outcome_unknown"), &json!(false)), "{failed}");
    let audit = agent.server.audit().await;
    assert!(!audit.contains("open-sesame") && !audit.contains("a b'"), "{audit}");
}
