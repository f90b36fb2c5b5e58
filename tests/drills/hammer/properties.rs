//! Properties of the code that reads a stranger's text, each tried for a given time.

use super::blows::runner;
use cloudphone::phones::contract::CATALOGUE;
use cloudphone::phones::proxy_hosts::ProxyHosts;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use toolwarrant_base::text::{HttpsUrl, Remark, Untrusted, clean, deceives};
use toolwarrant_http::edge::HostOriginPolicy;
use toolwarrant_signing::{Request, header, is_nonce, read_header, read_timestamp, sign};

/// The cases of each property if no time is given.
const FEW: u32 = 300;

/// Tries every property for that time, or for a few cases if no time is given. Prints the number of
/// cases.
pub(crate) fn all(each: Option<Duration>) {
    let text =
        || prop_oneof![".{0,80}", "[ -~]{0,80}", "\\PC{0,40}", "(\u{1b}\\[|\u{202e}|\u{7}|\r|\n|a|é|\u{200d}){0,30}"];
    try_all("device text", each, &text(), device_text);
    let hosts = prop_oneof![
        text(),
        "[0-9a-fx.]{1,24}",
        "[0-9a-f:]{1,30}(%[a-z0-9]{1,4})?",
        "\\[[0-9a-f:.]{1,30}\\]",
        "([a-z]{1,6}\\.){0,3}(internal|local|svc|localhost|example|home\\.arpa)\\.?",
        any::<[u8; 4]>().prop_map(|octets| IpAddr::from(octets).to_string()),
        any::<[u8; 16]>().prop_map(|octets| IpAddr::from(octets).to_string()),
    ];
    try_all("proxy host", each, &hosts, proxy_host);
    try_all("host and origin", each, &(text(), text()), host_and_origin);
    let fields = (prop::array::uniform7("[^\n]{0,40}"), prop::collection::vec(any::<u8>(), 0..200), any::<u8>());
    try_all("canonical request", each, &fields, canonical_request);
    let json = prop_oneof![text(), "\\{(\"[a-z_]{1,12}\":(\"[^\"]{0,20}\"|-?[0-9]{1,9}|null|\\[\\]|true),?){0,6}\\}"];
    try_all("arguments", each, &(any::<prop::sample::Index>(), json), arguments);
}

fn try_all<S: Strategy>(name: &str, each: Option<Duration>, cases: &S, property: impl Fn(S::Value) -> TestCaseResult) {
    let (began, mut tried, mut seed) = (Instant::now(), 0, 1);
    loop {
        let mut runner = runner(seed);
        seed += 1;
        runner.run(cases, &property).unwrap_or_else(|broken| panic!("{name}: {broken}"));
        tried += 256;
        if each.map_or(tried >= FEW, |each| began.elapsed() >= each) {
            break;
        }
    }
    if each.is_some() {
        println!("{name}: {tried} cases in {} s", began.elapsed().as_secs());
    }
}

/// Cleaned text cannot deceive and is short, and cleaning it again does not change it.
fn device_text(text: String) -> TestCaseResult {
    let (short, long) = (Untrusted::<64>::clean(&text), Remark::clean(&text));
    for (short, most) in [(short.as_str(), 64), (long.as_str(), 256)] {
        prop_assert!(!short.chars().any(deceives) && short.chars().count() <= most, "{short:?}");
        prop_assert_eq!(&clean(short), short);
    }
    if let Ok(url) = text.parse::<HttpsUrl>() {
        prop_assert!(serde_json::to_string(&url).is_ok_and(|url| url.starts_with("\"https://")));
    }
    Ok(())
}

/// The checked host is the host that is sent: the canonical form of an allowed host is allowed, and
/// is its own canonical form.
fn proxy_host(host: String) -> TestCaseResult {
    for allowed in [ProxyHosts::Public, ProxyHosts::PublicAndPrivate] {
        let Ok(canonical) = allowed.judge(&host) else { continue };
        prop_assert_eq!(allowed.judge(&canonical), Ok(canonical.clone()));
        prop_assert!(canonical.chars().all(|c| c.is_ascii_graphic()) && canonical.len() <= 255, "{canonical:?}");
        if let Ok(address) = canonical.parse::<IpAddr>() {
            let (loopback, none) = (address.is_loopback(), address.is_unspecified() || address.is_multicast());
            prop_assert!(!loopback && !none, "{host:?} is {address}");
        }
    }
    Ok(())
}

/// Only allowed names pass, in any spelling.
fn host_and_origin((host, origin): (String, String)) -> TestCaseResult {
    let policy = HostOriginPolicy::new(([127, 0, 0, 1], 80).into(), None, &[], &[]).expect("a policy");
    let mut headers = axum::http::HeaderMap::new();
    let (Ok(host), Ok(origin)) = (host.parse(), origin.parse()) else { return Ok(()) };
    headers.insert("host", host);
    let without = policy.check(&headers, None);
    headers.insert("origin", origin);
    if policy.check(&headers, None).is_ok() {
        prop_assert!(without.is_ok(), "an origin has made a host pass");
        let shown = headers["host"].to_str().unwrap_or_default().to_ascii_lowercase();
        prop_assert!(["127.", "localhost", "[::1]"].iter().any(|name| shown.contains(name)), "{shown:?}");
    }
    Ok(())
}

/// The lines of a canonical request are unambiguous, any changed octet changes the signature, and
/// the readers accept only the form that the writers produce.
fn canonical_request((fields, body, octet): ([String; 7], Vec<u8>, u8)) -> TestCaseResult {
    let [key_id, timestamp, nonce, method, path, query, idempotency_key] = &fields;
    let request = Request { key_id, timestamp, nonce, method, path, query, idempotency_key, body: &body };
    let canonical = request.canonical();
    prop_assert_eq!(canonical.split('\n').count(), 9);
    let signature = sign("secret", &canonical);
    prop_assert_eq!(read_header(&header(&signature)), Some(signature));
    let mut other = body.clone();
    other.push(octet);
    let request = Request { body: &other, key_id, timestamp, nonce, method, path, query, idempotency_key };
    prop_assert_ne!(sign("secret", &request.canonical()), signature);
    for field in &fields {
        if let Some(seconds) = read_timestamp(field) {
            prop_assert_eq!(&seconds.to_string(), field);
        }
        prop_assert!(!is_nonce(field) || (16..=64).contains(&field.len()));
        prop_assert!(read_header(field).is_none_or(|read| header(&read) == *field));
    }
    Ok(())
}

/// An id has only one valid form, which is that of the contract.
fn arguments((tool, json): (prop::sample::Index, String)) -> TestCaseResult {
    let tool = tool.get(CATALOGUE.tools);
    if let Some(target) = &tool.target {
        let admits = CATALOGUE.resource(target.resource).expect("declared").admits;
        let form = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        prop_assert_eq!(admits(&json), (1..=64).contains(&json.len()) && json.chars().all(form));
    }
    Ok(())
}
