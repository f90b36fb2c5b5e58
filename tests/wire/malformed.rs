//! Malformed requests, and properties of all code that reads a stranger's input.

mod blows;
mod properties;

use crate::harness::open_phones;
use axum::body::Body;
use axum::http::{Request, Uri};
use blows::{Blow, blows, runner};
use http_body_util::BodyExt;
use proptest::strategy::{Strategy, ValueTree};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_service::Service;

fn is_internal(answer: &str) -> bool {
    [r#""code":"internal""#, r#"\"code\":\"internal\""#].iter().any(|code| answer.contains(code))
}

/// Returns the answers by status.
async fn in_process(count: u64, seed: u64) -> BTreeMap<u16, u64> {
    let (server, key) = open_phones().await;
    let (mut runner, kinds) = (runner(seed), blows(&key));
    let (mut statuses, mut sent) = (BTreeMap::new(), 0);
    while sent < count {
        let Blow { method, target, headers, body } = kinds.new_tree(&mut runner).expect("a request").current();
        let Ok(uri) = target.parse::<Uri>() else { continue };
        let mut request = Request::builder().method(method).uri(uri).header("host", "127.0.0.1");
        for (name, value) in &headers {
            request = request.header(*name, value.as_slice());
        }
        let Ok(request) = request.body(Body::from(body.clone())) else { continue };
        let answer = server.router.clone().call(request).await.expect("infallible");
        let status = answer.status().as_u16();
        let told = answer.into_body().collect().await.expect("a body").to_bytes();
        let told = String::from_utf8_lossy(&told);
        let shown = || format!("{target} {headers:?} {}", String::from_utf8_lossy(&body));
        assert!(status < 500 && !is_internal(&told), "{status} {told} for {}", shown());
        *statuses.entry(status).or_default() += 1;
        sent += 1;
        // Refills the budgets, and lets tasks reach the age of seven days, when they are deleted.
        server.clock.advance(Duration::from_secs(3));
    }
    statuses
}

/// Counts a close without an answer as 0.
async fn over_the_wire(count: u64, seed: u64) -> BTreeMap<u16, u64> {
    let (server, key) = open_phones().await;
    let (mut runner, kinds) = (runner(seed), (blows(&key), blows::edits()));
    let mut statuses = BTreeMap::new();
    for _ in 0..count {
        let (blow, edits) = kinds.new_tree(&mut runner).expect("a request").current();
        let mut octets = blow.octets();
        blows::edit(&mut octets, edits);
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        // The server may refuse and close before it has read everything.
        let _ = stream.write_all(&octets).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let status = answer.get(9..12).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0_u16);
        let shown = String::from_utf8_lossy(&answer);
        assert!(status < 500 && !is_internal(&shown), "{shown} for {}", String::from_utf8_lossy(&octets));
        *statuses.entry(status).or_default() += 1;
        // Long enough that wrong credentials are not slowed down.
        server.clock.advance(Duration::from_secs(2));
    }
    statuses
}

#[tokio::test]
async fn no_malformed_request_makes_the_server_fail() {
    let statuses = in_process(2_000, 7).await;
    assert!(statuses.len() > 4, "they are of several kinds: {statuses:?}");
    let statuses = over_the_wire(300, 7).await;
    assert!(statuses.contains_key(&400) && statuses.contains_key(&200), "{statuses:?}");
    properties::all();
}
