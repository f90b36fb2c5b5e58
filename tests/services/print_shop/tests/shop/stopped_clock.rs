//! Behaviour that depends on time, with a clock that only a test moves.

use crate::process::call;
use driver::KeyPair;
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant::PermissionSet;
use toolwarrant::testing::{self, Tenant, TestServer, serve};

/// Serves the shop in this process. Returns it with a key that has all permissions.
async fn shop() -> (TestServer, KeyPair, TempDir) {
    let home = TempDir::new().expect("a temporary folder");
    let tenants = vec![Tenant::with(PermissionSet(u64::MAX))];
    let (server, keys) =
        serve(|setup| print_shop::service(setup).expect("a service"), tenants, home.path().to_owned()).await;
    let testing::Key { id, secret } = keys[0][0].clone();
    (server, KeyPair { id, secret }, home)
}

/// Lets time pass in steps of one second until a job has ended. Returns the job, and the number of
/// seconds.
async fn end(server: &TestServer, key: &KeyPair, job: &Value) -> (Value, u32) {
    for second in 0..60 {
        let ask = json!({"task_id": job["task_id"], "wait_seconds": 0});
        let job = call(server.address, key, "get_job", ask).await.expect("a job");
        if job["terminal"] == true {
            return (job["status"].clone(), second);
        }
        server.clock.advance(Duration::from_secs(1));
    }
    panic!("it never ends: {job}");
}

#[tokio::test]
async fn a_page_is_judged_by_the_time_that_the_printer_says_and_not_by_the_contracts() {
    let (server, key, _home) = shop().await;
    let job =
        call(server.address, &key, "print_page", json!({"printer_id": "p-7", "mode": "draft"})).await.expect("a job");
    let (status, seconds) = end(&server, &key, &job).await;
    assert_eq!(status, "timeout");
    assert!((8..=10).contains(&seconds), "a printer's 8 s, not the contract's 30 s: {seconds} s");
}

#[tokio::test]
async fn a_printer_takes_one_page_at_a_time_and_a_tray_of_its_name_does_not_wait_for_it() {
    let (server, key, _home) = shop().await;
    let print = json!({"printer_id": "p-7", "mode": "fine"});
    let first = call(server.address, &key, "print_page", print.clone()).await.expect("a job");
    let again = call(server.address, &key, "print_page", json!({"printer_id": "p-7", "mode": "draft"})).await;
    let busy = again.expect_err("one page is on its way");
    assert_eq!((&busy["code"], &busy["task_id"]), (&json!("printer_busy"), &first["task_id"]));
    call(server.address, &key, "fill_tray", json!({"tray_id": "p-4", "sheets": 1})).await.expect("another machine");
    let same = call(server.address, &key, "print_page", print).await.expect("the same page");
    assert_eq!((&same["task_id"], &same["idempotent_hit"]), (&first["task_id"], &json!(true)));
    assert_eq!(end(&server, &key, &first).await.0, "timeout");
}

#[tokio::test]
async fn an_idempotency_key_in_use_on_a_printer_is_refused_on_a_tray() {
    let (server, key, _home) = shop().await;
    let print = json!({"printer_id": "p-7", "mode": "fine", "idempotency_key": "k"});
    call(server.address, &key, "print_page", print).await.expect("a job");
    let fill = json!({"tray_id": "p-4", "sheets": 1, "idempotency_key": "k"});
    let refused = call(server.address, &key, "fill_tray", fill).await.expect_err("the job is of another machine");
    assert_eq!(refused["code"], "invalid_argument");
    assert!(refused["message"].as_str().is_some_and(|said| said.contains("use another key")), "{refused}");
}
