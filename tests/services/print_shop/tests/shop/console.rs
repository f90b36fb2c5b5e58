//! The console of the print shop, which has no line for it.

use kit::{HttpAnswer, Start, exchange};
use serde_json::Value;
use tempfile::TempDir;

async fn send(host: &str, line: &str, rest: &str) -> HttpAnswer {
    let port = host.rsplit(':').next().expect("a port");
    let request = format!("{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{rest}");
    exchange(format!("127.0.0.1:{port}"), request.as_bytes()).await.expect("an answer")
}

#[tokio::test]
async fn another_service_has_the_console_with_its_own_words() {
    let home = TempDir::new().expect("a temporary folder");
    let start = Start::new(env!("CARGO_BIN_EXE_print-shop"), home.path()).flags(&["--demo"]);
    let shop = start.ready().await.expect("it starts");
    let answer: Value = shop.operator.json(["console", "--operate"]).await.expect("a link");
    let link = answer["link"].as_str().expect("a link");
    let (host, code) = link.strip_prefix("http://").and_then(|rest| rest.split_once("/in#")).expect("a code");
    let form = format!(
        "origin: http://{host}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 37\r\n\r\ncode={code}"
    );
    let answer = send(host, "POST /in", &form).await;
    let cookie = answer.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a cookie");
    let cookie = format!("cookie: {cookie}\r\n\r\n");
    for path in ["/", "/tasks", "/fleet/printer", "/fleet/tray", "/applications", "/audit", "/act/tray/assign"] {
        let answer = send(host, &format!("GET {path}"), &cookie).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(
            answer.body.contains("/fleet/printer") && answer.body.contains("/fleet/tray"),
            "{path}: {}",
            answer.body
        );
        assert!(!answer.body.contains("role=\"alert\""), "{path}: {}", answer.body);
    }
}
