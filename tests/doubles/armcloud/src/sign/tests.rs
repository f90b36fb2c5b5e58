//! The verifier, tested with vectors from an independent program.

use super::{CommandBody, Scheme, Signed, Verifier};
use crate::requests::Refusal;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

const NOW: i64 = 1_767_323_045;
const BODY: &str = r#"{"padCodes":["AC32010230001"]}"#;
const V2: [(&str, &str); 2] = [("X-Access-Key", "AKTEST0123456789"), ("X-Timestamp", "1767323045")];

/// A request with its expected result.
struct SignCase {
    name: &'static str,
    path: &'static str,
    query: &'static str,
    body: Option<&'static str>,
    headers: Vec<(&'static str, String)>,
    verdict: Result<Scheme, i64>,
}

fn v2(name: &'static str, path: &'static str, body: &'static str, sign: &str) -> SignCase {
    let headers = V2.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let headers = headers.chain([("X-Sign", sign.to_owned())]).collect();
    SignCase { name, path, query: "", body: Some(body), headers, verdict: Ok(Scheme::V2) }
}

fn v4(name: &'static str, query: &'static str, body: Option<&'static str>, signature: &str) -> SignCase {
    let authorization = format!(
        "HMAC-SHA256 Credential=AKTEST0123456789, SignedHeaders=content-type;host;x-content-sha256;x-date, Signature={signature}"
    );
    let headers = vec![
        ("x-date", "20260102T030405Z".to_owned()),
        ("x-host", "api.vmoscloud.com".to_owned()),
        ("content-type", "application/json;charset=UTF-8".to_owned()),
        ("authorization", authorization),
    ];
    SignCase { name, path: "/vcpcloud/api/padApi/restart", query, body, headers, verdict: Ok(Scheme::V4) }
}

fn with(mut case: SignCase, name: &'static str, header: &'static str, value: &str, code: i64) -> SignCase {
    case.headers.retain(|(known, _)| *known != header);
    if !value.is_empty() {
        case.headers.push((header, value.to_owned()));
    }
    SignCase { name, verdict: Err(code), ..case }
}

fn cases() -> Vec<SignCase> {
    const RESTART: &str = "/vcpcloud/api/padApi/restart";
    const SIGN: &str = "ae0d706e273047dd177226a8292f794db4d750e3af8846722db523398227a208";
    const COMMAND: &str = "6c5b2cf2459a7467a7082875e48721d423d0f5f184f80aa3f1f43ebe3fffe91e";
    const V4: &str = "4ebf810c78da5997490026aab063fb8afd5d9ad6084c833c9c00f10f78646474";
    let v2_restart = || v2("V2, a POST", RESTART, BODY, SIGN);
    let v4_restart = || v4("V4, a POST", "", Some(BODY), V4);
    let scoped = format!(
        "HMAC-SHA256 Credential=AKTEST0123456789/20260102/armcloud-paas/request, SignedHeaders=content-type;host;x-content-sha256;x-date, Signature={V4}"
    );
    let mut with_scope = with(v4_restart(), "V4, a credential with its scope", "authorization", &scoped, 0);
    with_scope.verdict = Ok(Scheme::V4);
    let proxies = "f250068d1ae25565b9b6eb42cc8463f243ea20e74df76ffa7df097364caaddc7";
    let get = v2("V2, a GET", "/vcpcloud/api/padApi/getProxys", "", proxies);
    let authver = [
        ("authver", "2.0"),
        ("x-ak", "AKTEST0123456789"),
        ("x-timestamp", "1767323045000"),
        ("x-sign", "8954d954665cc8b0e049bd0edca04572805d67b84d12240c7392748be1b8a642"),
    ];
    vec![
        v2("V2, a command with an empty body", "/vcpcloud/api/padApi/asyncCmd", BODY, COMMAND),
        SignCase { query: "page=1&rows=10", body: None, ..get },
        v4("V4, a GET", "", None, "22a4ad145185de6586c3cd44833ccb01f9536a7502225d5eb5e4c65342c3957e"),
        v4(
            "V4, a GET with a query",
            "page=1&rows=10",
            None,
            "0af310e900b3c049b5b05dba004fdb111494dea2bea157b81f216836ba132ab3",
        ),
        with_scope,
        SignCase {
            name: "ARMCloud's own",
            path: "/openapi/open/pad/restart",
            query: "",
            body: Some(BODY),
            headers: authver.map(|(name, value)| (name, value.to_owned())).to_vec(),
            verdict: Ok(Scheme::Authver),
        },
        SignCase { path: "/vsphone/api/padApi/restart", verdict: Err(2019), ..v2("V2, another path", "", BODY, SIGN) },
        SignCase { body: Some("{}"), verdict: Err(2019), ..v4("V4, another body", "", None, V4) },
        with(v2_restart(), "V2, milliseconds", "X-Timestamp", "1767323045000", 2033),
        with(v2_restart(), "V2, five minutes and a second late", "X-Timestamp", "1767322744", 2033),
        with(v2_restart(), "V2, an unknown key", "X-Access-Key", "AKOTHER", 2031),
        with(v2_restart(), "V2, no time", "X-Timestamp", "", 2032),
        with(v4_restart(), "V4, another host", "x-host", "api.vsphone.com", 2019),
        with(v4_restart(), "V4, another type", "content-type", "application/json", 2019),
        with(v4_restart(), "V4, an old date", "x-date", "20260101T030405Z", 2033),
        with(v4_restart(), "V4, a date that is none", "x-date", "today", 2033),
        with(v4_restart(), "nothing is signed", "authorization", "", 2032),
        v2_restart(),
        v4_restart(),
    ]
}

#[test]
fn each_vector_is_let_in_and_whatever_differs_from_one_is_refused_with_its_code() {
    let verifier = verifier("AKTEST0123456789", "SKTEST9876543210", NOW);
    for case in cases() {
        let verdict = verify(&verifier, &case);
        assert_eq!(verdict.map_err(|refused| refused.code), case.verdict, "{}", case.name);
    }
}

#[test]
fn the_vectors_of_other_programs_agree() {
    let published = SignCase {
        headers: vec![
            ("X-Access-Key", "AK".to_owned()),
            ("X-Timestamp", "1747555200".to_owned()),
            ("X-Sign", "483a4999d303307ef1b8b078b51e03fa0556547729c8a3c1470d2caf63e5f350".to_owned()),
        ],
        ..v2("the vendor's", "/vcpcloud/api/padApi/padInfo", r#"{"padCode":"AC32010601132"}"#, "")
    };
    let vendor = verifier("AK", "9cucpjoyn4xxmkhj3q9el3ce", 1_747_555_200);
    assert_eq!(verify(&vendor, &published), Ok(Scheme::V2));
}

#[test]
fn the_body_of_a_command_is_signed_as_the_host_wants_it() {
    let empty = v2(
        "",
        "/vcpcloud/api/padApi/asyncCmd",
        BODY,
        "6c5b2cf2459a7467a7082875e48721d423d0f5f184f80aa3f1f43ebe3fffe91e",
    );
    let strict = |command_body| Verifier { command_body, ..verifier("AKTEST0123456789", "SKTEST9876543210", NOW) };
    assert!(verify(&strict(CommandBody::Empty), &empty).is_ok());
    assert_eq!(verify(&strict(CommandBody::Body), &empty).map_err(|refused| refused.code), Err(2019));
}

#[test]
fn a_host_of_one_scheme_names_the_header_that_it_misses() {
    let v2 = v2("", "/vcpcloud/api/padApi/restart", BODY, "");
    let only = Verifier { only: Some(Scheme::V4), ..verifier("AKTEST0123456789", "SKTEST9876543210", NOW) };
    let refused = verify(&only, &v2).expect_err("a host of V4 alone");
    assert_eq!((refused.code, refused.msg.as_str()), (2032, "required header is missing: Authorization"));
}

fn verifier<'a>(access_key: &'a str, secret_key: &'a str, now: i64) -> Verifier<'a> {
    Verifier { access_key, secret_key, now, command_body: CommandBody::Either, only: None, bad_signature: 2019 }
}

fn verify(verifier: &Verifier<'_>, case: &SignCase) -> Result<Scheme, Refusal> {
    let mut headers = HeaderMap::new();
    for (name, value) in &case.headers {
        headers.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    verifier.verify(&Signed {
        headers: &headers,
        path: case.path,
        query: case.query,
        body: case.body.unwrap_or_default().as_bytes(),
        is_get: case.body.is_none(),
    })
}
