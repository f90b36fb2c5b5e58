//! Verification of signatures, without code of the signers. The headers determine the scheme: V2
//! with `X-Access-Key`, otherwise V4.

use crate::requests::Refusal;
use axum::http::HeaderMap;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Seconds.
const SKEW: i64 = 300;

pub(crate) struct Signed<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
}

pub(crate) struct Verifier<'a> {
    pub(crate) access_key: &'a str,
    pub(crate) secret_key: &'a str,
    pub(crate) now: i64,
}

impl Verifier<'_> {
    pub(crate) fn verify(&self, signed: &Signed<'_>) -> Result<(), Refusal> {
        if signed.headers.contains_key("x-access-key") { self.v2(signed) } else { self.v4(signed) }
    }

    fn v2(&self, signed: &Signed<'_>) -> Result<(), Refusal> {
        self.check_access_key(header(signed, "X-Access-Key")?)?;
        let timestamp = header(signed, "X-Timestamp")?;
        let given = header(signed, "X-Sign")?;
        self.fresh(timestamp.parse().ok())?;
        // The vendor's table signs no body of commands, and clients in use sign it.
        let bodies: &[&[u8]] = if signed.path.ends_with("/asyncCmd") { &[b"", signed.body] } else { &[signed.body] };
        let start = format!("{}{timestamp}{}", self.secret_key, signed.path);
        self.matches(bodies.iter().any(|body| hex(&Sha256::digest([start.as_bytes(), body].concat())) == given))
    }

    fn v4(&self, signed: &Signed<'_>) -> Result<(), Refusal> {
        let authorization = header(signed, "Authorization")?;
        let date = header(signed, "x-date")?;
        let host = header(signed, "x-host")?;
        let content_type = header(signed, "content-type")?;
        let fields = authorization.strip_prefix("HMAC-SHA256 ").unwrap_or_default();
        let field = |name: &str| {
            let named = fields.split(',').filter_map(|field| field.trim().split_once('='));
            named.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value).unwrap_or_default()
        };
        let (credential, scope) = field("Credential").split_once('/').unwrap_or((field("Credential"), ""));
        self.check_access_key(credential)?;
        self.fresh(unix_of(date))?;
        let short = date.get(..8).unwrap_or_default();
        let expected_scope = format!("{short}/armcloud-paas/request");
        let canonical = format!(
            "host:{host}\nx-date:{date}\ncontent-type:{content_type}\nsignedHeaders:{}\nx-content-sha256:{}",
            field("SignedHeaders"),
            hex(&Sha256::digest(signed.body)),
        );
        let hash = hex(&Sha256::digest(canonical.as_bytes()));
        let text = format!("HMAC-SHA256\n{date}\n{expected_scope}\n{hash}");
        let day = mac(self.secret_key.as_bytes(), short.as_bytes());
        let key = mac(&mac(&day, b"armcloud-paas"), b"request");
        let headers = field("SignedHeaders") == "content-type;host;x-content-sha256;x-date";
        let scoped = scope.is_empty() || scope == expected_scope;
        self.matches(headers && scoped && hex(&mac(&key, text.as_bytes())) == field("Signature"))
    }

    fn check_access_key(&self, access_key: &str) -> Result<(), Refusal> {
        let refused = || Refusal { code: 2031, msg: "access key does not exist".to_owned() };
        if access_key == self.access_key { Ok(()) } else { Err(refused()) }
    }

    fn fresh(&self, seconds: Option<i64>) -> Result<(), Refusal> {
        let near = seconds.is_some_and(|seconds| seconds.saturating_sub(self.now).abs() <= SKEW);
        let refused = || Refusal { code: 2033, msg: "timestamp expired or malformed".to_owned() };
        if near { Ok(()) } else { Err(refused()) }
    }

    fn matches(&self, sound: bool) -> Result<(), Refusal> {
        let refused = || Refusal { code: 2019, msg: "signature mismatch".to_owned() };
        if sound { Ok(()) } else { Err(refused()) }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn header<'a>(signed: &Signed<'a>, name: &str) -> Result<&'a str, Refusal> {
    signed.headers.get(name).and_then(|value| value.to_str().ok()).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Refusal {
    Refusal { code: 2032, msg: format!("required header is missing: {name}") }
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    // HMAC accepts a key of any length, so the second constructor is never reached.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&[0; 64].into()));
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn unix_of(date: &str) -> Option<i64> {
    let civil = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", date).ok()?;
    Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}
