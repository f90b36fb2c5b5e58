//! The answers of the bridge to its client if the server answers wrongly or not at all.

use super::{call, empty_result, fake, over_fake, request};
use crate::harness::bridge::Bridge;
use serde_json::{Value, json};
use std::fmt::Write;

#[tokio::test]
async fn an_invalid_answer_becomes_an_error_that_says_what_to_do() {
    let refusal = |id: Value, code: &str| {
        let data = json!({"code": code, "message": "words of the server", "retryable": false});
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "words of the server", "data": data}})
    };
    let raw = str::to_owned;
    let cases = [
        (
            "a page of a gateway",
            raw("HTTP/1.1 502 X\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: 13\r\n\r\n<html></html>"),
        ),
        ("a gateway that limits", raw("HTTP/1.1 429 X\r\nretry-after: 17\r\ncontent-length: 0\r\n\r\n")),
        ("another server", raw("HTTP/1.1 404 X\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nnot found")),
        (
            "a redirect",
            raw("HTTP/1.1 308 X\r\nlocation: https://id:pw@other.example/mcp?token=1\r\ncontent-length: 0\r\n\r\n"),
        ),
        ("a redirect to a path", raw("HTTP/1.1 302 X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")),
        ("no JSON", raw("HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\nhello")),
        ("a stream", raw("HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: 9\r\n\r\ndata: {}\n")),
        ("nothing in it", fake::http(200, Value::Null)),
        ("accepted like a notification", fake::http(202, Value::Null)),
        ("no response", fake::http(200, json!({"hello": "world"}))),
        ("an answer to another request", fake::http(200, empty_result(&json!(7)))),
        ("an answer to a text of the same look", fake::http(200, empty_result(&json!("1")))),
        ("neither result nor error", fake::http(200, json!({"jsonrpc": "2.0", "id": 1}))),
        ("more than is taken", raw(&format!("HTTP/1.1 200 X\r\n\r\n{}", " ".repeat(5 << 20)))),
        ("less than was promised", raw("HTTP/1.1 200 X\r\ncontent-length: 99\r\n\r\n{")),
        ("no HTTP", raw("SSH-2.0-OpenSSH_9.9\r\n")),
        ("silence", String::new()),
        ("a key that is refused", fake::http(401, refusal(Value::Null, "unauthenticated"))),
        ("a key that a gateway refuses", raw("HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n")),
        ("a host name that is refused", fake::http(403, refusal(Value::Null, "origin_not_allowed"))),
        ("an overloaded server", fake::http(503, refusal(Value::Null, "overloaded"))),
        ("an error", fake::http(200, refusal(json!(1), "rate_limited"))),
        ("an error with another status", fake::http(400, refusal(json!(1), "unsupported_protocol_version"))),
    ];
    let (mut fake, mut bridge) = over_fake().await;
    bridge.take_stderr();
    let mut out = String::new();
    for (case, answer) in &cases {
        bridge.send(call(1, "set_power", json!({}))).await;
        fake.next().await.answer_raw(answer.as_bytes()).await;
        let answer = bridge.next().await;
        assert_eq!(answer["id"], 1, "{case}");
        let error = &answer["error"];
        assert_eq!(error["message"], error["data"]["message"], "{case}");
        writeln!(out, "{case}\n  {} {}", error["code"], error["data"]).expect("text");
        for line in bridge.take_stderr().lines() {
            writeln!(out, "  ! {line}").expect("text");
        }
    }
    bridge.send(request(1, "ping", json!({}))).await;
    fake.next().await.answer(200, empty_result(&json!(1))).await;
    assert_eq!(bridge.next().await, empty_result(&json!(1)));
    insta::assert_snapshot!(out.replace(&fake.url, "URL"));
}

#[tokio::test]
async fn a_read_is_repeated_once_where_its_connection_ends_and_a_write_never() {
    let (mut fake, mut bridge) = over_fake().await;
    let tool = |name: &str, reads: bool| json!({"name": name, "annotations": {"readOnlyHint": reads}});
    bridge.send(request("list", "tools/list", json!({}))).await;
    let list =
        json!({"jsonrpc": "2.0", "id": "list", "result": {"tools": [tool("reader", true), tool("writer", false)]}});
    fake.next().await.answer(200, list).await;
    bridge.next().await;
    let cases = [
        (request("x", "ping", json!({})), 2),
        (request("x", "initialize", json!({})), 2),
        (request("x", "server/discover", json!({})), 2),
        (call("x", "reader", json!({})), 2),
        (call("x", "writer", json!({})), 1),
        (call("x", "unknown", json!({})), 1),
        (format!("[{}]", request("x", "ping", json!({}))), 1),
    ];
    for (line, times) in cases {
        bridge.send(&line).await;
        for _ in 0..times {
            drop(fake.next().await);
        }
        let answer = bridge.next().await;
        let error = if answer.is_array() { &answer[0]["error"] } else { &answer["error"] };
        assert_eq!(
            (&error["data"]["code"], &error["data"]["retryable"]),
            (&json!("no_answer"), &json!(times == 2)),
            "{line}"
        );
        if times == 2 {
            bridge.send(&line).await;
            drop(fake.next().await);
            fake.next().await.answer(200, empty_result(&json!("x"))).await;
            assert_eq!(bridge.next().await, empty_result(&json!("x")), "{line}");
        }
    }
    assert_eq!(fake.waiting_count(), 0);
}

#[tokio::test]
async fn unsound_messages_are_judged_by_the_server_and_batches_answered_as_a_whole() {
    let (server, key) = crate::harness::open_phones().await;
    let mut bridge = Bridge::with_key(&server.url, &key);
    let lines = [
        "hello",
        "{",
        "5",
        "[]",
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"no/such"}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"nothing"}}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":5}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},5]"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#,
        "  {\"jsonrpc\":\"2.0\",\t\"id\":\"\\u0061\",\"method\":\"ping\"}  \r",
    ];
    for line in lines {
        let (_, expected) = server.send(&key, line).await;
        let answer = bridge.ask(line).await;
        if line.starts_with(r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"#) {
            // The server refuses the whole batch; the bridge reports that under id 1, which waits
            // for an answer.
            assert_eq!((&answer[0]["id"], &answer[0]["error"]), (&json!(1), &expected["error"]));
        } else if line == r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"# {
            assert_eq!((&answer["id"], &answer["error"]), (&json!(1.5), &expected["error"]));
        } else {
            assert_eq!(answer, expected, "{line}");
        }
    }
    // The bridge does not answer a message that expects no answer.
    bridge.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    bridge.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    bridge.send(r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#).await;
    bridge.send("").await;
    assert_eq!(bridge.end().await.0, [""; 0]);
}

#[tokio::test]
async fn a_message_that_no_server_accepts_is_refused_under_its_id() {
    let (fake, mut bridge) = over_fake().await;
    let filler = "x".repeat(2 << 20);
    let refused = bridge.ask(call("big", "writer", json!({"text": filler}))).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("big"), &json!(-32600)));
    let batch =
        bridge.ask(format!("[{},{}]", call(1, "writer", json!({"text": filler})), call(2, "writer", json!({})))).await;
    assert_eq!((&batch[0]["id"], &batch[1]["id"]), (&json!(1), &json!(2)));
    let beyond = bridge.ask(call(1, "writer", json!({"text": "x".repeat(9 << 20)}))).await;
    assert_eq!((&beyond["id"], &beyond["error"]["data"]["code"]), (&Value::Null, &json!("body_too_large")));
    assert_eq!(fake.waiting_count(), 0);
}

#[tokio::test]
async fn an_answer_of_several_lines_is_one_line() {
    let (mut fake, mut bridge) = over_fake().await;
    bridge.send(request(1, "ping", json!({}))).await;
    let body = format!("{:#}\r\n", json!({"jsonrpc": "2.0", "id": 1, "result": {"text": "a\nb"}}));
    let head = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", body.len());
    fake.next().await.answer_raw(format!("{head}{body}").as_bytes()).await;
    assert_eq!(bridge.next().await["result"]["text"], "a\nb");
}
