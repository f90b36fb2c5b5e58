//! The tasks and the faults of several resources, as an operator sees them.

use crate::process::{Shop, end, json_of};
use serde_json::{Value, json};

#[tokio::test]
async fn a_task_is_listed_with_the_resource_that_it_is_on() {
    let shop = Shop::start().await;
    for (tool, arguments) in [
        ("print_page", json!({"printer_id": "p-1", "mode": "draft"})),
        ("fill_tray", json!({"tray_id": "p-1", "sheets": 1})),
    ] {
        let job = shop.call(tool, arguments).await.expect("a job");
        end(&shop, shop.demo(), &job).await;
    }
    let tasks = json_of(&shop.operator.data, "task list --target p-1").await["tasks"].take();
    let told: Vec<_> =
        tasks.as_array().expect("tasks").iter().map(|task| json!([task["resource"], task["target"]])).collect();
    assert_eq!(told, [json!(["tray", "p-1"]), json!(["printer", "p-1"])]);
    let shown =
        json_of(&shop.operator.data, &format!("task show {}", tasks[1]["task_id"].as_str().expect("an id"))).await;
    assert_eq!((&shown["status"], &shown["evidence"]["checked"]), (&json!("success"), &json!("page_counter")));
}

#[tokio::test]
async fn the_reason_why_a_machine_is_unavailable_is_in_the_log_and_the_doctors_report() {
    let shop = Shop::start().await;
    let look = async || json_of(&shop.operator.data, "doctor").await;
    assert_eq!(look().await["warnings"], Value::Null);
    for (tool, arguments) in
        [("get_printer", json!({"printer_id": "p-gone"})), ("get_tray", json!({"tray_id": "p-gone"}))]
    {
        let refused = shop.call(tool, arguments).await.expect_err("it is unplugged");
        assert_eq!(refused["code"], "upstream_unavailable");
        assert!(!refused.to_string().contains("plug"), "the reason is for the operator: {refused}");
    }
    let found = look().await;
    assert_eq!((&found["healthy"], &found["warnings"][0]["check"]), (&json!(true), &json!("upstream")), "{found}");
    let warned = found["warnings"][0]["found"].as_str().expect("a finding");
    assert!(warned.contains("`get_printer`") && warned.contains("the plug is out"), "{warned}");
    let log = shop.log().expect("a log");
    assert_eq!(log.matches("the plug is out").count(), 1, "one call is logged a minute: {log}");
}
