//! The facts of the record about the framework, held against the code that acts by them.

use crate::harness::writes::{entries, phone, proxy};
use crate::harness::{cast, contract, open_phones};
use serde_json::{Value, json};
use toolwarrant_reader::ContractRecord;
use toolwarrant_signing::{Request, SCHEME, SKEW_SECONDS};

fn fact(key: &str) -> Value {
    ContractRecord::of(&contract("spec")).facts.get(&format!("framework.{key}")).cloned().expect(key)
}

#[test]
fn a_request_is_signed_as_the_record_says() {
    let request = Request {
        key_id: "key_id",
        timestamp: "timestamp",
        nonce: "nonce",
        method: "method",
        path: "path",
        query: "query",
        idempotency_key: "idempotency_key",
        body: b"",
    };
    let canonical = request.canonical();
    let mut lines: Vec<&str> = canonical.lines().collect();
    assert_eq!((fact("signature_scheme"), fact("signature_skew_seconds")), (json!(lines[0]), json!(SKEW_SECONDS)));
    assert_eq!((lines[0], lines[8].len()), (SCHEME, 64));
    (lines[0], lines[8]) = ("scheme", "body_sha256");
    assert_eq!(fact("canonical_request"), json!(lines));
}

#[tokio::test]
async fn ends_are_terminal_and_refunded_as_the_record_says() {
    let (server, key, _) = cast().await;
    let writes = [
        ("set_proxy", proxy(1, "one")),
        ("clear_proxy", json!({"device_id": phone(10)})),
        ("set_proxy", proxy(14, "two")),
        ("set_proxy", proxy(13, "three")),
        ("set_power", json!({"device_id": phone(4), "action": "boot"})),
    ];
    let (mut terminal, mut refunded) = (Vec::new(), Vec::new());
    for (tool, arguments) in writes {
        let before = entries(&server, "refund").await;
        let accepted = server.call(&key, tool, arguments).await.expect("accepted");
        let task = server.end(&key, &accepted["task_id"]).await;
        assert_eq!(task["terminal"], true, "{task}");
        if entries(&server, "refund").await > before {
            refunded.push(task["status"].clone());
        }
        terminal.push(task["status"].clone());
    }
    assert_eq!((fact("terminal"), fact("refunded")), (json!(terminal), json!(refunded)));
}

/// Each part that the record lists makes another write, and no other part does.
#[tokio::test]
async fn a_write_is_identified_by_what_the_record_lists() {
    let (server, key, _) = cast().await;
    let write = |number: u32, host: &str, name: Option<&str>| {
        let mut arguments = proxy(number, "");
        arguments["host"] = json!(host);
        arguments["idempotency_key"] = json!(name);
        arguments
    };
    let call = async |tool: &str, arguments: Value| server.call(&key, tool, arguments).await;
    let first = call("set_proxy", write(13, "203.0.113.7", None)).await.expect("accepted");
    let repeat = call("set_proxy", write(13, "203.0.113.7", None)).await.expect("a hit");
    assert_eq!((&repeat["task_id"], &repeat["idempotent_hit"]), (&first["task_id"], &json!(true)));
    assert_eq!(fact("write_in_flight"), "answers the same task");
    assert_eq!(fact("write_key"), json!(["application", "tool", "target", "arguments"]));
    // The target is busy, so another write on it is refused and not answered with the task.
    let busy = json!("device_busy");
    assert_eq!(call("clear_proxy", json!({"device_id": phone(13)})).await.expect_err("another tool")["code"], busy);
    assert_eq!(call("set_proxy", write(13, "203.0.113.8", None)).await.expect_err("other arguments")["code"], busy);
    let other = call("set_proxy", write(1, "203.0.113.7", None)).await.expect("another target");
    assert_ne!(other["task_id"], first["task_id"]);

    assert_eq!(fact("write_key_named"), json!(["application", "idempotency_key"]));
    let named = call("set_proxy", write(19, "203.0.113.7", Some("k"))).await.expect("accepted");
    let hit = call("set_proxy", write(15, "203.0.113.9", Some("k"))).await.expect("a hit");
    assert_eq!((&hit["task_id"], &hit["request_matches"]), (&named["task_id"], &json!(false)));
}

#[tokio::test]
async fn limits_and_unknown_arguments_are_as_the_record_says() {
    let (server, key) = open_phones().await;
    let wait = |seconds: i64| json!({"task_id": format!("task_{}", "0".repeat(32)), "wait_seconds": seconds});
    let longest = fact("max_wait_seconds").as_i64().expect("a number");
    for (seconds, code) in [(longest, "not_found"), (longest + 1, "invalid_argument")] {
        assert_eq!(server.call(&key, "get_task", wait(seconds)).await.expect_err("refused")["code"], code);
    }
    assert_eq!(fact("unknown_arguments"), "left out unless misspelt");
    server.call(&key, "list_devices", json!({"colour": "red"})).await.expect("a page");
    let refused = server.call(&key, "list_devices", json!({"limits": 1})).await.expect_err("refused");
    assert_eq!(refused["code"], "invalid_argument");
}
