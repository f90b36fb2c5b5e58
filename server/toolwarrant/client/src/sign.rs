//! Signs one request under `/v1`: the headers to send, and the canonical request that they sign.

use crate::api_key::ApiKey;
use crate::cli::SignOptions;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use toolwarrant_signing::{self as signing, Request};

/// A signature.
#[derive(Debug)]
pub struct SignatureHeaders {
    /// What is signed.
    pub canonical: String,
    /// The headers to send, by their names.
    pub headers: Vec<(&'static str, String)>,
}

/// Why a request cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// A part of it has another form than requests have.
    #[error("{0}")]
    Malformed(String),
    /// The body cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(String, std::io::Error),
    /// The system has no randomness for a nonce.
    #[error("the system has no randomness for a nonce; --nonce gives one")]
    NoRandomness,
}

/// Signs the request that `options` describe.
///
/// # Errors
/// A part of it is malformed, or its body cannot be read.
pub fn sign(options: &SignOptions, key: &ApiKey) -> Result<SignatureHeaders, SignError> {
    let SignOptions { method, target, idempotency_key, body, timestamp, nonce, show: _, key: _ } = options;
    let malformed = |what: &str| Err(SignError::Malformed(what.to_owned()));
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return malformed("the method is written in capital letters, such as GET: they are signed as they are sent");
    }
    let target = origin_form(target);
    if !target.starts_with('/') || target.chars().any(|c| c.is_whitespace() || c.is_control() || c == '#') {
        return malformed(
            "the target is the path and the query as they are sent, such as /v1/tasks?limit=5: it begins with / and has no blank",
        );
    }
    if timestamp.as_deref().is_some_and(|text| signing::read_timestamp(text).is_none()) {
        return malformed("--timestamp is in Unix seconds, 10 digits");
    }
    if nonce.as_deref().is_some_and(|text| !signing::is_nonce(text)) {
        return malformed("--nonce has 16 to 64 of A-Z a-z 0-9 _ -");
    }
    let idempotency_key = idempotency_key.as_deref().unwrap_or_default();
    if !idempotency_key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return malformed("--idempotency-key has no blank, and ASCII characters only");
    }
    let body = body.as_deref().map(content).transpose()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let stamp =
        Stamp { timestamp: timestamp.clone().unwrap_or_else(now), nonce: nonce.clone().map_or_else(fresh_nonce, Ok)? };
    let mut signed =
        stamp.sign(key, Signable { method, path, query, idempotency_key, body: body.as_deref().unwrap_or_default() });
    if body.is_some() {
        signed.headers.push(("Content-Type", "application/json".to_owned()));
    }
    Ok(signed)
}

/// A target without scheme and host, which are not signed.
fn origin_form(target: &str) -> &str {
    let rest = ["http://", "https://"].iter().find_map(|scheme| target.strip_prefix(scheme));
    rest.map_or(target, |rest| rest.find('/').map_or("", |at| &rest[at..]))
}

/// What is signed of a request, beside key, time and nonce.
pub(crate) struct Signable<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// Empty for none.
    pub(crate) idempotency_key: &'a str,
    pub(crate) body: &'a [u8],
}

/// The time of a signature, and its nonce.
pub(crate) struct Stamp {
    timestamp: String,
    nonce: String,
}

impl Stamp {
    /// The present, and a nonce that was never used.
    pub(crate) fn fresh() -> Result<Self, SignError> {
        Ok(Self { timestamp: now(), nonce: fresh_nonce()? })
    }

    pub(crate) fn sign(&self, key: &ApiKey, signable: Signable<'_>) -> SignatureHeaders {
        let (Self { timestamp, nonce }, Signable { method, path, query, idempotency_key, body }) = (self, signable);
        let request = Request { key_id: &key.id, timestamp, nonce, method, path, query, idempotency_key, body };
        let canonical = request.canonical();
        let signature = signing::header(&signing::sign(key.secret(), &canonical));
        let mut headers = vec![
            ("X-Api-Key", key.id.clone()),
            ("X-Timestamp", timestamp.clone()),
            ("X-Nonce", nonce.clone()),
            ("X-Signature", signature),
        ];
        if !idempotency_key.is_empty() {
            headers.push(("Idempotency-Key", idempotency_key.to_owned()));
        }
        SignatureHeaders { canonical, headers }
    }
}

/// The content of a file, or of standard input for `-`.
pub(crate) fn content(path: &Path) -> Result<Vec<u8>, SignError> {
    let unreadable = |error| SignError::Unreadable(path.display().to_string(), error);
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map_err(unreadable)?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(unreadable)
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:010}", since.as_secs())
}

fn fresh_nonce() -> Result<String, SignError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| SignError::NoRandomness)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
