//! Conditions that pass: states of phones, answers without a phone, commands that come too often,
//! and rows in each form.

use super::{FAST, Site, echo, end, id, lab, until};
use crate::harness::double::Double;
use crate::harness::program::Program;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Reads seldom enough for the budget of the application.
async fn read(program: &Program, phone: &Value) -> Result<Value, Value> {
    sleep(Duration::from_millis(400)).await;
    program.call("get_device", phone.clone()).await
}

async fn wait_for_state(program: &Program, phone: &Value, state: &str) {
    until(async || read(program, phone).await.expect("it is in the list")["state"] == state).await;
}

fn restart(phone: &Value) -> Value {
    json!({"device_id": phone["device_id"], "action": "restart"})
}

#[tokio::test]
async fn a_state_that_passes_is_refused_for_now_and_a_restart_is_offered_to_an_abnormal_phone() {
    let (_site, double, program) = lab(1, "", &[]).await;
    let code = double.codes().await.swap_remove(0);
    let phone = json!({"device_id": id("lab", &code)});
    let shown = |status: i64| json!({"pad_status": status});
    for (switches, state) in
        [(json!({"cvm_status": 102}), "restarting"), (shown(20), "booting"), (shown(12), "restarting")]
    {
        double.switch(Some(&code), &switches).await;
        wait_for_state(&program, &phone, state).await;
        for (tool, arguments) in [("clear_proxy", phone.clone()), ("set_power", restart(&phone))] {
            let refused = program.call(tool, arguments).await.expect_err("it cannot be done now");
            assert_eq!((&refused["code"], &refused["retryable"]), (&json!("upstream_unavailable"), &json!(true)));
            assert!(refused["retry_after_seconds"].is_u64(), "{refused}");
            let message = refused["message"].as_str().expect("text");
            assert!(message.contains("is false for this device at present: the phone is "), "{message}");
        }
    }
    double.switch(Some(&code), &shown(14)).await;
    until(async || {
        let shown = read(&program, &phone).await.expect("it is in the list");
        shown["capabilities"] == json!({"proxy": false, "power": true, "session": false})
    })
    .await;
    let refused = program.call("clear_proxy", phone.clone()).await.expect_err("only a restart is offered");
    assert_eq!(refused["code"], "not_supported", "{refused}");
    let restarted = end(&program, "set_power", restart(&phone)).await;
    assert_eq!(restarted["status"], "success", "{restarted}");
}

#[tokio::test]
async fn a_phone_of_the_list_that_an_answer_lacks_is_unavailable_and_not_gone() {
    let (site, double, program) = lab(2, "", &[]).await;
    let code = double.codes().await.swap_remove(0);
    let phone = json!({"device_id": id("lab", &code)});
    double.switch(Some(&code), &json!({"unknown_pad": true})).await;
    wait_for_state(&program, &phone, "unknown").await;
    let refused = program.call("set_power", restart(&phone)).await.expect_err("nobody knows its state");
    assert_eq!(refused["code"], "upstream_unavailable", "{refused}");
    double.switch(Some(&code), &json!({})).await;
    wait_for_state(&program, &phone, "running").await;
    // Two lists in a row decide that it is gone.
    double.switch(Some(&code), &json!({"unknown_pad": true})).await;
    until(async || {
        read(&program, &phone).await.is_err_and(|error| {
            error["code"] == "not_found" && error["message"].as_str().is_some_and(|why| why.contains("is gone"))
        })
    })
    .await;
    // It may come back with the same id.
    let withdraw = format!("device unassign demo {}", phone["device_id"].as_str().expect("an id"));
    let (exit, told) = site.operate(&withdraw).await;
    assert_eq!(exit, 0, "{told}");
}

#[tokio::test]
async fn a_command_that_comes_too_often_is_repeated_and_a_check_passes() {
    let (site, double) = (Site::new(), Double::start(1, FAST).await);
    site.configure(&(echo() + &site.table("lab", &double)));
    for code in [1_218, 110_014, 429] {
        double.switch(None, &json!({"code": {"value": code, "endpoint": "asyncCmd", "calls": 1}})).await;
        let (exit, told) = site.operate("platform check lab").await;
        assert_eq!(exit, 0, "{code}: {told}");
    }
    // The list is not taken for one that refuses the size of its pages.
    double.switch(None, &json!({"code": {"value": 110_014, "endpoint": "infos", "calls": 1}})).await;
    let (exit, told) = site.operate("platform check lab").await;
    assert_eq!(exit, 0, "{told}");
}
