//! The signature of a request under `/v1`: [`canonical`](Request::canonical) returns the text to
//! sign, and [`sign`] signs it.
//!
//! Server and clients share this module. It knows no key, no clock and no used nonces. The scheme
//! is HMAC-SHA256 (RFC 2104) over the canonical request.

use hmac::{Hmac, KeyInit as _, Mac};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The first line of every canonical request: the scheme and its version.
pub const SCHEME: &str = "CP1-HMAC-SHA256";

/// The header with the id of the key.
pub const KEY: &str = "x-api-key";
/// The header with the time of signing: Unix seconds, 10 digits.
pub const TIMESTAMP: &str = "x-timestamp";
/// The header with a value that the key never sends twice: 16 to 64 of `A-Za-z0-9_-`.
pub const NONCE: &str = "x-nonce";
/// The header with the signature: 64 lower-case hexadecimal digits.
pub const SIGNATURE: &str = "x-signature";
/// The header with the idempotency key of a write. It is signed, and may be absent.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Largest difference between the time of signing and the server's time, in seconds, either way.
pub const SKEW_SECONDS: u64 = 300;

/// HMAC-SHA256 of a canonical request.
pub type Signature = [u8; 32];

/// The parts of a request that are signed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The id of the key.
    pub key_id: &'a str,
    /// The time of signing, as in the header.
    pub timestamp: &'a str,
    /// The nonce.
    pub nonce: &'a str,
    /// The method, such as `GET`.
    pub method: &'a str,
    /// The path of the request target as it is sent: neither decoded nor normalised.
    pub path: &'a str,
    /// The query as it is sent, without `?`; empty for none.
    pub query: &'a str,
    /// The idempotency key of the header; empty for none.
    pub idempotency_key: &'a str,
    /// The body as it is sent; empty for none.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// Returns the canonical request: nine lines, the last one without a line feed.
    #[must_use]
    pub fn canonical(&self) -> String {
        let Self { key_id, timestamp, nonce, method, path, query, idempotency_key, body } = *self;
        let mut canonical = [SCHEME, key_id, timestamp, nonce, method, path, query, idempotency_key, ""].join("\n");
        hex(&Sha256::digest(body), &mut canonical);
        canonical
    }
}

/// Signs a canonical request. The UTF-8 bytes of the secret are the key.
#[must_use]
pub fn sign(secret: &str, canonical: &str) -> Signature {
    Signer::new(secret).sign(canonical)
}

/// Signs repeatedly with one secret. It does not hold the secret, but its holder can sign.
#[derive(Clone)]
pub struct Signer(Hmac<Sha256>);

impl Signer {
    /// Makes a signer. The UTF-8 bytes of the secret are the key.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        // HMAC takes a key of any length. The block of zeroes is for an error that cannot occur.
        Self(Hmac::new_from_slice(secret.as_bytes()).unwrap_or_else(|_| Hmac::new(&[0; 64].into())))
    }

    /// Signs a canonical request.
    #[must_use]
    pub fn sign(&self, canonical: &str) -> Signature {
        let mut mac = self.0.clone();
        mac.update(canonical.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

/// Returns a signature in the form of its header.
#[must_use]
pub fn header(signature: &Signature) -> String {
    let mut text = String::with_capacity(64);
    hex(signature, &mut text);
    text
}

/// Parses a signature from its header. Returns `None` unless it is 64 lower-case hexadecimal
/// digits.
#[must_use]
pub fn read_header(text: &str) -> Option<Signature> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut signature = [0; 32];
    if pairs.len() != signature.len() {
        return None;
    }
    for (byte, [high, low]) in signature.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(signature)
}

/// Returns the time in a header; `None` unless it is 10 digits.
#[must_use]
pub fn read_timestamp(text: &str) -> Option<u64> {
    (text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Returns true if a nonce has the form that its header requires.
#[must_use]
pub fn is_nonce(text: &str) -> bool {
    (16..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn hex(bytes: &[u8], out: &mut String) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    out.reserve(2 * bytes.len());
    out.extend(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}
