//! Properties of the code that reads a stranger's text.

use super::blows::runner;
use cloudphone::phones::contract::CATALOGUE;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use toolwarrant_base::text::{Remark, Untrusted, WebUrl, clean, find_deceiving};
use toolwarrant_http::edge::HostOriginPolicy;

pub(crate) fn all() {
    let text =
        || prop_oneof![".{0,80}", "[ -~]{0,80}", "\\PC{0,40}", "(\u{1b}\\[|\u{202e}|\u{7}|\r|\n|a|é|\u{200d}){0,30}"];
    try_all("device text", &text(), device_text);
    try_all("host and origin", &(text(), text()), host_and_origin);
    let json = prop_oneof![text(), "\\{(\"[a-z_]{1,12}\":(\"[^\"]{0,20}\"|-?[0-9]{1,9}|null|\\[\\]|true),?){0,6}\\}"];
    try_all("arguments", &(any::<prop::sample::Index>(), json), arguments);
}

fn try_all<S: Strategy>(name: &str, cases: &S, property: impl Fn(S::Value) -> TestCaseResult) {
    runner(1).run(cases, property).unwrap_or_else(|broken| panic!("{name}: {broken}"));
}

fn device_text(text: String) -> TestCaseResult {
    let (short, long) = (Untrusted::<64>::clean(&text), Remark::clean(&text));
    for (short, most) in [(short.as_str(), 64), (long.as_str(), 256)] {
        prop_assert!(find_deceiving(short).is_none() && short.chars().count() <= most, "{short:?}");
        prop_assert_eq!(&clean(short), short);
    }
    if let Ok(url) = text.parse::<WebUrl>() {
        prop_assert!(serde_json::to_string(&url).is_ok_and(|url| url.starts_with("\"https://")));
    }
    Ok(())
}

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

/// Allows one valid form of an id, which is that of the contract.
fn arguments((tool, json): (prop::sample::Index, String)) -> TestCaseResult {
    let tool = tool.get(CATALOGUE.tools);
    if let Some(target) = &tool.target {
        let ids = CATALOGUE.resource(target.resource).expect("declared").ids;
        let form = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        prop_assert_eq!(ids.admits(&json), (1..=64).contains(&json.len()) && json.chars().all(form));
    }
    Ok(())
}
