//! Malformed input of clients: each gets a clear error that names the fault, never a 5xx, and the
//! connection stays open.

use crate::harness::program::Program;
use crate::harness::{open_phones, outcome};
use serde_json::{Value, json};

#[tokio::test]
async fn bodies_that_are_too_large_too_deep_or_no_text_are_refused() {
    let (server, key) = open_phones().await;
    let deep = "[".repeat(200_000);
    let nested = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let call = |value: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get_device","arguments":{{"device_id":{value}}}}}}}"#
        )
    };
    let mut not_utf8 = call("\"x\"").into_bytes();
    not_utf8[10] = 0xff;
    let rows: Vec<(Vec<u8>, u16, &str, &str)> = vec![
        (vec![b' '; (1 << 20) + 1], 413, "body_too_large", "at most 1 MiB"),
        (deep.clone().into(), 400, "parse_error", "nested deeper than 64 levels"),
        (call(&nested).into(), 400, "parse_error", "nested deeper than 64 levels"),
        (call(&deep).into(), 400, "parse_error", "nested deeper than 64 levels"),
        (call(&deep.replace('[', "{\"a\":")).into(), 400, "parse_error", "nested deeper than 64 levels"),
        (not_utf8, 400, "parse_error", "not UTF-8 at byte 10"),
        (call("\"a\0b\"").into(), 400, "parse_error", "control character"),
        (call("1e999999").into(), 200, "invalid_argument", "`device_id`"),
    ];
    for (body, status, code, words) in rows {
        let (got, answer) = server.send(&key, body).await;
        let failure = if status == 200 { outcome(&answer).unwrap_err() } else { answer["error"]["data"].clone() };
        assert_eq!((got, &failure["code"]), (status, &json!(code)), "{answer}");
        assert!(failure["message"].as_str().is_some_and(|text| text.contains(words)), "{answer}");
    }
}

#[tokio::test]
async fn every_offending_argument_is_named_at_once_with_what_is_allowed() {
    let (server, key) = open_phones().await;
    let rows = [
        ("get_device", json!({"device_id": null}).to_string(), vec!["`device_id`: null is not"]),
        (
            "get_device",
            r#"{"device_id":"phone-0000001","device_id":"phone-0000002"}"#.into(),
            vec!["`device_id` is given more than once"],
        ),
        ("get_device", r#"{"device_id":"\ud800"}"#.into(), vec!["`device_id`:"]),
        (
            "create_session",
            json!({"device_id": ["x"], "mode": {"a": 1}, "\u{202e}modes": 1}).to_string(),
            vec![
                "`device_id`: [\"x\"] is not",
                "`mode`: {\"a\":1} is not one of `view`, `control`",
                "`modes` is no argument",
                "it takes `device_id`, `mode`",
            ],
        ),
    ];
    for (tool, arguments, expected) in rows {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let failure = outcome(&server.send(&key, body).await.1).unwrap_err();
        assert_eq!((&failure["code"], &failure["retryable"]), (&json!("invalid_argument"), &json!(false)));
        let message = failure["message"].as_str().expect("a message");
        for words in expected {
            assert!(message.contains(words), "{tool} {arguments}: {message}");
        }
    }
}

#[tokio::test]
async fn what_a_tool_does_not_take_is_left_out_and_what_looks_like_its_argument_is_a_mistake() {
    let (server, key) = open_phones().await;
    let own = [
        "toolCallId",
        "sessionId",
        "chatInput",
        "task_progress",
        "_meta",
        "transaction",
        "\u{202e}x",
        "",
        "limit",
        "password",
    ];
    let mistaken = ["deviceId", "device", "id", "Device_ID", "actions", "newAction"];
    for (member, is_taken) in own.map(|name| (name, true)).into_iter().chain(mistaken.map(|name| (name, false))) {
        let mut arguments = json!({"device_id": "phone-0000001", "action": "restart", "idempotency_key": "one"});
        arguments[member] = json!({"differs": member});
        let mut body = arguments.clone();
        body.as_object_mut().expect("an object").remove("device_id");
        let outcome = server.call(&key, "set_power", arguments).await;
        let signed = server.sign(&key, "POST", "/v1/devices/phone-0000001/power").body(body);
        let signed = server.v1(&signed).await;
        if is_taken {
            let hit = outcome.expect(member)["idempotent_hit"].clone();
            assert_eq!((hit, signed.status), (json!(member != own[0]), 200), "{member}");
        } else {
            let message = outcome.expect_err(member)["message"].clone();
            assert!(message.as_str().is_some_and(|text| text.contains("is no argument of this tool")), "{message}");
            assert_eq!((signed.status, &signed.body["message"]), (400, &message), "{member}");
        }
    }
    let without_arguments = json!({"reason": "because", "limit": null});
    let failure = server.call(&key, "get_device", without_arguments).await.expect_err("no device_id").to_string();
    assert!(failure.contains("`device_id` is required") && !failure.contains("reason"), "{failure}");
    let audit = server.audit().await;
    let sound: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for line in sound.iter().filter(|line| line["outcome"] == "ok" && line["tool"] == "set_power") {
        let expected = json!({"device_id": "phone-0000001", "action": "restart", "idempotency_key": "one"});
        assert_eq!(line["arguments"], expected, "{line}");
    }
}

#[tokio::test]
async fn what_is_left_out_of_arguments_is_in_the_log_at_debug() {
    let program = Program::start(&["--log", "debug"]).await;
    let arguments = json!({"limit": 1, "toolCallId": "differs", "\u{202e}x": 1});
    program.call("list_devices", arguments).await.expect("a page");
    program.until_logged("toolCallId").await;
    let log = program.log();
    let line = log.lines().find(|line| line.contains("toolCallId")).expect("a line");
    assert!(line.contains("list_devices") && !line.contains("differs") && !line.contains('\u{202e}'), "{line}");
}
