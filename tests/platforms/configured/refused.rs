//! Writes that a platform cannot express: the server refuses them before they are charged or sent.

use super::{id, lab};
use crate::harness::members;
use serde_json::{Value, json};
use std::fmt::Write;

#[tokio::test]
async fn a_write_that_a_platform_cannot_express_is_refused_before_it_is_charged_or_sent() {
    let (site, double, program) = lab(8, "", &[]).await;
    let phone = id("lab", &double.codes().await[0]);
    let proxy = |scheme: &str, username: &str, password: &str| {
        json!({"device_id": phone, "scheme": scheme, "host": "proxy.example.com", "port": 1080,
            "username": username, "password": password})
    };
    let power = |action: &str| json!({"device_id": phone, "action": action});
    let cases: [(&str, Value); 6] = [
        ("set_proxy", proxy("https", "user", "word")),
        ("set_proxy", proxy("http", "user", "pass|word")),
        ("set_proxy", proxy("socks5", "us|er", "word")),
        ("create_session", json!({"device_id": phone, "mode": "view"})),
        ("set_power", power("boot")),
        ("set_power", power("shutdown")),
    ];
    let mut transcript = String::new();
    for (tool, arguments) in cases {
        let refused = program.call(tool, arguments.clone()).await.expect_err("it has no words for it");
        writeln!(transcript, "{tool} {arguments}\n{}", members(&refused)).expect("text");
    }
    insta::assert_snapshot!(transcript);
    assert!(site.ledger().is_empty());
    for endpoint in ["setProxy", "stsTokenByPadCode", "timingPadOn", "timingPadOff", "restart", "asyncCmd"] {
        assert_eq!(double.requests(endpoint).await, [] as [Value; 0], "{endpoint}");
    }
}
