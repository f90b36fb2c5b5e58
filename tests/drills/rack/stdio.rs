//! `stdio --adb` in front of a real adb server, as a host starts it.

use super::{PLATFORMS, RackOptions, options, restart};
use crate::harness::bridge::Bridge;
use crate::harness::outcome;
use crate::wire::bridge::call;
use crate::wire::bridge::stdio::begin;
use kit::{Rack, RackPhone};
use serde_json::json;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

#[tokio::test]
#[ignore = "needs root and Debian: cargo xtask drill rack"]
async fn a_host_restarts_a_phone_after_one_command() {
    let (home, (_, release, port)) = (TempDir::new().expect("a temporary folder"), PLATFORMS[1]);
    let RackOptions { roots, .. } = options();
    let rack = Rack::new(&roots, home.path()).expect("a network: `cargo xtask drill rack` makes it");
    let phones = [rack.start_phone(1).await.expect("a phone"), rack.start_phone(2).await.expect("a phone")];
    let _server = rack.start_server(release, port, &phones.each_ref()).await.expect("a server");
    let begun = Instant::now();
    let mut bridge = Bridge::over_stdio_with_adb(port, home.path(), &["--adb"]);
    begin(&mut bridge).await;
    println!("{:>8}  milliseconds until `initialize` and `tools/list` are answered", begun.elapsed().as_millis());
    let list = call("list", "list_devices", json!({"state": "running"}));
    let phone = loop {
        let listed = bridge.ask(&list).await;
        println!("{:>8}  milliseconds until {}", begun.elapsed().as_millis(), listed["result"]["structuredContent"]);
        match outcome(&listed).ok().and_then(|page| page["devices"][0]["device_id"].as_str().map(str::to_owned)) {
            Some(phone) => break phone,
            None => sleep(Duration::from_millis(500)).await,
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{listed}");
    };
    let task = outcome(&bridge.ask(call("write", "set_power", restart(&phone))).await).expect("accepted");
    let poll = json!({"task_id": task["task_id"], "wait_seconds": 50});
    let ended = outcome(&bridge.ask(call("poll", "get_task", poll)).await).expect("a task");
    println!("{:>8}  milliseconds until the restart is proven", begun.elapsed().as_millis());
    assert_eq!(ended["status"], "success", "{ended}");
    let restarts = phones.iter().map(|phone: &RackPhone| phone.count_commands().expect("a journal"));
    assert_eq!(restarts.sum::<usize>(), 1);
    assert!(bridge.end().await.1.success());
}
