//! Who is let in: every combination of the two forms of credentials.

use crate::harness::{Tenant, phones};
use cloudphone::framework::catalogue::PermissionSet;
use serde_json::{Value, json};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices"}}"#;

#[tokio::test]
async fn headers_decide_when_both_are_there_and_every_refusal_is_the_same() {
    let (server, keys) = phones(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    let (id, secret) = (keys[0][0].id.as_str(), keys[0][0].secret.as_str());
    let right = format!("Bearer {id}:{secret}");
    let wrong = format!("Bearer {id}:{secret}x");
    let colons = format!("Bearer {id}:{secret}:x");
    let (key, sec, auth) = ("x-api-key", "x-api-secret", "authorization");
    let rows: &[(&[(&str, &str)], bool)] = &[
        (&[(key, id), (sec, secret)], true),
        (&[(auth, &right)], true),
        (&[(auth, &right.replace("Bearer", "bEARER"))], true),
        (&[(key, id), (sec, secret), (auth, &wrong)], true),
        (&[(key, id), (sec, secret), (auth, "malformed")], true),
        (&[(key, id), (sec, secret), (auth, "Basic eDp5")], true),
        (&[(key, id), (sec, "wrong"), (auth, &right)], false),
        (&[(key, "wrong"), (sec, secret), (auth, &right)], false),
        (&[(key, id), (auth, &right)], true),
        (&[(sec, secret), (auth, &right)], true),
        (&[(key, id), (auth, &wrong)], false),
        (&[(key, id)], false),
        (&[(sec, secret)], false),
        (&[], false),
        (&[(auth, &wrong)], false),
        (&[(auth, &colons)], false),
        (&[(auth, &format!("Bearer {id}"))], false),
        (&[(auth, &format!("Bearer {id}:"))], false),
        (&[(auth, &format!("Bearer :{secret}"))], false),
        (&[(auth, &format!("Basic {id}:{secret}"))], false),
        (&[(auth, &format!("{id}:{secret}"))], false),
        (&[(auth, "Bearer")], false),
        (&[(auth, "")], false),
        (&[(auth, &right), (auth, &right)], false),
        (&[(key, id), (key, id), (sec, secret)], false),
        (&[(key, id), (sec, secret), (sec, secret)], false),
        (&[(key, id), (key, id), (sec, secret), (auth, &right)], false),
        (&[(key, secret), (sec, id)], false),
    ];
    let mut refusals = Vec::new();
    for (headers, expected) in rows {
        let mut request = server.http.post(&server.url).header("content-type", "application/json").body(LIST);
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), if *expected { 200 } else { 401 }, "{headers:?}");
        if !expected {
            assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"service-cloudphone\"");
            refusals.push(response.text().await.expect("text"));
        }
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
async fn a_stranger_is_refused_before_the_body_is_looked_at() {
    let (server, keys) = phones(vec![Tenant::with(PermissionSet::default())]).await;
    let too_large = vec![b'x'; 2 << 20];
    let request = server.http.post(&server.url).header("content-length", too_large.len());
    let response = request.header("content-type", "text/plain").header("expect", "100-continue");
    // A client that is refused while it still sends may find the connection gone; it must not find another answer.
    if let Ok(response) = response.body(too_large).send().await {
        assert_eq!(response.status(), 401);
    }
    let request =
        server.http.post(&server.url).header("content-type", "text/plain").header("x-api-key", &keys[0][0].id);
    assert_eq!(request.body("{").send().await.expect("an answer").status(), 401);
}
