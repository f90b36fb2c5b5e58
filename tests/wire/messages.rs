//! The wire table: the answer to each request to the endpoint, row by row.

use crate::harness::signed::Signed;
use crate::harness::{Server, Tenant, base_tools, open_phones, outcome, phones, read};
use crate::wire::authority::{PHONE, body as call, serve_waiting};
use cloudphone::phones::contract::CATALOGUE;
use reqwest::Response;
use serde_json::{Value, json};
use toolwarrant_core::catalogue::PermissionSet;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// Status, and the id, number and code of the JSON-RPC error that is the answer to these bodies.
type Rows<'a> = (u16, Value, i64, &'a str, &'a [&'a str]);

#[tokio::test]
async fn every_unsound_message_is_refused_as_the_table_says() {
    let (server, key) = open_phones().await;
    let batch = format!("[{}]", vec![LIST; 51].join(","));
    let no_json =
        ["", "{", r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, "\u{feff}\u{feff}{}", "[{]", r#"[["2.0",1,"ping"]"#];
    let without_id = [
        "\u{feff}{}",
        "7",
        "null",
        "{}",
        "[]",
        &batch,
        r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1e3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
    ];
    let invalid = [
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
    ];
    let unknown =
        [r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#];
    let params = [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_device","arguments":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}"#,
    ];
    let tool = [r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such"}}"#];
    let rows: [Rows<'_>; 6] = [
        (400, Value::Null, -32700, "parse_error", &no_json),
        (400, Value::Null, -32600, "invalid_request", &without_id),
        (400, json!(1), -32600, "invalid_request", &invalid),
        (200, json!(1), -32601, "method_not_found", &unknown),
        (200, json!(1), -32602, "invalid_params", &params),
        (200, json!(1), -32602, "unknown_tool", &tool),
    ];
    for (status, id, number, code, bodies) in rows {
        for body in bodies {
            let (got, answer) = server.send(&key, (*body).to_owned()).await;
            let error = &answer["error"];
            assert_eq!((got, &answer["id"], &error["code"]), (status, &id, &json!(number)), "{body}: {answer}");
            let data = &error["data"];
            assert_eq!((&data["code"], &data["message"]), (&json!(code), &error["message"]), "{body}: {answer}");
            assert!(data["retryable"].is_boolean(), "{body}: {answer}");
        }
    }
}

#[tokio::test]
async fn an_id_comes_back_as_it_was_sent() {
    let (server, key) = open_phones().await;
    for id in ["1", "-7", "0", "123456789012345678901234567890", r#""1""#, r#""""#, r#""a\u00e9\"\n""#] {
        let request = server.post(&key).body(format!(r#"{{"method":"ping","id":{id},"jsonrpc":"2.0"}}"#));
        let text = request.send().await.expect("an answer").text().await.expect("text");
        assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[tokio::test]
async fn a_batch_is_answered_member_by_member_and_silence_by_202() {
    let (server, key) = open_phones().await;
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    for silent in [notification.to_owned(), response.to_owned(), format!("[{notification},{response}]")] {
        assert_eq!(server.send(&key, silent).await, (202, Value::Null));
    }
    let (status, answer) = server.send(&key, format!("[{ping}]")).await;
    assert_eq!(
        (status, answer),
        (200, json!([{"jsonrpc": "2.0", "id": "p", "result": {}}])),
        "a batch of one stays a batch"
    );
    let (status, answer) =
        server.send(&key, format!("[{ping},{notification},[\"2.0\",1,\"ping\"],{LIST},{{\"id\":3}}]")).await;
    let ids: Vec<_> = answer.as_array().expect("a list").iter().map(|member| member["id"].clone()).collect();
    assert_eq!((status, ids), (200, vec![json!("p"), Value::Null, json!(1), json!(3)]));
    assert_eq!((&answer[1]["error"]["code"], &answer[3]["error"]["code"]), (&json!(-32600), &json!(-32600)));
    let most = format!("[{}]", vec![LIST; 50].join(","));
    assert_eq!(server.send(&key, most).await.1.as_array().map(Vec::len), Some(50));
}

#[tokio::test]
async fn the_server_names_itself_and_announces_tools_and_no_notification() {
    let (server, key) = open_phones().await;
    let answer = server.rpc(&key, "initialize", json!({})).await;
    let server_info = &answer["result"]["serverInfo"];
    assert_eq!((&server_info["name"], &server_info["version"]), (&json!("service-cloudphone"), &json!("0")));
    assert_eq!(
        answer["result"]["capabilities"],
        json!({"tools": {}}),
        "neither `listChanged` nor anything to subscribe to"
    );
}

async fn send(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let method = method.parse().expect("a method");
    let mut request = server.http.request(method, format!("http://{}{path}", server.address));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(LIST).send().await.expect("an answer")
}

#[tokio::test]
async fn any_method_but_post_is_answered_405_with_the_advice_to_use_post() {
    let (server, key) = open_phones().await;
    for method in ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"] {
        let stranger = [("origin", "https://evil.example")];
        let client = [("accept", "text/event-stream"), ("x-api-key", &key.id), ("x-api-secret", &key.secret)];
        for headers in [&stranger[..], &client[..]] {
            let response = send(&server, method, "/mcp", headers).await;
            assert_eq!((response.status().as_u16(), response.headers()["allow"].as_bytes()), (405, &b"POST"[..]));
            let (_, answer) = read(response).await;
            assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("Use POST")), "{answer}");
        }
    }
}

#[tokio::test]
async fn only_a_post_of_application_json_is_taken() {
    let (server, key) = open_phones().await;
    let credentials = [("x-api-key", key.id.as_str()), ("x-api-secret", key.secret.as_str())];
    let types = [
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/jsonp", 415),
        ("", 415),
    ];
    for (content_type, expected) in types {
        let headers = [&credentials[..], &[("content-type", content_type)]].concat();
        assert_eq!(send(&server, "POST", "/mcp", &headers).await.status(), expected, "{content_type}");
        assert_eq!(send(&server, "POST", "/mcp/", &headers).await.status(), expected, "{content_type}");
    }
}

#[tokio::test]
async fn a_body_in_an_encoding_is_refused_with_the_encodings_that_are_taken() {
    let (server, key) = open_phones().await;
    let encodings: [(&[&str], u16); 7] = [
        (&["gzip"], 415),
        (&["br"], 415),
        (&["gzip, identity"], 415),
        (&["identity", "gzip"], 415),
        (&["identity"], 200),
        (&["Identity"], 200),
        (&[""], 200),
    ];
    for (encodings, expected) in encodings {
        let mut asked = server.post(&key);
        let mut signed = server.sign(&key, "POST", "/v1/devices/phone-0000001/sessions").body(json!({}));
        for encoding in encodings {
            asked = asked.header("content-encoding", *encoding);
            signed = signed.header("content-encoding", encoding);
        }
        let response = asked.body(LIST).send().await.expect("an answer");
        let (status, taken) = (response.status().as_u16(), response.headers().get("accept-encoding").cloned());
        let (_, answer) = read(response).await;
        let signed = server.v1(&signed).await;
        assert_eq!((status, signed.status), (expected, if expected == 200 { 201 } else { expected }), "{encodings:?}");
        if expected == 415 {
            assert_eq!(
                (taken, signed.header("accept-encoding")),
                (Some("identity".parse().expect("text")), Some("identity"))
            );
            let message = answer["error"]["message"].as_str().expect("a message");
            assert!(message.contains("Content-Encoding") && message.contains("`identity`"), "{message}");
            assert_eq!(signed.body["message"], message);
        }
    }
}

#[tokio::test]
async fn tools_are_served_at_mcp_and_nowhere_else() {
    let (server, key) = open_phones().await;
    let headers = [("content-type", "application/json"), ("x-api-key", &key.id), ("x-api-secret", &key.secret)];
    let (status, answer) = read(send(&server, "POST", "/mcp", &headers).await).await;
    assert!(status == 200 && answer["result"]["tools"].is_array(), "{answer}");
    let elsewhere = [
        ("POST", "/", 404),
        ("POST", "/mcp/tools", 404),
        ("POST", "/sse", 404),
        ("GET", "/.well-known/oauth-authorization-server", 404),
        ("GET", "/.well-known/oauth-protected-resource/mcp", 404),
        ("GET", "/mcp/.well-known/openid-configuration", 404),
        ("GET", "/authorize", 404),
        ("POST", "/token", 404),
        ("POST", "/register", 400),
        ("GET", "/", 404),
    ];
    for (method, path, expected) in elsewhere {
        let (status, answer) = read(send(&server, method, path, &headers).await).await;
        assert_eq!(status, expected, "{path}: {answer}");
        assert!(answer["code"].is_string() && answer["message"].is_string(), "{path}: {answer}");
    }
}

#[tokio::test]
async fn no_session_is_kept_between_requests() {
    let (server, key) = open_phones().await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices"}}"#;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let mut answers = Vec::new();
    for (body, session) in [(call, None), (initialize, None), (call, None), (call, Some("of-no-one"))] {
        let mut request = server.post(&key).body(body);
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let response = request.send().await.expect("an answer");
        assert!(!response.headers().contains_key("mcp-session-id") && !response.headers().contains_key("set-cookie"));
        answers.push(read(response).await);
    }
    assert_eq!(answers[0].0, 200);
    assert!(answers[0] == answers[2] && answers[0] == answers[3], "what came before changes no answer");
}

#[tokio::test]
async fn every_answer_is_one_json_body_even_if_the_client_accepts_a_stream() {
    let (server, key) = open_phones().await;
    let write = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"set_power","arguments":{"device_id":"phone-0000001","action":"restart"}}}"#;
    for body in [LIST, write, &format!("[{LIST},{LIST}]")] {
        for accept in ["text/event-stream", "application/json, text/event-stream", "application/json"] {
            let response = server.post(&key).header("accept", accept).body(body.to_owned()).send().await;
            let response = response.expect("an answer");
            assert_eq!(response.headers()["content-type"], "application/json", "{accept}");
            assert_eq!(read(response).await.0, 200, "{accept}");
        }
    }
}

#[tokio::test]
async fn params_may_be_left_out() {
    let (server, key) = open_phones().await;
    let null = json!({"jsonrpc": "2.0", "id": 1, "params": null});
    for (method, absent) in
        ["tools/list", "ping", "initialize"].map(|method| [(method, false), (method, true)]).concat()
    {
        let mut body = null.clone();
        body["method"] = method.into();
        if absent {
            body.as_object_mut().expect("an object").remove("params");
        }
        for body in [body.clone(), json!([body])].into_iter().take(if method == "initialize" { 1 } else { 2 }) {
            let (status, answer) = server.send(&key, body.to_string()).await;
            let answer = answer.get(0).unwrap_or(&answer);
            assert!(status == 200 && answer["result"].is_object(), "{body}: {answer}");
        }
    }
    for (tool, code) in [("list_devices", None), ("get_device", Some("invalid_argument"))] {
        let answer = server.rpc(&key, "tools/call", json!({"name": tool, "arguments": null, "_meta": null})).await;
        assert_eq!(
            outcome(&answer).err().and_then(|failure| failure["code"].as_str().map(str::to_owned)).as_deref(),
            code
        );
    }
}

#[tokio::test]
async fn a_byte_order_mark_before_a_body_is_skipped() {
    let (server, key) = open_phones().await;
    for body in [LIST.to_owned(), format!("[{LIST}]"), format!(" \n{LIST}")] {
        assert_eq!(server.send(&key, format!("\u{feff}{body}")).await, server.send(&key, body).await);
    }
    for (body, status) in [("\u{feff}", 201), ("\u{feff}{}", 201), ("\u{feff}\u{feff}{}", 400)] {
        let signed = server.sign(&key, "POST", "/v1/devices/phone-0000001/sessions");
        let signed = Signed { body: body.to_owned(), ..signed };
        assert_eq!(server.v1(&signed).await.status, status, "{body:?}");
    }
}

#[tokio::test]
async fn pages_of_other_origins_and_foreign_hosts_are_refused() {
    let (server, key) = open_phones().await;
    let rows = [
        ("origin", "https://allowed.example", 200),
        ("origin", "https://evil.example", 403),
        ("host", "evil.example", 403),
    ];
    for (header, value, expected) in rows {
        let response = server.post(&key).header(header, value).body(LIST).send().await.expect("an answer");
        let allowed = response.headers().get("access-control-allow-origin").map(|origin| origin.as_bytes().to_vec());
        assert_eq!(allowed.is_some(), header == "origin" && expected == 200, "{value}");
        let (status, answer) = read(response).await;
        assert_eq!(status, expected, "{header} {value}");
        if expected == 403 {
            let message = answer["error"]["message"].as_str().expect("a message");
            assert!(message.contains(&format!("--allow-{header}")), "{message}");
        }
    }
    let preflight = ("access-control-request-method", "POST");
    let rows = [
        ("OPTIONS", "/mcp", &[preflight][..], 204),
        ("OPTIONS", "/v1/devices", &[preflight], 204),
        ("OPTIONS", "/mcp", &[], 405),
        ("GET", "/mcp", &[("accept", "text/event-stream")], 405),
        ("DELETE", "/mcp", &[], 405),
        ("POST", "/mcp", &[], 401),
        ("POST", "/register", &[], 400),
        ("GET", "/nothing", &[], 404),
        ("GET", "/v1/devices", &[], 401),
        ("GET", "/v1/contract.json", &[], 200),
    ];
    for (method, path, headers, expected) in rows {
        for (origin, is_allowed) in [("https://allowed.example", true), ("https://evil.example", false)] {
            let response = send(&server, method, path, &[headers, &[("origin", origin)]].concat()).await;
            let allowed = response.headers().get("access-control-allow-origin").cloned();
            assert_eq!(allowed.is_some_and(|allowed| allowed == origin), is_allowed, "{method} {path} of {origin}");
            assert!(!is_allowed || response.status() == expected, "{method} {path}: {response:?}");
        }
    }
}

#[tokio::test]
async fn a_call_with_a_prefixed_name_is_answered_with_the_right_name() {
    let (server, key) = open_phones().await;
    let answer = server.rpc(&key, "tools/call", json!({"name": "mcp__phones__list_devices"})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(
        answer["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("the server's own name is `list_devices`"))
    );
}

#[tokio::test]
async fn a_panic_is_a_result_and_a_line_in_the_audit_and_the_connection_goes_on() {
    let (server, key, vendor) = serve_waiting().await;
    // Each reading of the platform panics.
    vendor.open.close();
    let body = call("get_device", json!({"device_id": PHONE}));
    let response = server.post(&key).header("x-request-id", "mine.1").body(body).send().await.expect("an answer");
    assert_eq!(response.headers()["x-request-id"], "mine.1");
    let (status, answer) = read(response).await;
    let failure = outcome(&answer).unwrap_err();
    assert_eq!(
        (status, &answer["id"], &failure["code"], &failure["request_id"]),
        (200, &json!(7), &json!("internal"), &json!("mine.1"))
    );
    assert!(!answer.to_string().contains("it stays"), "what a panic says stays here");
    assert_eq!(server.list(&key).await.len(), base_tools(&CATALOGUE).count());
    assert!(server.audit().await.contains(r#""outcome":"internal""#));
}

#[tokio::test]
async fn a_request_id_that_cannot_stand_in_a_log_is_replaced() {
    let (server, key) = open_phones().await;
    for (sent, kept) in [("abc-1_2.3", true), ("a b", false), ("", false), (&"x".repeat(65), false)] {
        let response = server.post(&key).header("x-request-id", sent).body(LIST).send().await.expect("an answer");
        assert_eq!(response.headers()["x-request-id"] == sent, kept, "{sent}");
    }
}

#[tokio::test]
async fn a_key_without_permissions_can_still_ask_what_it_may_do() {
    let (server, keys) = phones(vec![Tenant::with(PermissionSet::default())]).await;
    assert_eq!(server.list(&keys[0][0]).await, Vec::<Value>::new());
    let failure = server.call(&keys[0][0], "list_devices", json!({})).await.unwrap_err();
    assert_eq!((&failure["code"], &failure["retryable"]), (&json!("forbidden"), &json!(false)));
    let message = failure["message"].as_str().expect("a message");
    assert!(message.contains("`device_read`") && message.contains("operator"), "{message}");
}
