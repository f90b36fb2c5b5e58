//! Signs one request under `/v1`. Start at [`sign`].

use crate::api_key::ApiKey;
use crate::cli::SignOptions;
use crate::error::SetupError;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use toolwarrant_signing::{self as signing, Request};

#[derive(Debug)]
pub struct SignatureHeaders {
    pub canonical: String,
    pub headers: Vec<(&'static str, String)>,
}

pub fn sign(options: &SignOptions, key: &ApiKey) -> Result<SignatureHeaders, SetupError> {
    let SignOptions { method, target, idempotency_key, body, timestamp, nonce, show: _, key: _ } = options;
    let malformed = |what: &str| Err(SetupError(what.to_owned()));
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return malformed(
            "the method must be written in capital letters, such as GET, because it is signed as it is sent",
        );
    }
    let target = origin_form(target);
    if !target.starts_with('/') || target.chars().any(|c| c.is_whitespace() || c.is_control() || c == '#') {
        return malformed(
            "the target is the path and the query as they are sent, such as /v1/tasks?limit=5: it begins with / and contains no space",
        );
    }
    if timestamp.as_deref().is_some_and(|text| signing::read_timestamp(text).is_none()) {
        return malformed("--timestamp is in Unix seconds, 10 digits");
    }
    if nonce.as_deref().is_some_and(|text| !signing::is_nonce(text)) {
        return malformed("--nonce has 16 to 64 characters of A-Z a-z 0-9 _ -");
    }
    let idempotency_key = idempotency_key.as_deref().unwrap_or_default();
    if !idempotency_key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return malformed("--idempotency-key contains no space, and only ASCII characters");
    }
    let body = body.as_deref().map(content).transpose()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let timestamp = timestamp.clone().unwrap_or_else(now);
    let nonce = nonce.clone().map_or_else(fresh_nonce, Ok)?;
    let mut signed = sign_with(
        key.secret(),
        Request {
            key_id: &key.id,
            timestamp: &timestamp,
            nonce: &nonce,
            method,
            path,
            query,
            idempotency_key,
            body: body.as_deref().unwrap_or_default(),
        },
    );
    if body.is_some() {
        signed.headers.push(("Content-Type", "application/json".to_owned()));
    }
    Ok(signed)
}

/// Removes scheme and host, which are not signed.
fn origin_form(target: &str) -> &str {
    let rest = ["http://", "https://"].iter().find_map(|scheme| target.strip_prefix(scheme));
    rest.map_or(target, |rest| rest.find('/').map_or("", |at| &rest[at..]))
}

pub(crate) fn sign_with(secret: &str, request: Request<'_>) -> SignatureHeaders {
    let canonical = request.canonical();
    let Request { key_id, timestamp, nonce, idempotency_key, .. } = request;
    let mut headers = vec![
        ("X-Api-Key", key_id.to_owned()),
        ("X-Timestamp", timestamp.to_owned()),
        ("X-Nonce", nonce.to_owned()),
        ("X-Signature", signing::header(&signing::sign(secret, &canonical))),
    ];
    if !idempotency_key.is_empty() {
        headers.push(("Idempotency-Key", idempotency_key.to_owned()));
    }
    SignatureHeaders { canonical, headers }
}

pub(crate) fn content(path: &Path) -> Result<Vec<u8>, SetupError> {
    let unreadable = |error| SetupError(format!("cannot read {}: {error}", path.display()));
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map_err(unreadable)?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(unreadable)
}

pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:010}", since.as_secs())
}

pub(crate) fn fresh_nonce() -> Result<String, SetupError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| SetupError("the system provides no random bytes for a nonce; set one with --nonce".to_owned()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
