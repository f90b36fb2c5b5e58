//! The tasks of several resources, as an operator sees them.

use crate::process::{Shop, json_of};
use serde_json::json;

#[tokio::test]
async fn a_task_is_listed_with_the_resource_that_it_is_on() {
    let shop = Shop::start().await;
    for (tool, arguments) in [
        ("print_page", json!({"printer_id": "p-1", "mode": "draft"})),
        ("fill_tray", json!({"tray_id": "p-1", "sheets": 1})),
    ] {
        let job = shop.call(tool, arguments).await.expect("a job");
        shop.end(&job).await;
    }
    let tasks = json_of(&shop.data, "task list --target p-1").await["tasks"].take();
    let told: Vec<_> =
        tasks.as_array().expect("tasks").iter().map(|task| json!([task["resource"], task["target"]])).collect();
    assert_eq!(told, [json!(["tray", "p-1"]), json!(["printer", "p-1"])]);
    let shown = json_of(&shop.data, &format!("task show {}", tasks[1]["task_id"].as_str().expect("an id"))).await;
    assert_eq!((&shown["status"], &shown["evidence"]["checked"]), (&json!("success"), &json!("page_counter")));
}
