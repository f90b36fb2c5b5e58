//! Each bed, on the clock of the test.

use serde_json::json;
use toolwarrant::contract::PermissionSet;
use toolwarrant_testing::{Tenant, serve};

#[tokio::test]
async fn each_bed_ends_its_task_as_its_valve_and_meter_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let tenants = vec![Tenant::with(PermissionSet(u64::MAX))];
    let (server, keys) = serve(super::service, tenants, folder.path().to_owned()).await;
    let key = &keys[0][0];
    for (bed, status) in [("fern", "success"), ("herb", "success_unverified"), ("moss", "failed_silent")] {
        let water = json!({"bed_id": bed, "litres": 5});
        let task = server.call(key, "water_bed", water).await.expect("a task");
        let task = server.end(key, "get_task", &task).await;
        assert_eq!(task["status"], status, "{task}");
        assert_eq!(task["refund"].is_null(), status != "failed_silent", "{task}");
    }
    let water = json!({"bed_id": "ivy", "litres": 5});
    let refused = server.call(key, "water_bed", water).await.expect_err("it has no valve");
    assert_eq!(refused["code"], "not_supported");
    let page = server.call(key, "list_beds", json!({"after": "fern", "limit": 2})).await.expect("a page");
    assert_eq!((&page["beds"], &page["next"]), (&json!(["herb", "ivy"]), &json!("ivy")));
    for _ in 0..2 {
        server.call(key, "open_shed", json!({})).await.expect("a code");
    }
    let refused = server.call(key, "open_shed", json!({})).await.expect_err("the lock is full");
    assert!(refused["code"] == "lock_full" && refused["free_at"].is_string(), "{refused}");
    assert_eq!(refused["retry_after_seconds"], 1_800, "until the first code ends");
}
