//! `/v1`: the signed twin of each tool, and all refusals that come before a tool.

use crate::harness::program::Program;
use crate::harness::signed::{Signed, SignedAnswer};
use crate::harness::{Tenant, open_phones, phones};
use cloudphone::phones::contract::CATALOGUE;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_tasks::store::TaskStore;

const PROXY: &str = "/v1/devices/phone-0000001/proxy";

fn proxy(port: u16) -> Value {
    json!({"scheme": "http", "host": "203.0.113.7", "port": port})
}

fn refusal(answer: &SignedAnswer) -> (u16, &str) {
    (answer.status, answer.body["code"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn the_applications_of_mcp_have_the_same_tools_and_permissions_at_v1() {
    let (server, key) = open_phones().await;
    let page = server.v1(&server.sign(&key, "GET", "/v1/devices?limit=2&state=running")).await;
    let same = server.call(&key, "list_devices", json!({"limit": 2, "state": "running"})).await.unwrap();
    assert_eq!((page.status, &page.body), (200, &same));
    let device = server.v1(&server.sign(&key, "GET", "/v1/devices/phone-0000001")).await;
    assert_eq!(device.body, server.call(&key, "get_device", json!({"device_id": "phone-0000001"})).await.unwrap());

    let write = server.sign(&key, "PUT", PROXY).body(proxy(3128)).with_key("k1");
    let made = server.v1(&write).await;
    let task_id = made.body["task_id"].as_str().expect("a task");
    assert_eq!((made.status, made.body["idempotent_hit"].as_bool()), (202, Some(false)), "{made:?}");
    assert_eq!(made.header("location"), Some(format!("/v1/tasks/{task_id}").as_str()));
    let again = server.v1(&server.sign(&key, "PUT", PROXY).body(proxy(3128)).with_key("k1")).await;
    assert_eq!((again.status, &again.body["task_id"], again.header("location")), (200, &json!(task_id), None));
    assert_eq!(again.body["idempotent_hit"], true);
    let by_mcp = json!({"device_id": "phone-0000001", "scheme": "http", "host": "203.0.113.7", "port": 3128, "idempotency_key": "k1"});
    assert_eq!(server.call(&key, "set_proxy", by_mcp).await.unwrap()["task_id"], task_id);
    let task = server.v1(&server.sign(&key, "GET", &format!("/v1/tasks/{task_id}?wait_seconds=0"))).await;
    assert_eq!((task.status, &task.body["status"]), (200, &json!("dispatched")));

    let session = server.v1(&server.sign(&key, "POST", "/v1/devices/phone-0000001/sessions")).await;
    assert_eq!((session.status, &session.body["mode"]), (201, &json!("control")));
    let clear = server.v1(&server.sign(&key, "DELETE", "/v1/devices/phone-0000010/proxy?idempotency_key=c")).await;
    assert_eq!(clear.status, 202, "{clear:?}");
    let power = server.sign(&key, "POST", "/v1/devices/phone-0000011/power").body(json!({"action": "restart"}));
    assert_eq!(server.v1(&power).await.status, 202);

    let (server, keys) = phones(vec![Tenant::with(CATALOGUE.permissions[0].grants)]).await;
    assert_eq!(refusal(&server.v1(&server.sign(&keys[0][0], "PUT", PROXY).body(proxy(1))).await), (403, "forbidden"));
}

/// A name, and a change to a valid request.
type Broken = (&'static str, fn(&mut Signed));

fn header(request: &mut Signed, name: &'static str, value: &str) {
    request.headers.push((name, value.to_owned()));
}

const BROKEN: &[Broken] = &[
    ("a bearer", |r| header(r, "authorization", "Bearer a:b")),
    ("a secret", |r| header(r, "x-api-secret", "a")),
    ("no key", |r| header(r, "x-api-key", "-")),
    ("no time", |r| header(r, "x-timestamp", "-")),
    ("no nonce", |r| header(r, "x-nonce", "-")),
    ("no signature", |r| header(r, "x-signature", "-")),
    ("two keys", |r| r.headers = ["a"; 2].map(|key| ("x-api-key", key.to_owned())).to_vec()),
    ("two nonces", |r| r.headers = ["a"; 2].map(|nonce| ("x-nonce", nonce.to_owned())).to_vec()),
    ("two keys of writes", |r| r.headers = ["a"; 2].map(|key| ("idempotency-key", key.to_owned())).to_vec()),
    ("a short nonce", |r| r.nonce = "n".repeat(15)),
    ("a long nonce", |r| r.nonce = "n".repeat(65)),
    ("another nonce", |r| r.nonce = "n ".repeat(10)),
    ("a time in milliseconds", |r| r.timestamp += "000"),
    ("a signed time", |r| r.timestamp = "+180000000".into()),
    ("a time long ago", |r| r.timestamp = (r.timestamp.parse::<u64>().expect("seconds") - 400).to_string()),
    ("a time to come", |r| r.timestamp = (r.timestamp.parse::<u64>().expect("seconds") + 400).to_string()),
    ("a signature in capitals", |r| header(r, "x-signature", &"A".repeat(64))),
    ("a signature that is short", |r| header(r, "x-signature", &"a".repeat(63))),
    ("another signature", |r| header(r, "x-signature", &"a".repeat(64))),
    ("an unknown key", |r| r.key.id = "cpk_0000000000000000".into()),
    ("another secret", |r| r.key.secret.push('x')),
    ("another path", |r| r.signed_target = Some("/v1/devices/phone-0000002".into())),
    ("another query", |r| r.signed_target = Some("/v1/devices/phone-0000001?a".into())),
    ("a path that was decoded", |r| {
        r.target = "/v1/devices/phone%2D0000001".into();
        r.signed_target = Some("/v1/devices/phone-0000001".into())
    }),
    ("a key of a write that was not signed", |r| header(r, "idempotency-key", "k")),
    ("a path that is nothing", |r| {
        r.target = "/v1/nothing".into();
        r.signed_target = Some("/v1/other".into())
    }),
];

#[tokio::test]
async fn a_request_that_no_live_key_signed_is_401_in_one_shape() {
    let (server, key) = open_phones().await;
    let mut shown = String::new();
    for (case, change) in BROKEN {
        let mut request = server.sign(&key, "GET", "/v1/devices/phone-0000001");
        change(&mut request);
        let answer = server.v1(&request).await;
        let Value::Object(body) = &answer.body else { panic!("{case}: {answer:?}") };
        let members: Vec<_> = body.keys().map(String::as_str).collect();
        assert_eq!(
            (refusal(&answer), members),
            ((401, "unauthenticated"), vec!["code", "message", "retryable", "canonical_request"]),
            "{case}"
        );
        assert_eq!(answer.header("www-authenticate"), Some("CP1-HMAC-SHA256 realm=\"service-cloudphone\""), "{case}");
        assert!(!answer.body.to_string().contains(&key.secret), "{case}");
        let also = if body["canonical_request"].is_string() { " (with the canonical request)" } else { "" };
        shown += &format!("{case}: {}{also}\n", body["message"].as_str().unwrap());
    }
    insta::assert_snapshot!("refused_signatures", shown);
    // The server accepts the same path in the form in which it was sent.
    for target in
        ["/v1/devices/phone%2D0000001", "http://127.0.0.1/v1/devices/phone-0000001", "/v1/devices/phone-0000001?"]
    {
        assert_eq!(server.v1(&server.sign(&key, "GET", target)).await.status, 200, "{target}");
    }
    let mut absolute = server.sign(&key, "GET", "http://127.0.0.1/v1/devices/phone-0000001");
    absolute.signed_target = Some("/http://127.0.0.1/v1/devices/phone-0000001".into());
    assert_eq!(server.v1(&absolute).await.status, 401);
}

#[tokio::test]
async fn a_request_is_taken_once_whatever_it_was_answered() {
    let (server, key) = open_phones().await;
    let first = server.sign(&key, "PUT", PROXY).body(proxy(3128)).with_key("k1");
    let made = server.v1(&first).await;
    let cases: [(&str, Signed, u16); 7] = [
        ("a read", server.sign(&key, "GET", "/v1/devices"), 200),
        ("a write", server.sign(&key, "PUT", "/v1/devices/phone-0000010/proxy").body(proxy(1)), 202),
        ("a hit", server.sign(&key, "PUT", PROXY).body(proxy(3128)).with_key("k1"), 200),
        ("a busy device", server.sign(&key, "PUT", PROXY).body(proxy(99)), 409),
        ("a refused write", server.sign(&key, "PUT", PROXY).body(json!({})), 400),
        ("a session", server.sign(&key, "POST", "/v1/devices/phone-0000001/sessions"), 201),
        ("a path that is nothing", server.sign(&key, "POST", "/v1/nothing"), 404),
    ];
    for (case, request, expected) in &cases {
        let answer = server.v1(request).await;
        assert_eq!(answer.status, *expected, "{case}: {answer:?}");
        assert_eq!(refusal(&server.v1(request).await), (401, "unauthenticated"), "{case}");
        // The nonce of a request is stored unless the request is a read.
        let stored = server.store.marks("nonce", None, 99).await.unwrap();
        let entry = format!("{}\n{}", request.key.id, request.nonce);
        assert_eq!(stored.iter().any(|known| **known == *entry.as_bytes()), *case != "a read", "{case}");
    }
    // A repeat that hits an existing task is not a write of its own, even after the task has ended.
    let ended = server.end(&key, &made.body["task_id"]).await;
    assert_eq!((&ended["terminal"], server.v1(&cases[2].1).await.status), (&json!(true), 401));
    // Another key may use the same nonce.
    let (server, keys) = phones(vec![Tenant { keys: 2, ..Tenant::with(PermissionSet(u64::MAX)) }]).await;
    for key in &keys[0] {
        let request = Signed { nonce: "0123456789abcdef".into(), ..server.sign(key, "GET", "/v1/devices") };
        assert_eq!((server.v1(&request).await.status, server.v1(&request).await.status), (200, 401));
    }
}

#[tokio::test]
async fn of_many_equal_requests_at_once_one_passes() {
    let (server, key) = open_phones().await;
    for request in [server.sign(&key, "GET", "/v1/devices"), server.sign(&key, "PUT", PROXY).body(proxy(5))] {
        let sent = (0..32).map(|_| {
            let (request, address) = (request.clone(), server.address);
            tokio::spawn(async move { request.send(address).await.status })
        });
        let mut passed = 0;
        for answer in sent.collect::<Vec<_>>() {
            passed += usize::from(answer.await.unwrap() != 401);
        }
        assert_eq!(passed, 1);
    }
}

#[tokio::test]
async fn arguments_stand_in_the_path_and_the_query_or_the_body_and_nowhere_twice() {
    let (server, key) = open_phones().await;
    let raw = |method, target: &str, body: &str| Signed { body: body.into(), ..server.sign(&key, method, target) };
    let cases = [
        raw("GET", "/v1/devices?limit=1&limit=2", ""),
        raw("GET", "/v1/devices?limit=%31&state=running", ""),
        raw("GET", "/v1/devices?limit=&cursor=", ""),
        raw("GET", "/v1/devices?limit=1e0", ""),
        raw("GET", "/v1/devices?limit=x", ""),
        raw("GET", "/v1/devices?limit=%22", ""),
        raw("GET", "/v1/devices?limit=[1]", ""),
        raw("GET", "/v1/devices?state=run+ning", ""),
        raw("GET", "/v1/devices?state=run%20ning", ""),
        raw("GET", "/v1/devices?state=%zz", ""),
        raw("GET", "/v1/devices?state=%ff", ""),
        raw("GET", "/v1/devices?&&", ""),
        raw("GET", "/v1/devices?Limit=1", ""),
        raw("GET", "/v1/devices?", "{}"),
        raw("GET", "/v1/devices/phone-0000001?device_id=phone-0000001", ""),
        raw("GET", "/v1/devices/%", ""),
        raw("GET", "/v1/devices/phone%2f1", ""),
        raw("PUT", &format!("{PROXY}?port=1"), "{}"),
        raw("PUT", PROXY, "[]"),
        raw("PUT", PROXY, "{"),
        raw("PUT", PROXY, "{\"port\":1,\"port\":2,\"scheme\":\"http\",\"host\":\"203.0.113.7\"}"),
        raw("PUT", PROXY, "{\"device_id\":\"phone-0000001\",\"port\":1,\"scheme\":\"http\",\"host\":\"203.0.113.7\"}"),
        raw("PUT", PROXY, "{\"port\":1,\"scheme\":\"http\",\"host\":\"203.0.113.7\",\"idempotency_key\":\"k\"}")
            .with_key("l"),
        raw("PUT", PROXY, "{\"port\":\"1\",\"scheme\":\"http\",\"host\":\"203.0.113.7\"}"),
        raw("DELETE", &format!("{PROXY}?idempotency_key=k"), "").with_key("l"),
        raw("DELETE", &format!("{PROXY}?device=b"), ""),
        raw("POST", "/v1/devices/phone-0000001/sessions", "").with_key("k"),
        raw("POST", "/v1/devices/phone-0000001/sessions", "{\"mode\":null}"),
        raw("POST", "/v1/devices/phone-0000001/sessions", " null"),
        raw("PUT", PROXY, "{\"port\":1,\"scheme\":\"http\",\"host\":\"203.0.113.7\",\"idempotency_key\":null}")
            .with_key("l"),
    ];
    let mut shown = String::new();
    for request in cases {
        let answer = server.v1(&request).await;
        let said = if answer.status < 300 { "fine" } else { answer.body["message"].as_str().unwrap() };
        shown += &format!(
            "{} {} {} {}\n  {} {said}\n",
            request.method, request.target, request.idempotency_key, request.body, answer.status
        );
    }
    insta::assert_snapshot!("arguments", shown);
}

/// The status and code of the refusal, and a header of the answer.
type Refused = (Signed, u16, &'static str, Option<(&'static str, &'static str)>);

#[tokio::test]
async fn each_refusal_has_its_status_and_headers_and_its_line_in_the_audit() {
    let budget = Tenant { requests_per_minute: 10, ..Tenant::with(PermissionSet(u64::MAX)) };
    let (server, keys) = phones(vec![budget]).await;
    let key = &keys[0][0];
    let large = Signed { body: format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20)), ..server.sign(key, "PUT", PROXY) };
    let cases: [Refused; 10] = [
        (server.sign(key, "PATCH", PROXY), 405, "method_not_allowed", Some(("allow", "PUT, DELETE"))),
        (server.sign(key, "HEAD", "/v1/nothing"), 404, "", None),
        (server.sign(key, "GET", "/v1/devices/"), 404, "no_route", None),
        (server.sign(key, "GET", "/v1"), 404, "no_route", None),
        (server.sign(key, "GET", "/v1/devices/phone-9999999"), 404, "not_found", None),
        (
            server.sign(key, "PUT", PROXY).body(proxy(1)).header("content-type", "text/plain"),
            415,
            "unsupported_media_type",
            None,
        ),
        (large, 413, "body_too_large", None),
        (server.sign(key, "PUT", PROXY).body(proxy(1)), 202, "", None),
        (server.sign(key, "PUT", PROXY).body(proxy(2)), 409, "device_busy", Some(("retry-after", "15"))),
        (server.sign(key, "GET", "/v1/devices?limit=0"), 400, "invalid_argument", None),
    ];
    for (request, status, code, header) in &cases {
        let answer = server.v1(request).await;
        assert_eq!(refusal(&answer), (*status, *code), "{} {}: {answer:?}", request.method, request.target);
        if let Some((name, value)) = header {
            assert_eq!(answer.header(name), Some(*value), "{answer:?}");
        }
        assert!(answer.header("x-request-id").is_some());
    }
    server.v1(&server.sign(key, "GET", "/v1/devices")).await;
    let late = server.sign(key, "GET", "/v1/devices");
    let spent = server.v1(&late).await;
    let after = spent.body["retry_after_seconds"].to_string();
    assert_eq!((refusal(&spent), spent.header("retry-after")), ((429, "rate_limited"), Some(after.as_str())));
    let kept = server.store.marks("nonce", None, 99).await.unwrap().len();
    let write = server.sign(key, "POST", "/v1/devices/phone-0000002/power").body(json!({"action": "boot"}));
    assert_eq!(refusal(&server.v1(&write).await), (429, "rate_limited"));
    assert_eq!(server.store.marks("nonce", None, 99).await.unwrap().len(), kept);
    server.clock.advance(Duration::from_secs(61));
    for (request, status) in [(&late, 200), (&write, 202)] {
        let answers = [server.v1(request).await, server.v1(request).await];
        assert_eq!(answers.each_ref().map(|answer| answer.status), [status, 401], "{answers:?}");
    }
    let audit = server.audit().await;
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| format!("{} {}", line["tool"].as_str().unwrap(), line["outcome"].as_str().unwrap()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// Nor is an accepted request accepted again.
#[tokio::test]
async fn after_a_restart_a_read_that_was_signed_before_it_can_be_signed_again_when_the_answer_says() {
    let mut program = Program::start(&[]).await;
    let key = program.keys[0].clone();
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let signed = |method, target: &str| Signed::at(now(), &key, method, target);
    let late = |method, target: &str| Signed::at(now() - 280, &key, method, target);
    let sent = [
        ("a write", signed("PUT", PROXY).body(proxy(1)).with_key("k"), 202),
        ("a hit", signed("PUT", PROXY).body(proxy(1)).with_key("k"), 200),
        ("a refused write", signed("PUT", PROXY).body(proxy(2)), 409),
        ("a session", signed("POST", "/v1/devices/phone-0000001/sessions"), 201),
        ("a read that was signed ahead", Signed::at(now() + 60, &key, "GET", "/v1/devices"), 200),
    ];
    let first = late("GET", "/v1/devices");
    assert_eq!(first.send(program.address).await.status, 200);
    for (case, request, status) in &sent {
        let answer = request.send(program.address).await;
        assert_eq!(answer.status, *status, "{case}: {answer:?}");
    }
    // The server does not know if it has answered a read that was signed before its start.
    let read = signed("GET", "/v1/devices");
    for (killed, phone) in [(true, "phone-0000010"), (false, "phone-0000011")] {
        if killed {
            program.kill().await
        } else {
            program.stop().await
        }
        program = program.again(&[]).await;
        for (case, request, _) in &sent {
            assert_eq!(request.send(program.address).await.status, 401, "{case}, killed: {killed}");
        }
        assert_eq!(read.send(program.address).await.status, 503, "killed: {killed}");
        for request in [first.clone(), late("GET", "/v1/devices")] {
            let answer = request.send(program.address).await;
            assert_eq!(refusal(&answer), (503, "overloaded"), "killed: {killed}");
            let seconds: u64 = answer.header("retry-after").expect("seconds").parse().expect("a number");
            assert!((270..=300).contains(&seconds), "{seconds}");
        }
        let write = late("PUT", &format!("/v1/devices/{phone}/proxy")).body(proxy(1));
        assert_eq!(write.send(program.address).await.status, 202, "killed: {killed}");
    }
}

#[tokio::test]
async fn the_openapi_document_is_public_and_a_bearer_is_refused() {
    let (server, key) = open_phones().await;
    let plain = |lines: &str| Signed { target: "/v1/openapi.json".into(), ..server.sign(&key, "GET", lines) };
    let unsigned = ["x-api-key", "x-timestamp", "x-nonce", "x-signature"].map(|name| (name, "-".to_owned()));
    let public = Signed { headers: unsigned.to_vec(), ..plain("") };
    let answer = server.v1(&public).await;
    let mut document: Value = serde_json::from_str(CATALOGUE.openapi).unwrap();
    let not_offered = CATALOGUE.tools.iter().filter(|tool| tool.toolset.is_some());
    let not_offered: Vec<_> = not_offered.filter_map(|tool| Some(tool.http.as_ref()?.path)).collect();
    document["paths"].as_object_mut().unwrap().retain(|path, _| !not_offered.contains(&path.as_str()));
    assert_eq!((answer.status, answer.body), (200, document));
    let posted = Signed { method: "POST", ..public.clone() };
    assert_eq!(server.v1(&posted).await.status, 401);
    assert_eq!(server.v1(&server.sign(&key, "POST", "/v1/openapi.json")).await.status, 405);
    assert_eq!(server.v1(&public.header("authorization", "Bearer a:b")).await.status, 401);
}

#[tokio::test]
async fn below_a_public_url_with_a_path_the_path_that_arrives_is_signed_and_answers_name_the_public_one() {
    let program = Program::start(&["--public-url", "https://phones.example/base/"]).await;
    let (address, key) = (program.address, &program.keys[0]);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let made = Signed::at(now, key, "PUT", PROXY).body(proxy(1)).send(address).await;
    let expected = format!("/base/v1/tasks/{}", made.body["task_id"].as_str().unwrap());
    assert_eq!((made.status, made.header("location")), (202, Some(expected.as_str())));
    let asked =
        Signed { headers: vec![("x-signature", "-".into())], ..Signed::at(now, key, "GET", "/v1/openapi.json") };
    assert_eq!(asked.send(address).await.body["servers"], json!([{"url": "/base"}]));
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let begun = kit::rpc(address, key, "initialize", &params).await.expect("an answer");
    assert_eq!(begun["result"]["_meta"]["toolwarrant/contract"]["url"], "/base/v1/contract.json", "{begun}");
    assert_eq!(begun["result"]["serverInfo"]["version"], env!("CARGO_PKG_VERSION"), "as of --version: {begun}");
    let plain =
        Signed { headers: vec![("x-signature", "-".into())], ..Signed::at(now, key, "GET", "/v1/contract.json") };
    assert_eq!(plain.send(address).await.status, 200);
}
