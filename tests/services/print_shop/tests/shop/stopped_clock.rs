//! Behaviour that depends on time, with a clock that only a test moves.

use print_shop::machines::Machines;
use serde_json::json;
use tempfile::TempDir;
use toolwarrant::contract::PermissionSet;
use toolwarrant_testing::{Tenant, serve};

#[tokio::test]
async fn a_page_is_judged_by_the_time_that_the_printer_says_and_not_by_the_contracts() {
    let home = TempDir::new().expect("a temporary folder");
    let tenants = vec![Tenant::with(PermissionSet(u64::MAX))];
    let (server, keys) = serve(
        |setup| print_shop::service(setup, Machines::default()).expect("a service"),
        tenants,
        home.path().to_owned(),
    )
    .await;
    let key = &keys[0][0];
    let page = json!({"printer_id": "p-7", "mode": "draft"});
    let job = server.call(key, "print_page", page).await.expect("a job");
    let begin = server.clock.now();
    let job = server.end(key, "get_job", &job).await;
    let seconds = server.clock.now().since(begin).as_secs();
    assert_eq!(job["status"], "timeout", "{job}");
    assert!((8..=10).contains(&seconds), "a printer's 8 s, not the contract's 30 s: {seconds} s");
}
