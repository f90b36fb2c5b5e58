//! Phones behind an adb server, through the whole program: list, restart, refund, and the check.

use super::{Site, end, list_all, until};
use crate::doubles::adb::{AdbDouble, PhoneMood};
use crate::harness::program::steady;
use serde_json::{Value, json};

const PHONES: [&str; 5] = ["emulator-5554", "192.0.2.7:5555", "old", "locked", "spare"];

/// Starts a double, and returns it with the configuration of a site.
async fn rack() -> (AdbDouble, String) {
    let double = AdbDouble::start(PHONES.map(str::to_owned)).await;
    let only = r#"["emulator-*", "192.0.2.7:5555", "old", "locked", "missing"]"#;
    let config = format!(
        "[platform.rack]\nkind = \"adb\"\nserver = \"{}\"\nonly = {only}\nnames = {{ emulator-5554 = \"Anna\" }}\n\
         region = \"desk\"\npower-seconds = 1\n",
        double.address
    );
    (double, config)
}

fn restart(id: &str) -> Value {
    json!({"device_id": id, "action": "restart"})
}

fn ends(task: &Value) -> [&Value; 2] {
    [&task["status"], &task["evidence"]["reported"]]
}

#[tokio::test]
async fn a_restart_goes_through_the_whole_house() {
    let (double, config) = rack().await;
    double.set_mood("old", PhoneMood::IsOld);
    double.set_state("locked", "unauthorized");
    let site = Site::new();
    site.configure(&config);
    let mut program = site.start(PHONES.len(), &[]).await;
    let mut shown = list_all(&program).await;
    for id in ["rack-emulator-5554", "rack-locked"] {
        shown.push(program.call("get_device", json!({"device_id": id})).await.expect("it is known"));
    }
    insta::assert_snapshot!("list", format!("{:#}", json!(shown)));

    // The first restart shows that the reading follows.
    let task = end(&program, "set_power", restart("rack-emulator-5554")).await;
    assert_eq!(ends(&task), [&json!("success"), &json!("success")], "{task}");
    assert_eq!((double.restarts("emulator-5554"), site.ledger().get("refund")), (1, None));
    double.set_mood("emulator-5554", PhoneMood::Swallows);
    let task = end(&program, "set_power", restart("rack-emulator-5554")).await;
    assert_eq!(ends(&task), [&json!("failed_silent"), &json!("success")], "{task}");
    assert_eq!((double.restarts("emulator-5554"), site.ledger().get("refund")), (1, Some(&1)));

    // A phone that takes the connection and says nothing was not told to go.
    let charged = |site: &Site| {
        let ledger = site.ledger();
        let count = |kind: &str| ledger.get(kind).copied().unwrap_or_default();
        count("charge") - count("reversal")
    };
    let before = charged(&site);
    double.set_mood("192.0.2.7:5555", PhoneMood::SilentToCommands);
    let task = end(&program, "set_power", restart("rack-192-0-2-7-5555")).await;
    assert_eq!((ends(&task), charged(&site)), ([&json!("failed"), &json!("not_sent")], before), "{task}");
    assert_eq!(double.restarts("192.0.2.7:5555"), 0);
    for (tool, arguments) in [
        ("set_power", json!({"device_id": "rack-emulator-5554", "action": "shutdown"})),
        ("clear_proxy", json!({"device_id": "rack-emulator-5554"})),
        ("set_power", restart("rack-locked")),
    ] {
        let refused = program.call(tool, arguments).await.expect_err("it is not offered");
        assert_eq!(refused["retryable"], false, "{tool}: {refused}");
    }
    program.stop().await;
}

#[tokio::test]
async fn a_check_names_each_phone_that_is_not_served_with_its_reason_and_a_server_that_is_gone() {
    let (double, config) = rack().await;
    double.set_mood("old", PhoneMood::IsOld);
    double.set_state("locked", "unauthorized");
    let site = Site::new();
    site.configure(&config);
    let address = double.address.to_string();
    let told = |text: &str| {
        let text = steady(text, site.home.path()).replace(&address, "SERVER");
        text.lines().filter(|line| !line.starts_with("TIME ")).collect::<Vec<_>>().join("\n")
    };
    let (code, text) = site.operate("platform check rack").await;
    let mut transcript = format!("exit {code}\n{}\n\n", told(&text));
    drop(double);
    let (code, text) = site.operate("platform check rack").await;
    transcript += &format!("exit {code}\n{}\n", told(&text));
    insta::assert_snapshot!(transcript);
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again_and_phones_keep_their_ids_meanwhile() {
    let (double, config) = rack().await;
    let address = double.address;
    let site = Site::new();
    site.configure(&config);
    let program = site.start(PHONES.len(), &[]).await;
    let ids = async || list_all(&program).await.iter().map(|phone| phone["device_id"].clone()).collect::<Vec<_>>();
    let count = async |state: &str| list_all(&program).await.iter().filter(|phone| phone["state"] == state).count();
    let known = ids().await;
    until(async || count("running").await == 4).await;
    drop(double);
    // The server shows a reading for two seconds.
    let phone = json!({"device_id": "rack-emulator-5554"});
    until(async || program.call("get_device", phone.clone()).await.expect("it is known")["state"] == "unknown").await;
    let refused = program.call("set_power", restart("rack-emulator-5554")).await.expect_err("it cannot be sent");
    assert_eq!((&refused["code"], site.ledger().len()), (&json!("upstream_unavailable"), 0), "{refused}");
    until(async || count("unknown").await == PHONES.len()).await;
    let _double = AdbDouble::start_at(address, PHONES.map(str::to_owned)).await;
    until(async || count("running").await == 4).await;
    assert_eq!(ids().await, known);
}

#[tokio::test]
async fn a_store_that_replicas_share_is_refused_by_name() {
    let (_double, config) = rack().await;
    let site = Site::new();
    site.configure(&config);
    let (code, said) = site.operate("serve --listen 127.0.0.1:0 --store postgres://127.0.0.1:1/x").await;
    assert!(code == 2 && said.contains("are behind the adb server of this machine alone"), "{code} {said}");
}

#[tokio::test]
async fn each_mistake_in_a_table_has_its_place_and_its_remedy() {
    let site = Site::new();
    site.configure(
        "[platform.far]\nkind = \"adb\"\nserver = \"192.0.2.7:5037\"\nonly = [\"model:Pixel\", \"a\"]\n\
         names = { b = \"Anna\" }\n[platform.bare]\nkind = \"adb\"\nconnect = [\"192.0.2.7\"]\n",
    );
    let (code, text) = site.operate("config check").await;
    insta::assert_snapshot!(format!("exit {code}\n{}", steady(&text, site.home.path())));
}
