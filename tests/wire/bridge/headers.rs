//! The headers that the bridge sends: the key, the revision, the method and the name.

use super::fake::{Fake, header};
use super::{call, empty_result, over_fake, request};
use crate::harness::bridge::Bridge;
use serde_json::{Value, json};

const REVISION: &str = "mcp-protocol-version";

async fn send_and_answer(fake: &mut Fake, bridge: &mut Bridge, line: &str, answer: Value) -> String {
    bridge.send(line).await;
    let request = fake.next().await;
    let head = request.head.clone();
    let answer = if answer.is_null() { empty_result(&request.body["id"]) } else { answer };
    request.answer(200, answer.clone()).await;
    assert_eq!(bridge.next().await, answer);
    head
}

#[tokio::test]
async fn the_key_goes_in_two_headers_and_the_body_as_it_is() {
    let (mut fake, mut bridge) = over_fake().await;
    bridge.send(request(1, "ping", json!({}))).await;
    let request = fake.next().await;
    assert!(request.head.starts_with("POST /mcp HTTP/1.1\r\n"), "{}", request.head);
    let seen = ["x-api-key", "x-api-secret", "content-type", "accept", "authorization", "mcp-session-id"];
    let expected = [
        Some("key_1"),
        Some("secret_that_is_shown_nowhere"),
        Some("application/json"),
        Some("application/json, text/event-stream"),
        None,
        None,
    ];
    assert_eq!(seen.map(|name| request.header(name)), expected);
}

#[tokio::test]
async fn the_revision_is_the_one_that_was_agreed_on_or_that_of_the_message() {
    let (mut fake, mut bridge) = over_fake().await;
    let ping = request(1, "ping", json!({}));
    let head = send_and_answer(&mut fake, &mut bridge, &ping, Value::Null).await;
    assert_eq!(header(&head, REVISION), None, "nothing is agreed on");

    for agreed in ["2025-03-26", "2025-11-25"] {
        let offer = request(2, "initialize", json!({"protocolVersion": "2025-11-25"}));
        let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {"protocolVersion": agreed}});
        let head = send_and_answer(&mut fake, &mut bridge, &offer, answer).await;
        assert_eq!(header(&head, REVISION), None, "it is about to be agreed on");
        let head = send_and_answer(&mut fake, &mut bridge, &ping, Value::Null).await;
        assert_eq!(header(&head, REVISION), Some(agreed));
    }
    // A message that names its own revision needs no handshake, and does not establish a revision
    // for others.
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let discover = request(3, "server/discover", json!({"_meta": meta}));
    let head = send_and_answer(&mut fake, &mut bridge, &discover, Value::Null).await;
    assert_eq!((header(&head, REVISION), header(&head, "mcp-method")), (Some("2026-07-28"), Some("server/discover")));
    let head = send_and_answer(&mut fake, &mut bridge, &ping, Value::Null).await;
    assert_eq!(header(&head, REVISION), Some("2025-11-25"));
}

#[tokio::test]
async fn a_request_waits_for_the_revision_that_is_being_agreed_on() {
    let (mut fake, mut bridge) = over_fake().await;
    bridge.send(request(1, "initialize", json!({"protocolVersion": "2025-11-25"}))).await;
    bridge.send(request(2, "tools/list", json!({}))).await;
    let initialize = fake.next().await;
    assert_eq!(initialize.body["method"], "initialize");
    let agreed = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}});
    initialize.answer(200, agreed.clone()).await;
    assert_eq!(bridge.next().await, agreed);
    assert_eq!(fake.next().await.header(REVISION), Some("2025-06-18"));
}

#[tokio::test]
async fn method_and_name_stand_in_headers_as_the_protocol_encodes_them() {
    let (mut fake, mut bridge) = over_fake().await;
    let cases = [
        (call(1, "list_devices", json!({})), Some("tools/call"), Some("list_devices")),
        (call(1, "g\u{e9}r\u{e4}t", json!({})), Some("tools/call"), Some("=?base64?Z8OpcsOkdA==?=")),
        (request(1, "tools/list", json!({"name": "x"})), Some("tools/list"), None),
        (request(1, "resources/read", json!({"uri": "file:///a"})), Some("resources/read"), Some("file:///a")),
        (request(1, "tasks/get", json!({"taskId": "task_0"})), Some("tasks/get"), Some("task_0")),
        (request(1, "line\nfeed", json!({})), None, None),
        (format!("[{}]", request(1, "ping", json!({}))), None, None),
    ];
    for (line, method, name) in cases {
        let answer = if line.starts_with('[') { json!([empty_result(&json!(1))]) } else { Value::Null };
        let head = send_and_answer(&mut fake, &mut bridge, &line, answer).await;
        assert_eq!((header(&head, "mcp-method"), header(&head, "mcp-name")), (method, name), "{line}");
    }
}

/// Compares handshake, list and call, over the bridge and directly, in each revision that a client
/// can offer.
#[tokio::test]
async fn a_server_answers_the_same_over_the_bridge_in_every_revision() {
    let (server, key) = crate::harness::open_phones().await;
    let straight = async |line: &str, revision: Option<&str>| {
        let message: Value = serde_json::from_str(line).expect("JSON");
        let text = |at: &str| message.pointer(at).and_then(Value::as_str);
        let headers = [(REVISION, revision), ("mcp-method", text("/method")), ("mcp-name", text("/params/name"))];
        let post = headers.into_iter().fold(server.post(&key), |post, (name, value)| match value {
            Some(value) => post.header(name, value),
            None => post,
        });
        crate::harness::read(post.body(line.to_owned()).send().await.expect("an answer")).await.1
    };
    for offered in ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let mut bridge = Bridge::with_key(&server.url, &key);
        let is_stateless = offered == "2026-07-28";
        let mut revision = is_stateless.then(|| offered.to_owned());
        if !is_stateless {
            let client = json!({"name": "test", "version": "1"});
            let offer = json!({"protocolVersion": offered, "capabilities": {}, "clientInfo": client});
            let offer = request(1, "initialize", offer);
            let answer = bridge.ask(&offer).await;
            assert_eq!(answer, straight(&offer, None).await);
            revision = answer["result"]["protocolVersion"].as_str().map(str::to_owned);
        }
        let params = |mut params: Value| {
            if is_stateless {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": offered,
                    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
            }
            params
        };
        let page = json!({"name": "list_devices", "arguments": {"limit": 2}});
        let refused = json!({"name": "get_device", "arguments": {"device_id": "phone-9999999"}});
        let unknown = json!({"name": "nothing"});
        let lines = [
            request(2, "server/discover", params(json!({}))),
            request("a", "tools/list", params(json!({}))),
            request(3, "tools/call", params(page)),
            request(4, "tools/call", params(refused)),
            request(5, "tools/call", params(unknown)),
            request(6, "no/such", params(json!({}))),
            format!("[{}]", request(7, "ping", params(json!({})))),
        ];
        for line in lines {
            let expected = straight(&line, revision.as_deref()).await;
            let mut answer = bridge.ask(&line).await;
            if let (Value::Array(all), true) = (&mut answer, expected.is_object()) {
                // The bridge reports the refusal of a whole batch under each id that waits.
                assert_eq!(all[0]["id"], 7);
                answer = json!({"jsonrpc": "2.0", "id": null, "error": all[0]["error"]});
            }
            assert_eq!(answer, expected, "{offered}: {line}");
        }
    }
}
