//! Malformed requests: valid requests of every kind, damaged in every part.

use crate::harness::Key;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[derive(Clone, Debug)]
pub(crate) struct Blow {
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Blow {
    pub(crate) fn octets(&self) -> Vec<u8> {
        let mut octets =
            format!("{} {} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n", self.method, self.target)
                .into_bytes();
        for (name, value) in &self.headers {
            octets.extend_from_slice(format!("{name}: ").as_bytes());
            octets.extend_from_slice(value);
            octets.extend_from_slice(b"\r\n");
        }
        octets.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        octets.extend_from_slice(&self.body);
        octets
    }
}

pub(crate) fn runner(seed: u64) -> TestRunner {
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

const SOUND: [&str; 9] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices","arguments":{"limit":3,"state":"running"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"set_proxy","arguments":{"device_id":"phone-0000001","scheme":"socks5","host":"203.0.113.7","port":1080,"password":"hunter2"}}}"#,
    r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"set_power","arguments":{"device_id":"phone-0000002","action":"restart","idempotency_key":"k"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_task","arguments":{"task_id":"task_01a3185c5000a53c36d76cec99e07585","wait_seconds":0}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_session","arguments":{"device_id":"phone-0000001","mode":"view"}}}"#,
    r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]"#,
    r#"{"jsonrpc":"2.0","id":-3,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
];

pub(crate) fn edits() -> impl Strategy<Value = Vec<(Index, u8, u8)>> + Clone {
    prop::collection::vec((any::<Index>(), any::<u8>(), 0..3_u8), 0..6)
}

pub(crate) fn edit(octets: &mut Vec<u8>, edits: Vec<(Index, u8, u8)>) {
    for (at, octet, kind) in edits {
        if octets.is_empty() {
            return octets.push(octet);
        }
        let at = at.index(octets.len());
        match kind {
            0 => octets[at] = octet,
            1 if octet < 64 => drop(octets.drain(at..)),
            _ => octets.insert(at, b"{}[]\",:\\0 \r\n\t%&=?/"[usize::from(octet) % 18]),
        }
    }
}

pub(crate) fn blows(key: &Key) -> BoxedStrategy<Blow> {
    let (id, secret) = (key.id.clone(), key.secret.clone());
    let method = select(vec!["GET", "PUT", "DELETE", "OPTIONS", "HEAD", "BREW"]);
    let method = prop_oneof![9 => Just("POST"), 1 => method];
    let target = prop_oneof![
        8 => Just("/mcp".to_owned()),
        1 => select(vec!["/mcp/", "/v1/devices", "/v1/openapi.json", "/register", "/.well-known/oauth-protected-resource"]).prop_map(str::to_owned),
        1 => "/v1/[a-z]{0,9}/[^ ]{0,12}",
        1 => "/[ -~]{0,30}",
    ];
    let values: [(&'static str, Vec<&'static str>); 8] = [
        (
            "content-type",
            vec!["application/json", "application/json", "application/json; charset=utf-8", "text/plain", "\u{ff}"],
        ),
        ("mcp-protocol-version", vec!["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01", "\u{e9}"]),
        ("mcp-method", vec!["tools/call", "server/discover", "", "\u{ff}"]),
        ("origin", vec!["https://allowed.example", "http://evil.example", "null", "\u{1}"]),
        ("x-timestamp", vec!["1800000001", "0", "99999999999", "x"]),
        ("x-nonce", vec!["0123456789abcdef", "short", "\u{e9}"]),
        ("x-signature", vec!["00", "0000000000000000000000000000000000000000000000000000000000000000", "zz"]),
        (
            "x-request-id",
            vec!["r-1", "\u{e9}", "a b", "0123456789012345678901234567890123456789012345678901234567890123456789"],
        ),
    ];
    let headers = values.map(|(name, values)| {
        prop::option::weighted(if name == "content-type" { 0.97 } else { 0.15 }, select(values))
            .prop_map(move |value| value.map(|value| (name, value.as_bytes().to_vec())))
    });
    let credentials = (0..12_u8, any::<Index>(), any::<u8>()).prop_map(move |(kind, at, octet)| match kind {
        0 => vec![],
        1 => vec![("authorization", format!("Bearer {id}:{secret}").into_bytes())],
        2 => vec![("authorization", vec![octet; 9])],
        3 => {
            let mut wrong = secret.clone().into_bytes();
            let at = at.index(wrong.len());
            wrong[at] = octet;
            vec![("x-api-key", id.clone().into_bytes()), ("x-api-secret", wrong)]
        }
        _ => vec![("x-api-key", id.clone().into_bytes()), ("x-api-secret", secret.clone().into_bytes())],
    });
    let body = (select(&SOUND[..]), edits(), prop::option::weighted(0.05, prop::collection::vec(any::<u8>(), 0..60)));
    (method, target, headers, credentials, body)
        .prop_map(|(method, target, headers, credentials, (sound, edits, noise))| {
            let mut body = noise.unwrap_or_else(|| sound.as_bytes().to_vec());
            edit(&mut body, edits);
            Blow {
                method,
                target,
                headers: credentials.into_iter().chain(headers.into_iter().flatten()).collect(),
                body,
            }
        })
        .boxed()
}
