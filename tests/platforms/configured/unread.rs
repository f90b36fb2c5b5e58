//! Phones and accounts on which nothing can be read before a write: the write is sent all the same.

use super::{FAST, Site, count_requests, end, id, lab};
use crate::harness::double::Double;
use crate::harness::program::Program;
use serde_json::{Value, json};

fn restart(code: &str) -> Value {
    json!({"device_id": id("lab", code), "action": "restart"})
}

fn proxy(code: &str, port: u16) -> Value {
    json!({"device_id": id("lab", code), "scheme": "socks5", "host": "proxy.example.com", "port": port})
}

async fn assert_end(program: &Program, tool: &str, arguments: Value, status: &str, observed: &str) {
    let task = end(program, tool, arguments).await;
    let seen = task["evidence"]["observed"].as_str().expect("a text");
    assert!(task["status"] == status && seen.contains(observed), "{task}");
}

#[tokio::test]
async fn a_hung_phone_is_restarted_and_a_start_after_the_request_is_its_success() {
    let (_site, double, program) = lab(2, "", &[]).await;
    let codes = double.codes().await;
    // A start has been read on this account.
    assert_end(&program, "set_power", restart(&codes[1]), "success", "before: ").await;
    double.switch(Some(&codes[0]), &json!({"shell": {"value": "fails", "calls": 2}})).await;
    assert_end(&program, "set_power", restart(&codes[0]), "success", "before: not read; after: ").await;
}

#[tokio::test]
async fn an_account_that_was_never_read_does_not_wait_for_readings() {
    let (site, double) = (Site::new(), Double::start(2, FAST).await);
    let nowhere = "echo-listen = \"127.0.0.9:0\"\necho-url = \"http://127.0.0.9:9\"\n";
    site.configure(&(nowhere.to_owned() + &site.table("lab", &double)));
    let program = site.start(2, &[]).await;
    let codes = double.codes().await;
    let never = "no request of a phone of this account has reached the callback listener so far";
    assert_end(&program, "set_proxy", proxy(&codes[0], 1080), "success_unverified", never).await;
    assert_end(&program, "set_proxy", proxy(&codes[1], 1080), "success_unverified", never).await;
    let readings = count_requests(&double, "asyncCmd").await;
    assert!(readings <= 4, "{readings}");
    // Here, no command runs at all.
    let refused = json!({"code": {"value": 100_001, "endpoint": "asyncCmd"}});
    double.switch(None, &refused).await;
    let never = "no command has run on a phone of this account so far";
    assert_end(&program, "set_power", restart(&codes[0]), "success_unverified", never).await;
}
