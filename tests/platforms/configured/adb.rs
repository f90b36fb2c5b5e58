//! Phones behind an adb server, through the whole program: list, restart, refund, and the check.

mod conditions;
mod copies;

use super::{FAST, Site, assert_nowhere, echo, end, id, list_all, until};
use crate::harness::double::Double;
use crate::harness::read;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// One of the double's phones is not served, and one that is served is missing.
const PHONES: usize = 5;

/// Puts the second phone on the network. The third is too old, and the fourth does not allow adb.
async fn rack() -> (Double, Vec<String>, String) {
    let double = Double::start(5, FAST).await;
    let codes = double.codes().await;
    let [first, second, third, fourth, _] = &codes[..] else { panic!("five phones") };
    double.switch(Some(second), &json!({"adb_state": "absent"})).await;
    double.switch(Some(third), &json!({"adb_old": true})).await;
    double.switch(Some(fourth), &json!({"adb_state": "unauthorized"})).await;
    let only = json!([format!("{first}*"), format!("{second}:5555"), third, fourth, "missing"]);
    let config = table_of(&double, &only);
    let more = format!("connect = [\"{second}:5555\"]\nnames = {{ {first} = \"Anna\" }}\nregion = \"desk\"\n");
    (double, codes, config + &more)
}

fn table_of(double: &Double, only: &Value) -> String {
    let server = double.adb();
    format!("[platform.rack]\nkind = \"adb\"\nserver = \"{server}\"\nonly = {only}\npower-seconds = 1\n")
}

fn restart(id: &str) -> Value {
    json!({"device_id": id, "action": "restart"})
}

fn ends(task: &Value) -> [&Value; 2] {
    [&task["status"], &task["evidence"]["reported"]]
}

#[tokio::test]
async fn a_proxy_and_a_shutdown_go_through_the_programs_of_the_operator() {
    let (double, codes, config) = rack().await;
    let actions = ["start", "stop", "status", "set-proxy", "clear-proxy"];
    let programs = actions.map(|action| format!("{action} = {:?}\n", double.program(action)));
    let site = Site::new();
    site.configure(&format!("{}{config}proxy-seconds = 1\n{}", echo(), programs.concat()));
    let mut program = site.start(PHONES, &[]).await;
    let device_id = id("rack", &codes[0]);
    double.switch(Some(&codes[0]), &json!({"proxy_login": "user:open-sesame", "power_ms": 100})).await;
    until(async || site.read_knowledge(&device_id)["own_address"].is_object()).await;
    let proxy = json!({
        "device_id": device_id, "scheme": "socks5", "host": "203.0.113.7", "port": 1080, "username": "user",
        "password": "open-sesame",
    });
    let calls = [
        ("set_proxy", proxy, "success"),
        ("set_power", json!({"device_id": device_id, "action": "shutdown"}), "success"),
        ("set_power", json!({"device_id": device_id, "action": "boot"}), "success"),
        ("clear_proxy", json!({"device_id": device_id}), "success_unverified"),
    ];
    for (tool, arguments, status) in calls {
        let task = end(&program, tool, arguments).await;
        assert_eq!(ends(&task), [&json!(status), &json!("success")], "{task}");
    }
    let done = double.journal("did", &codes[0]).await;
    let done: Vec<_> = done.iter().filter_map(|line| line["operation"].as_str()).collect();
    assert_eq!(done, ["set_proxy", "power_off", "power_on", "set_proxy"]);
    // Faults of other phones hold up no check of this one.
    let (_, text) = site.operate(&format!("platform check rack --write {device_id} --yes")).await;
    assert!(text.contains("ended as success") && !text.contains("not done"), "{text}");
    assert!(site.read_knowledge(&device_id)["start"].is_string(), "{text}");
    program.stop().await;
    assert_nowhere(site.home.path(), &["open-sesame"]);
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again_and_phones_keep_their_ids_meanwhile() {
    let (double, codes, config) = rack().await;
    let address = double.adb().to_string();
    let site = Site::new();
    site.configure(&config);
    let program = site.start(PHONES, &[]).await;
    let ids = async || list_all(&program).await.iter().map(|phone| phone["device_id"].clone()).collect::<Vec<_>>();
    let count = async |state: &str| list_all(&program).await.iter().filter(|phone| phone["state"] == state).count();
    let known = ids().await;
    until(async || count("running").await == 2).await;
    drop(double);
    // The server shows a reading for two seconds.
    let first = id("rack", &codes[0]);
    let phone = json!({"device_id": first});
    until(async || program.call("get_device", phone.clone()).await.expect("it is known")["state"] == "unknown").await;
    let refused = program.call("set_power", restart(&first)).await.expect_err("it cannot be sent");
    assert_eq!((&refused["code"], site.ledger().len()), (&json!("upstream_unavailable"), 0), "{refused}");
    until(async || count("unknown").await == PHONES).await;
    let _double = Double::start(5, &["--adb-listen", &address]).await;
    until(async || count("running").await == 4).await;
    assert_eq!(ids().await, known);
}

#[tokio::test]
async fn a_phone_that_is_connected_beside_a_pattern_has_one_id_and_keeps_it_when_the_other_connection_goes() {
    let (double, site) = (Double::start(2, FAST).await, Site::new());
    let codes = double.codes().await;
    site.configure(&format!("{}connect = [\"{}:5555\"]\n", table_of(&double, &json!(["*"])), codes[0]));
    let program = site.start(2, &[]).await;
    let phone = id("rack", &codes[0]);
    until(async || site.operate("platform check rack").await.1.contains("is a second connection of a phone")).await;
    double.switch(Some(&codes[0]), &json!({"adb_state": "absent"})).await;
    let state = async || {
        sleep(Duration::from_millis(500)).await;
        program.call("get_device", json!({"device_id": phone})).await.expect("its id stays")["state"].clone()
    };
    until(async || state().await == "unknown").await;
    until(async || state().await == "running").await;
    let restarted = end(&program, "set_power", restart(&phone)).await;
    assert_eq!(restarted["status"], "success", "{restarted}");
    assert_eq!(list_all(&program).await.len(), 2);
}

#[tokio::test]
async fn a_person_reads_why_there_is_no_picture_of_a_phone() {
    let (double, codes, config) = rack().await;
    let site = Site::new();
    site.configure(&config);
    let program = site.start(PHONES, &[]).await;
    let phone = json!({"device_id": id("rack", &codes[0])});
    until(async || program.call("create_session", phone.clone()).await.is_ok()).await;
    let session = program.call("create_session", phone).await.expect("a session");
    double.switch(Some(&codes[0]), &json!({"screen_fault": "missing"})).await;
    let url = format!("http://{}/screen/still?after=0", program.address);
    let request = reqwest::Client::new().get(url).bearer_auth(session["token"].as_str().expect("text"));
    let (status, answer) = read(request.send().await.expect("an answer")).await;
    let why = "the phone has no `screencap`, which takes pictures";
    assert_eq!((status, &answer["message"]), (503, &json!(why)), "{answer}");
    // A check writes nothing on such a phone.
    let first = id("rack", &codes[0]);
    let checked = site.operate(&format!("platform check rack --write {first} --yes")).await.1;
    assert!(checked.contains(&format!("not done on {first}")), "{checked}");
}

#[tokio::test]
async fn a_phone_that_is_unplugged_leaves_although_it_is_read_all_the_time_and_a_list_says_how_to_connect_one() {
    let (double, site) = (Double::start(1, FAST).await, Site::new());
    let phone = json!({"device_id": id("rack", &double.codes().await[0])});
    site.configure(&table_of(&double, &json!(["*"])));
    let program = site.start(1, &[]).await;
    double.switch(None, &json!({"adb_state": "absent"})).await;
    until(async || {
        sleep(Duration::from_millis(500)).await;
        program.call("get_device", phone.clone()).await.is_err_and(|error| error["code"] == "not_found")
    })
    .await;
    let page = program.call("list_devices", json!({})).await.expect("a page");
    assert!(page["next_step"].to_string().contains("connect one that allows USB debugging"), "{page}");
}

#[tokio::test]
async fn a_store_that_replicas_share_is_refused_by_name() {
    let (_double, _, config) = rack().await;
    let site = Site::new();
    site.configure(&config);
    let (code, said) = site.operate("serve --listen 127.0.0.1:0 --store postgres://127.0.0.1:1/x").await;
    assert!(code == 2 && said.contains("are behind the adb server of this machine alone"), "{code} {said}");
}
