//! The signature of a request under `/v1`: HMAC-SHA256 (RFC 2104) over the canonical request.
//!
//! Server and clients share this module. It knows no key, no clock and no used nonces. Start at
//! [`Request::canonical`] and [`sign`].

use hmac::{Hmac, KeyInit as _, Mac};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The first line of every canonical request.
pub const SCHEME: &str = "CP1-HMAC-SHA256";

pub const KEY: &str = "x-api-key";
/// Unix seconds, 10 digits.
pub const TIMESTAMP: &str = "x-timestamp";
/// Never sent twice by a key: 16 to 64 of `A-Za-z0-9_-`.
pub const NONCE: &str = "x-nonce";
/// 64 lower-case hexadecimal digits.
pub const SIGNATURE: &str = "x-signature";
/// Signed; may be absent.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Largest difference between signing and the server's time, either way.
pub const SKEW_SECONDS: u64 = 300;

pub type Signature = [u8; 32];

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub key_id: &'a str,
    /// As in the header.
    pub timestamp: &'a str,
    pub nonce: &'a str,
    pub method: &'a str,
    /// As sent: neither decoded nor normalised.
    pub path: &'a str,
    /// As sent, without `?`; empty for none.
    pub query: &'a str,
    /// Empty for none.
    pub idempotency_key: &'a str,
    /// As sent; empty for none.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// Returns nine lines, the last one without a line feed.
    #[must_use]
    pub fn canonical(&self) -> String {
        let Self { key_id, timestamp, nonce, method, path, query, idempotency_key, body } = *self;
        let mut canonical = [SCHEME, key_id, timestamp, nonce, method, path, query, idempotency_key, ""].join("\n");
        hex(&Sha256::digest(body), &mut canonical);
        canonical
    }
}

/// Signs with the UTF-8 bytes of the secret as the key.
#[must_use]
pub fn sign(secret: &str, canonical: &str) -> Signature {
    Signer::new(secret).sign(canonical)
}

/// A key for HMAC. It does not hold the secret, but its holder can sign.
#[derive(Clone)]
pub struct Signer(Hmac<Sha256>);

impl Signer {
    #[must_use]
    pub fn new(secret: &str) -> Self {
        // HMAC takes a key of any length, so the zeroes are never used.
        Self(Hmac::new_from_slice(secret.as_bytes()).unwrap_or_else(|_| Hmac::new(&[0; 64].into())))
    }

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

#[must_use]
pub fn header(signature: &Signature) -> String {
    let mut text = String::with_capacity(64);
    hex(signature, &mut text);
    text
}

/// Returns `None` unless the text is 64 lower-case hexadecimal digits.
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

/// Returns `None` unless the text is 10 digits.
#[must_use]
pub fn read_timestamp(text: &str) -> Option<u64> {
    (text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[must_use]
pub fn is_nonce(text: &str) -> bool {
    (16..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn hex(bytes: &[u8], out: &mut String) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    out.reserve(2 * bytes.len());
    out.extend(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}
