//! Malformed input of clients: each gets a clear error that names the fault, never a 5xx, and the
//! connection stays open.

use crate::harness::{Tenant, open_phones, outcome, phones, read};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolwarrant_core::catalogue::PermissionSet;

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
        (
            "list_devices",
            json!({"limit": 201, "state": "off", "capability": 7, "cursor": "zz", "page": 2}).to_string(),
            vec![
                "`limit`: 201 is not an integer from 1 to 200",
                "`state`: \"off\" is not one of `running`",
                "`capability`: 7 is not one of `proxy`",
                "`cursor`: \"zz\" is not a string of 1 to 256 lower-case hexadecimal digits",
                "`page` is no argument of this tool",
            ],
        ),
        (
            "get_device",
            "{}".into(),
            vec![
                "`device_id` is required: a string of 1 to 64 lower-case letters, digits and hyphens",
                "Take device_id from list_devices. A name is no id",
            ],
        ),
        ("get_device", json!({"device_id": null}).to_string(), vec!["`device_id`: null is not"]),
        (
            "get_device",
            r#"{"device_id":"phone-0000001","device_id":"phone-0000002"}"#.into(),
            vec!["`device_id` is given more than once"],
        ),
        ("get_device", r#"{"device_id":"\ud800"}"#.into(), vec!["`device_id`:"]),
        (
            "create_session",
            json!({"device_id": ["x"], "mode": {"a": 1}, "\u{202e}evil": 1}).to_string(),
            vec![
                "`device_id`: [\"x\"] is not",
                "`mode`: {\"a\":1} is not one of `view`, `control`",
                "`evil` is no argument",
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
async fn ten_thousand_unknown_arguments_give_a_short_answer() {
    let (server, key) = open_phones().await;
    let many: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("a{n}"), json!(n))).collect();
    let failure = server.call(&key, "list_devices", Value::Object(many)).await.unwrap_err();
    let message = failure["message"].as_str().expect("a message");
    assert!(message.contains("and 9968 more") && message.len() < 4096, "{message}");
}

/// Sends valid messages with random bytes replaced, removed or doubled. The same seed gives the
/// same run.
#[tokio::test]
async fn nothing_that_is_sent_makes_the_server_fail() {
    let (server, keys) = phones(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    const SOUND: [&str; 5] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices","arguments":{"limit":3,"state":"running"}}}"#,
        r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]"#,
        r#"{"jsonrpc":"2.0","id":-3,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_devices","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ];
    const HEADERS: [(&str, &[&str]); 3] = [
        ("mcp-protocol-version", &["2025-03-26", "2025-11-25", "2026-07-28", "2026-07-28", "2027-01-01", "\u{e9}"]),
        ("mcp-method", &["tools/call", "server/discover", "initialize", "", "\u{ff}"]),
        ("mcp-name", &["list_devices", "list_devices", "=?base64?bGlzdF9kZXZpY2Vz?=", "=?base64?!?=", "\u{e9}"]),
    ];
    let edit = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    let headers = HEADERS.map(|(_, values)| prop::option::weighted(0.8, prop::sample::select(values)));
    let bodies = (
        prop::sample::select(&SOUND[..]),
        prop::collection::vec(edit, 0..6),
        prop::collection::vec(any::<u8>(), 0..40),
    );
    let bodies = bodies.prop_map(|(sound, edits, noise)| {
        let mut body = sound.as_bytes().to_vec();
        for (at, byte, kind) in edits {
            let at = at.index(body.len());
            match kind {
                0 => body[at] = byte,
                1 => drop(body.drain(at..)),
                _ => body.insert(at, b"{}[]\",:\\0"[usize::from(byte) % 9]),
            }
            if body.is_empty() {
                body.clone_from(&noise);
                body.push(b'"');
            }
        }
        body
    });
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let mut met = BTreeSet::new();
    for _ in 0..6000 {
        let (headers, body) = (&headers, &bodies).new_tree(&mut runner).expect("a request").current();
        let mut request = server.post(&keys[0][0]).body(body.clone());
        for ((name, _), value) in HEADERS.iter().zip(headers) {
            request = value.into_iter().fold(request, |request, value| request.header(*name, value));
        }
        let (status, answer) = read(request.send().await.expect("an answer")).await;
        let shown = String::from_utf8_lossy(&body);
        assert!(matches!(status, 200 | 202 | 400 | 404), "{status} for {headers:?} {shown}");
        assert!(!answer.to_string().contains("\"internal\""), "{headers:?} {shown}: {answer}");
        met.insert((status, answer["error"]["code"].as_i64(), answer["result"]["resultType"].is_string()));
    }
    // The answers include those to requests in the newest revision.
    for expected in [(200, None, true), (400, Some(-32020), false), (400, Some(-32022), false)] {
        assert!(met.contains(&expected), "{expected:?} is not among {met:?}");
    }
}
