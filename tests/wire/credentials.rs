//! Authentication with either form of credentials, and the things that the keys of an application
//! share.

use crate::harness::{Key, Server, Tenant, open_phones, phones, read, tools_with};
use cloudphone::phones::contract::CATALOGUE as PHONES;
use reqwest::Response;
use serde_json::{Value, json};
use toolwarrant_core::catalogue::PermissionSet;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices"}}"#;

async fn send(server: &Server, headers: &[(&str, &str)]) -> Response {
    let mut request = server.http.post(&server.url).header("content-type", "application/json").body(LIST);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.expect("an answer")
}

const KEY: &str = "x-api-key";
const SECRET: &str = "x-api-secret";
const BEARER: &str = "authorization";

#[tokio::test]
async fn a_pair_of_headers_and_a_bearer_are_equivalent() {
    let (server, Key { id, secret }) = open_phones().await;
    let bearer = format!("Bearer {id}:{secret}");
    let (pair, bearer) = ([(KEY, &*id), (SECRET, &*secret)], [(BEARER, &*bearer)]);
    let answers = [read(send(&server, &pair).await).await, read(send(&server, &bearer).await).await];
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].0 == 200 && answers[0].1["result"]["isError"] == false, "{answers:?}");
}

#[tokio::test]
async fn the_pair_of_headers_decides_if_a_request_has_both_forms() {
    let (server, Key { id, secret }) = open_phones().await;
    let right = format!("Bearer {id}:{secret}");
    let wrong = format!("Bearer {id}:{secret}x");
    let rows: &[(&[(&str, &str)], u16)] = &[
        (&[(KEY, &id), (SECRET, &secret), (BEARER, &wrong)], 200),
        (&[(KEY, &id), (SECRET, "wrong"), (BEARER, &right)], 401),
        (&[(KEY, &id), (BEARER, &right)], 200),
    ];
    for (headers, expected) in rows {
        assert_eq!(send(&server, headers).await.status(), *expected, "{headers:?}");
    }
}

#[tokio::test]
async fn every_refusal_is_the_same_and_says_how_to_be_let_in() {
    let (server, Key { id, secret }) = open_phones().await;
    let (id, secret) = (&*id, &*secret);
    let right = format!("Bearer {id}:{secret}");
    let rows: &[&[(&str, &str)]] = &[
        &[],
        &[(KEY, id)],
        &[(KEY, secret), (SECRET, id)],
        &[(BEARER, &format!("{right}x"))],
        &[(BEARER, &format!("Basic {id}:{secret}"))],
        &[(KEY, id), (KEY, id), (SECRET, secret)],
    ];
    let mut refusals = Vec::new();
    for headers in rows {
        let response = send(&server, headers).await;
        assert_eq!(response.status(), 401, "{headers:?}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"service-cloudphone\"");
        refusals.push(response.text().await.expect("text"));
    }
    refusals.dedup();
    let [refusal] = &refusals[..] else { panic!("the refusals differ: {refusals:?}") };
    let refusal: Value = serde_json::from_str(refusal).expect("JSON");
    assert_eq!((&refusal["id"], &refusal["error"]["data"]["code"]), (&Value::Null, &json!("unauthenticated")));
    let message = refusal["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("X-Api-Key") && message.contains("X-Api-Secret") && message.contains("Bearer KEY_ID:SECRET")
    );
}

#[tokio::test]
async fn keys_of_one_application_may_do_the_same() {
    let reads = PHONES.permissions.iter().find(|known| known.name == "device_read").expect("a permission").grants;
    let (server, keys) =
        phones(vec![Tenant { keys: 2, ..Tenant::with(reads) }, Tenant::with(PermissionSet(u64::MAX))]).await;
    let [one, other] = &keys[0][..] else { panic!("two keys") };
    let sees = async |key: &Key| {
        (server.list(key).await, server.call(key, "clear_proxy", json!({"device_id": "phone-0000001"})).await)
    };
    let seen = sees(one).await;
    assert_eq!(seen, sees(other).await);
    assert_eq!(seen.0.len(), tools_with("device_read").len());
    assert_eq!(seen.1.unwrap_err()["code"], "forbidden");
    assert!(sees(&keys[1][0]).await.1.is_ok(), "another application has its own");
}

#[tokio::test]
async fn a_stranger_is_refused_before_the_body_is_looked_at() {
    let (server, keys) = phones(vec![Tenant::with(PermissionSet::default())]).await;
    let too_large = vec![b'x'; 2 << 20];
    let request = server.http.post(&server.url).header("content-length", too_large.len());
    let response = request.header("content-type", "text/plain").header("expect", "100-continue");
    // A client that is refused while it still sends may find the connection closed. It must not get
    // a different answer.
    if let Ok(response) = response.body(too_large).send().await {
        assert_eq!(response.status(), 401);
    }
    let request =
        server.http.post(&server.url).header("content-type", "text/plain").header("x-api-key", &keys[0][0].id);
    assert_eq!(request.body("{").send().await.expect("an answer").status(), 401);
}
