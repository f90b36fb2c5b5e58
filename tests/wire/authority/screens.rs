//! The screen page: a pass opens one phone in one mode, until the right of its key ends.

use super::{PHONE, TAKEN, take, tenant};
use crate::harness::stream::NEVER;
use crate::harness::{Key, Server, Tenant, read, serve_screens};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use toolwarrant::contract::PermissionSet;
use toolwarrant_core::store::ApplicationRow;
use toolwarrant_testing::test_origin;

const LASTS: Duration = Duration::from_mins(30);

async fn open(mode: &str) -> (Server, Key, String) {
    let (server, keys) = serve_screens(vec![tenant()]).await;
    let token = issue(&server, &keys[0][0], PHONE, mode).await;
    (server, keys[0][0].clone(), token)
}

async fn issue(server: &Server, key: &Key, phone: &str, mode: &str) -> String {
    let session = server.call(key, "create_session", json!({"device_id": phone, "mode": mode})).await;
    let session = session.expect("a session");
    let token = session["token"].as_str().expect("a token").to_owned();
    assert_eq!(session["url"], format!("http://{}/screen#{token}", server.address));
    token
}

async fn ask(server: &Server, token: &str, method: Method, path: &str, body: &str) -> Response {
    let request = server.http.request(method, format!("http://{}{path}", server.address)).bearer_auth(token);
    request.header("content-type", "application/json").body(body.to_owned()).send().await.expect("an answer")
}

async fn input(server: &Server, token: &str, body: &str) -> (u16, Value) {
    read(ask(server, token, Method::POST, "/screen/input", body).await).await
}

async fn still(server: &Server, token: &str, after: &str) -> Response {
    ask(server, token, Method::GET, &format!("/screen/still?after={after}"), "").await
}

fn number(still: &Response) -> String {
    assert_eq!(still.status(), 200);
    still.headers()["x-still"].to_str().expect("text").to_owned()
}

fn hold(server: &Server, token: &str, after: &str) -> JoinHandle<u16> {
    let url = format!("http://{}/screen/still?after={after}", server.address);
    let request = server.http.get(url).bearer_auth(token);
    tokio::spawn(async move { request.send().await.expect("an answer").status().as_u16() })
}

/// Returns when all are held: then a session gets no further answer.
async fn hold_four(server: &Server, token: &str, after: &str) -> Vec<JoinHandle<u16>> {
    let held = (0..4).map(|_| hold(server, token, after)).collect();
    let (status, full) = loop {
        // More than ten in a second are too many, too.
        server.clock.advance(Duration::from_millis(200));
        let answer = ask(server, token, Method::GET, "/screen/session", "").await;
        if answer.status() != 200 {
            break read(answer).await;
        }
    };
    assert_eq!((status, full["message"].as_str()), (429, Some("too many requests of this session at a time")));
    held
}

#[tokio::test]
async fn a_held_picture_ends_with_the_right_of_its_key_and_with_its_time() {
    for (what, status) in TAKEN.map(|(what, _)| what).into_iter().zip([401, 401, 403, 404]).chain([("time", 401)]) {
        let (server, key, token) = open("control").await;
        let after = number(&still(&server, &token, "0").await);
        let held = hold_four(&server, &token, &after).await;
        match what {
            "time" => server.clock.advance(LASTS),
            what => take(&server, &key, what).await,
        }
        let mut ends = Vec::new();
        for held in held {
            ends.push(held.await.expect("it ran"));
        }
        assert_eq!(ends, [status; 4], "{what}");
        assert_eq!(still(&server, &token, "0").await.status(), 401, "{what}: the pass has ended for good");
    }
}

#[tokio::test]
async fn a_pass_opens_the_page_of_its_phone_in_its_mode_and_nothing_else() {
    let (server, key, token) = open("view").await;
    let page = ask(&server, "", Method::GET, "/screen", "").await;
    let policy = page.headers()["content-security-policy"].to_str().expect("text").to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
    assert_eq!((page.status().as_u16(), &page.headers()["referrer-policy"]), (200, &"no-referrer".parse().unwrap()));
    let (status, session) = read(ask(&server, &token, Method::GET, "/screen/session", "").await).await;
    assert_eq!((status, &session["device_id"], &session["mode"]), (200, &json!(PHONE), &json!("view")));
    number(&still(&server, &token, "0").await);
    let (status, refused) = input(&server, &token, r#"{"key":"home"}"#).await;
    assert_eq!((status, &refused["code"]), (403, &json!("forbidden")));

    let pair = format!("{}:{}", key.id, key.secret);
    let wrong = "0".repeat(64);
    for (token, method, path, expected) in [
        (token.as_str(), Method::POST, "/mcp", 401),
        (&token, Method::GET, "/v1/devices", 401),
        (&token, Method::GET, "/mcp", 405),
        (&wrong, Method::GET, "/screen/still?after=0", 401),
        (&pair, Method::GET, "/screen/still?after=0", 401),
        ("", Method::GET, "/screen/still?after=0", 401),
        (&wrong, Method::POST, "/screen/input", 401),
        (&token, Method::GET, "/screen/", 404),
        (&token, Method::GET, "/screen/other", 404),
        (&token, Method::DELETE, "/screen/still", 405),
        (&token, Method::POST, "/screen", 405),
    ] {
        let answer = ask(&server, token, method.clone(), path, "{}").await;
        assert_eq!(answer.status(), expected, "{method} {path}");
    }
}

#[tokio::test]
async fn a_right_that_is_given_back_revives_no_session() {
    let (server, key, token) = open("view").await;
    let id = server.registry.find("app-0").await.expect("the application").id;
    let had = server.registry.find("app-0").await.expect("the application").permissions;
    take(&server, &key, "the permissions").await;
    // Other work goes on meanwhile, and nobody asks for the screen.
    assert_eq!(ask(&server, "", Method::GET, "/screen", "").await.status(), 200);
    let edit = |row: &mut ApplicationRow| row.permissions.clone_from(&had);
    drop(server.registry.change(&id, &test_origin(), edit).await.expect("given back"));
    assert_eq!(still(&server, &token, "0").await.status(), 401);
    server.call(&key, "create_session", json!({"device_id": PHONE})).await.expect("another session");
}

#[tokio::test]
async fn a_picture_is_one_of_now() {
    let (server, _, token) = open("control").await;
    let first = number(&still(&server, &token, "0").await);
    assert_eq!(input(&server, &token, r#"{"touch":{"x":112,"y":420}}"#).await.0, 204);
    server.clock.advance(Duration::from_secs(2));
    let second = number(&still(&server, &token, "0").await);
    assert_ne!(first, second, "the touch has opened another screen meanwhile");
}

#[tokio::test]
async fn an_unsound_input_says_what_is_taken_and_no_more_than_twenty_are_taken_in_a_second() {
    let (server, _, token) = open("control").await;
    let touch = r#"{"touch":{"x":359,"y":639}}"#;
    let (status, early) = input(&server, &token, touch).await;
    assert_eq!((status, &early["code"]), (400, &json!("invalid_argument")), "no picture was shown yet");
    number(&still(&server, &token, "0").await);
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(201));
    let refused = [
        r#"{"touch":{"x":360,"y":0}}"#,
        r#"{"touch":{"x":-1,"y":0}}"#,
        r#"{"swipe":{"from":{"x":1,"y":1},"to":{"x":1,"y":2},"milliseconds":5001}}"#,
        r#"{"key":"menu"}"#,
        r#"{"text":""}"#,
        r#"{"text":"a\nb"}"#,
        long.as_str(),
        r#"{"touch":{"x":1,"y":1},"key":"home"}"#,
        "",
        "[]",
    ];
    for body in refused {
        let (status, answer) = input(&server, &token, body).await;
        assert_eq!((status, &answer["code"]), (400, &json!("invalid_argument")), "{body}");
        server.clock.advance(Duration::from_secs(1));
    }
    number(&still(&server, &token, "0").await);
    let mut statuses = Vec::new();
    for _ in 0..81 {
        statuses.push(input(&server, &token, touch).await.0);
    }
    assert_eq!(statuses, [&[204; 20][..], &[429; 61]].concat());
    // After as many failed authentications, answers would wait, or end their connections.
    let mut further = JoinSet::new();
    for _ in 0..12 {
        let request = server.http.post(format!("http://{}/screen/input", server.address)).bearer_auth(&token);
        further.spawn(request.header("content-type", "application/json").body(touch).send());
    }
    for answer in further.join_all().await {
        let answer = answer.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.headers().get("connection")), (429, None));
    }
}

#[tokio::test]
async fn the_audit_says_when_a_page_was_opened_and_closed_and_has_neither_token_nor_typed_text() {
    let (server, _, token) = open("control").await;
    number(&still(&server, &token, "0").await);
    assert_eq!(input(&server, &token, r#"{"text":"hunter2"}"#).await.0, 204);
    while !trail(&server).await.contains("closed") {
        server.clock.advance(Duration::from_secs(1));
    }
    let audit = server.audit().await;
    assert!(!audit.contains(&token) && !audit.contains("hunter2"), "{audit}");
    assert_eq!(audit.matches(r#""event":"opened","mode":"control""#).count(), 1, "{audit}");
    assert!(audit.contains(r#""event":"closed","mode":"control","reads":1,"inputs":1"#), "{audit}");
}

async fn trail(server: &Server) -> String {
    assert!(server.audit_handle.flush().await, "the audit is written");
    let files = std::fs::read_dir(&server.audit).expect("a folder").flatten();
    files.map(|file| std::fs::read_to_string(file.path()).expect("text")).collect()
}

#[tokio::test]
async fn a_phone_and_an_application_have_places_for_some_viewers() {
    let (server, keys) = serve_screens(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    let mut held = Vec::new();
    for _ in 0..32 {
        let token = issue(&server, &keys[0][0], PHONE, "view").await;
        let after = number(&still(&server, &token, "0").await);
        held.push((hold(&server, &token, &after), token));
    }
    let (status, full) = loop {
        // More than ten in a second are too many, too.
        server.clock.advance(Duration::from_millis(200));
        let answer = still(&server, &held[0].1, "0").await;
        if answer.status() != 200 {
            break read(answer).await;
        }
    };
    assert_eq!((status, &full["code"]), (429, &json!("rate_limited")), "{full}");
    assert!(full["message"].as_str().expect("text").starts_with("at most 32 people"), "{full}");
}

#[tokio::test]
async fn a_page_that_is_opened_again_costs_a_request_and_writes_no_line_once_the_budget_is_spent() {
    for (method, path) in
        [(Method::GET, "/screen/still?after=0"), (Method::GET, "/screen/session"), (Method::POST, "/screen/input")]
    {
        let (server, keys) = serve_screens(vec![Tenant { requests_per_minute: 3, ..tenant() }]).await;
        let ask = async |token: &str| ask(&server, token, method.clone(), path, "{}").await;
        let mut links = Vec::new();
        for _ in 0..3 {
            links.push(issue(&server, &keys[0][0], PHONE, "control").await);
        }
        let [first, second, unused] = &links[..] else { panic!("three") };
        for token in [first, second] {
            assert_ne!(ask(token).await.status(), 429, "{path}: the call that issued it has paid");
        }
        while trail(&server).await.matches("closed").count() < 2 {
            server.clock.advance(Duration::from_secs(1));
        }
        server.clock.advance(Duration::from_secs(61));
        assert_ne!(ask(first).await.status(), 429, "{path}");
        for is_taken in [true, true, false] {
            let called = server.call(&keys[0][0], "get_device", json!({"device_id": PHONE})).await;
            assert_eq!(called.is_ok(), is_taken, "{path}: {called:?}");
        }
        let refused = ask(second).await;
        assert_eq!(refused.status(), 429, "{path}");
        let (_, refused) = read(refused).await;
        assert_ne!(ask(unused).await.status(), 429, "{path}");
        assert_eq!(trail(&server).await.matches("opened").count(), 4, "{path}");
        server.clock.advance(Duration::from_secs(refused["retry_after_seconds"].as_u64().expect("a time")));
        assert_ne!(ask(second).await.status(), 429, "{path}");
    }
}

#[tokio::test]
async fn the_links_of_an_application_that_has_few_outlive_the_oldest_of_one_that_has_too_many() {
    let (server, keys) = serve_screens((0..2).map(|_| Tenant::with(PermissionSet(u64::MAX))).collect()).await;
    let mut links = Vec::new();
    for key in [&keys[0][0], &keys[1][0], &keys[1][0]] {
        links.push(issue(&server, key, PHONE, "view").await);
        server.clock.advance(Duration::from_secs(1));
    }
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "create_session", "arguments": {"device_id": PHONE}}});
    for calls in [[50; 19].as_slice(), &[49]].concat() {
        let (_, answers) = server.send(&keys[1][0], json!(vec![&call; calls]).to_string()).await;
        assert_eq!(answers[calls - 1]["result"]["isError"], false);
    }
    let mut statuses = Vec::new();
    for token in &links {
        statuses.push(still(&server, token, "0").await.status().as_u16());
    }
    assert_eq!(statuses, [200, 401, 200]);
}

#[tokio::test]
async fn an_application_that_has_few_viewers_gets_a_place_of_one_that_has_most() {
    let tenants = (0..3).map(|_| Tenant::with(PermissionSet(u64::MAX))).collect();
    let (server, keys) = serve_screens(tenants).await;
    let mut held = JoinSet::new();
    for (n, keys) in keys.iter().enumerate() {
        // An address may have 256 connections.
        let client = Client::builder().local_address(IpAddr::from([127, 0, 0, 2 + n as u8])).timeout(NEVER);
        let client = client.build().expect("a client");
        let ask = |token: &str, after: &str| {
            let url = format!("http://{}/screen/still?after={after}", server.address);
            client.get(url).bearer_auth(token).send()
        };
        let probe = issue(&server, &keys[0], "phone-0000009", "view").await;
        if n == 2 {
            number(&ask(&probe, "0").await.expect("an answer"));
            break;
        }
        // Each session has four requests, and each phone 32 places.
        for phone in [1, 5, 6, 8].into_iter().flat_map(|phone| [phone; 8]) {
            let token = issue(&server, &keys[0], &format!("phone-000000{phone}"), "view").await;
            let after = number(&ask(&token, "0").await.expect("an answer"));
            for _ in 0..4 {
                let asked = ask(&token, &after);
                held.spawn(async move { (n, read(asked.await.expect("an answer")).await) });
            }
        }
        while ask(&probe, "0").await.expect("an answer").status() == 200 {
            // More than ten in a second are too many, too.
            server.clock.advance(Duration::from_millis(200));
        }
    }
    let (n, (status, answer)) = held.join_next().await.expect("a request").expect("it ran");
    assert_eq!((n, status, held.try_join_next().is_none()), (0, 429, true), "{answer}");
    assert!(answer["message"].as_str().expect("text").starts_with("at most 256 people"), "{answer}");
}
