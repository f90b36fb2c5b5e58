//! Jobs on a clock that only the test moves: their list, which a handler makes, and their deadline.

use print_shop::machines::Machines;
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant::contract::PermissionSet;
use toolwarrant::handler::{Granted, Grants};
use toolwarrant_testing::{Key, Tenant, TestServer, serve, test_origin};

async fn shop(home: &TempDir) -> (TestServer, [Key; 2]) {
    let tenants = [(); 2].map(|()| Tenant::with(PermissionSet(u64::MAX))).into();
    let (server, keys) = serve(|_| print_shop::service(Machines::default()), tenants, home.path().to_owned()).await;
    (server, [keys[0][0].clone(), keys[1][0].clone()])
}

#[tokio::test]
async fn a_handler_lists_the_tasks_of_its_callers_application_newest_first() {
    let home = TempDir::new().expect("a temporary folder");
    let (server, [key, other]) = shop(&home).await;
    let mut made = Vec::new();
    for (tool, arguments) in [
        ("print_page", json!({"printer_id": "p-1", "mode": "draft"})),
        ("fill_tray", json!({"tray_id": "p-1", "sheets": 5})),
        ("print_page", json!({"printer_id": "p-3", "mode": "draft"})),
    ] {
        let job = server.call(&key, tool, arguments).await.expect("a job");
        server.end(&key, "get_job", &job).await;
        made.insert(0, job["task_id"].clone());
        server.clock.advance(Duration::from_secs(1));
    }
    let last = server.call(&key, "print_page", json!({"printer_id": "p-5", "mode": "fine"})).await.expect("a job");
    made.insert(0, last["task_id"].clone());
    let list = async |key, arguments| server.call(key, "list_jobs", arguments).await.expect("a page");
    let ids = |page: &Value| -> Vec<Value> {
        page["jobs"].as_array().expect("jobs").iter().map(|job| job["task_id"].clone()).collect()
    };

    let all = list(&key, json!({})).await;
    assert_eq!((ids(&all), &all["next"]), (made.clone(), &Value::Null), "{all}");
    let [newest, oldest] = [0, 3].map(|n| all["jobs"][n].clone());
    assert_eq!([&newest["state"], &newest["printer_id"]], [&json!("dispatched"), &json!("p-5")], "{all}");
    assert_eq!([&oldest["state"], &oldest["tray_id"]], [&json!("success"), &Value::Null], "{all}");
    for (filter, expected) in [
        (json!({"state": "failed_silent"}), vec![1]),
        (json!({"state": "dispatched"}), vec![0]),
        (json!({"printer_id": "p-1"}), vec![3]),
        (json!({"tray_id": "p-1"}), vec![2]),
        (json!({"tray_id": "p-1", "state": "success"}), vec![]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|n: usize| made[n].clone()).collect();
        assert_eq!(ids(&list(&key, filter.clone()).await), expected, "{filter}");
    }
    let first = list(&key, json!({"limit": 3})).await;
    assert_eq!((ids(&first), &first["next"]), (made[..3].to_vec(), &made[2]));
    let second = list(&key, json!({"limit": 3, "after": first["next"]})).await;
    assert_eq!((ids(&second), &second["next"]), (made[3..].to_vec(), &Value::Null));
    assert_eq!(list(&other, json!({})).await, json!({"jobs": [], "next": null}), "these are another application's");
}

#[tokio::test]
async fn the_target_of_a_callers_own_task_is_shown_after_its_grant_has_ended() {
    let home = TempDir::new().expect("a temporary folder");
    let (server, [key, _]) = shop(&home).await;
    server.call(&key, "fill_tray", json!({"tray_id": "p-1", "sheets": 5})).await.expect("a job");
    let app = server.registry.find("app-0").await.expect("an application").id;
    let tray = Grants::nothing().with("tray", Granted::some(["p-3"]));
    drop(server.registry.change(&app, &test_origin(), |row| row.grants = tray.clone()).await.expect("a change"));
    assert_eq!(server.call(&key, "get_tray", json!({"tray_id": "p-1"})).await.expect_err("gone")["code"], "not_found");
    let jobs = server.call(&key, "list_jobs", json!({})).await.expect("a page");
    assert_eq!(jobs["jobs"][0]["tray_id"], "p-1", "{jobs}");
}

#[tokio::test]
async fn a_page_is_judged_by_the_time_that_the_printer_says_and_not_by_the_contracts() {
    let home = TempDir::new().expect("a temporary folder");
    let (server, [key, _]) = shop(&home).await;
    let page = json!({"printer_id": "p-7", "mode": "draft"});
    let job = server.call(&key, "print_page", page).await.expect("a job");
    let begin = server.clock.now();
    let job = server.end(&key, "get_job", &job).await;
    let seconds = server.clock.now().since(begin).as_secs();
    assert_eq!(job["status"], "timeout", "{job}");
    assert!((8..=10).contains(&seconds), "a printer's 8 s, not the contract's 30 s: {seconds} s");
}
